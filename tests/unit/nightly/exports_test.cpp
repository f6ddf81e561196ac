// Exports for monitoring, and the folder for a part that is sent back.
#include <fstream>
#include <regex>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/nightly/prometheus.h"
#include "reports/nightly/rma.h"
#include "tests/unit/nightly/nights_fixture.h"

namespace assay::nightly {
namespace {

using fixture::Folder;
using fixture::history_of;
using fixture::Nights;
using fixture::report_of;
using nlohmann::json;

TEST(exports, the_textfile_has_no_time_and_escapes_labels) {
  auto report = report_of({});
  report.flags[0].metric = "a\"b\\c\nd";
  const auto text = textfile(report, "2026-03-10T23:00:00.000Z");
  EXPECT_NE(text.find("assay_sweep_last_start_timestamp_seconds 1773183600\n"), std::string::npos) << text;
  EXPECT_NE(text.find("assay_flags{state=\"confirmed\",class=\"level\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("metric=\"a\\\"b\\\\c?d\",state=\"confirmed\"} 0.9\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("simulated"), std::string::npos);
}

TEST(exports, every_sample_of_a_simulation_is_labelled) {
  const auto text = textfile(report_of({.simulated = true}), "2026-03-10T23:00:00.000Z");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    EXPECT_NE(line.find("simulated=\"true\""), std::string::npos) << line;
  }
}

TEST(exports, open_metrics_have_a_sample_for_every_nightly_figure_and_an_end) {
  const Folder folder;
  const Nights given;
  const auto text = open_metrics(history_of(folder.path + "/h.db", given), report_of(given).as_of, 10);
  ASSERT_TRUE(text) << text.error().error.text();
  EXPECT_TRUE(text->ends_with("# EOF\n"));
  std::size_t samples = 0;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) samples += line.starts_with("assay_night_value{") ? 1 : 0;
  EXPECT_EQ(samples, 59U);  // six units, ten nights, one of them busy
  EXPECT_NE(text->find("unit=\"gpu:101\",node=\"n1\",metric=\"cuda_gemm.rate\",base_unit=\"FLOP/s\"} 1"),
            std::string::npos);
}

TEST(exports, an_alert_has_no_figure_among_its_labels_and_what_is_watched_has_none) {
  auto report = report_of({});
  report.flags.push_back(report.flags[0]);
  report.flags[1].state = drift::UnitState::watch;
  const auto alerts = json::parse(alertmanager_alerts(report));
  ASSERT_EQ(alerts.size(), 1U);
  EXPECT_EQ(alerts[0]["labels"]["severity"], "critical");
  EXPECT_EQ(alerts[0]["labels"]["unit"], "gpu:103");
  EXPECT_FALSE(alerts[0]["labels"].contains("change"));
  EXPECT_EQ(alerts[0]["startsAt"], "2026-03-08T12:00:00Z");
  const auto& annotations = alerts[0]["annotations"];
  EXPECT_TRUE(annotations["summary"].get<std::string>().starts_with("n3, cuda_gemm.rate: ")) << annotations;
  EXPECT_TRUE(annotations["next"].get<std::string>().starts_with("Take n3 out of service")) << annotations;
  EXPECT_EQ(annotations["action"], "not known (table of " + profiles::actions().date() + ")");
  report.flags[0].metric = "health_gpu.remapping_pending{root=/}";
  EXPECT_TRUE(json::parse(alertmanager_alerts(report))[0]["annotations"]["action"].get<std::string>().starts_with(
      "reset (remapping_pending): A reset of the GPU replaces the row"));
  EXPECT_NE(drift::summary_text(report).find(" Action: reset (remapping_pending).\n"), std::string::npos);
  EXPECT_EQ(json::parse(webhook_message(report))["version"], "4");
  report.coverage.silent_nights = 12;
  const auto stopped = json::parse(alertmanager_alerts(report));
  EXPECT_EQ(stopped.back()["labels"]["alertname"], "AssayCoverage");
  EXPECT_EQ(stopped.back()["annotations"]["summary"], "no sweep for 12 nights");
}

TEST(exports, a_report_in_which_nothing_was_judged_is_an_alert_and_not_resolved) {
  auto judged = report_of({});
  judged.flags.clear();
  EXPECT_EQ(json::parse(webhook_message(judged))["status"], "resolved");
  EXPECT_NE(textfile(judged, "").find("assay_nothing_judged 0\n"), std::string::npos);
  auto without_figures = judged, retired = judged;
  without_figures.series = 0;
  retired.coverage.units = 0;
  for (const auto& [report, words] : {std::pair(without_figures, "nothing was judged: no sweep has a figure"),
                                      std::pair(retired, "nothing was judged: every unit is retired")}) {
    const auto message = json::parse(webhook_message(report));
    EXPECT_EQ(message["status"], "firing");
    EXPECT_EQ(message["alerts"][0]["status"], "firing");
    const auto alerts = json::parse(alertmanager_alerts(report));
    ASSERT_EQ(alerts.size(), 1U);
    EXPECT_EQ(alerts[0]["labels"]["alertname"], "AssayNothingJudged");
    EXPECT_EQ(alerts[0]["annotations"]["summary"], words);
    EXPECT_NE(textfile(report, "").find("assay_nothing_judged 1\n"), std::string::npos);
  }
}

TEST(exports, an_alert_of_a_simulation_wakes_no_one) {
  const auto alerts = json::parse(alertmanager_alerts(report_of({.simulated = true})));
  EXPECT_EQ(alerts[0]["labels"]["severity"], "none");
  EXPECT_EQ(alerts[0]["labels"]["simulated"], "true");
}

TEST(exports, the_dashboard_is_json_with_a_variable_for_its_source_and_no_id) {
  const auto dashboard = json::parse(grafana_dashboard());
  EXPECT_FALSE(dashboard.contains("id"));
  EXPECT_EQ(dashboard["uid"], "assay-nightly");
  EXPECT_EQ(dashboard["templating"]["list"][0]["name"], "datasource");
  EXPECT_NE(grafana_provider("/a \"b\"").find("path: \"/a \\\"b\\\"\""), std::string::npos);
}

/// Every name of a metric of ours in `text`.
std::set<std::string> metrics_in(const std::string& text) {
  std::set<std::string> names;
  const std::regex metric("assay_[a-z_]+");
  for (std::sregex_iterator at(text.begin(), text.end(), metric), end; at != end; ++at) names.insert(at->str());
  return names;
}

TEST(exports, every_query_of_the_dashboard_names_a_metric_and_a_label_that_the_textfile_has) {
  const auto text = textfile(report_of({}), "2026-03-10T23:00:00.000Z");
  const auto exported = metrics_in(text);
  const auto dashboard = json::parse(grafana_dashboard());
  std::size_t queries = 0;
  for (const auto& panel : dashboard["panels"]) {
    for (const auto& target : panel["targets"]) {
      const auto query = target["expr"].get<std::string>();
      const auto named = metrics_in(query);
      EXPECT_FALSE(named.empty()) << query;
      for (const auto& name : named) EXPECT_TRUE(exported.contains(name)) << name << " in " << query;
      const std::regex label("([a-z_]+)(?:=~|!=|=)|\\{\\{([a-z_]+)\\}\\}");
      for (const auto& place : {query, target["legendFormat"].get<std::string>()}) {
        for (std::sregex_iterator at(place.begin(), place.end(), label), end; at != end; ++at) {
          const std::string name = (*at)[1].matched ? (*at)[1].str() : (*at)[2].str();
          EXPECT_NE(text.find(name + "=\""), std::string::npos) << name << " in " << place;
        }
      }
      ++queries;
    }
  }
  EXPECT_GE(queries, 7U);
}

TEST(exports, the_panels_of_the_dashboard_lie_within_its_columns_and_beside_each_other) {
  constexpr int kColumns = 24;  // of Grafana's grid
  const auto dashboard = json::parse(grafana_dashboard());
  EXPECT_TRUE(dashboard["schemaVersion"].is_number_integer());
  std::set<int> ids;
  std::set<std::pair<int, int>> taken;
  for (const auto& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second);
    EXPECT_FALSE(panel["title"].get<std::string>().empty());
    EXPECT_EQ(panel["datasource"]["uid"], "${datasource}");
    const auto& at = panel["gridPos"];
    EXPECT_LE(at["x"].get<int>() + at["w"].get<int>(), kColumns);
    for (int x = 0; x < at["w"].get<int>(); ++x) {
      for (int y = 0; y < at["h"].get<int>(); ++y)
        EXPECT_TRUE(taken.emplace(at["x"].get<int>() + x, at["y"].get<int>() + y).second) << panel["title"];
    }
  }
}

/// A folder for the slow unit, signed.
struct Rma : testing::Test {
  Folder folder;
  Nights given;
  dossier::PrivateKey key = dossier::PrivateKey::from_seed(std::string(32, 'k')).value();
  std::string out = folder.path + "/rma";

  std::optional<InputError> write(drift::DriftReport report, std::vector<Attachment> attachments = {}) {
    auto trends = trends_of(history_of(folder.path + "/h.db", given), report, "gpu:103", 10);
    return write_rma({.trend = std::move(trends.value().front()),
                      .attachments = std::move(attachments),
                      .made = "2026-03-11T06:00:00.000Z"},
                     report, &key, out, 10);
  }
  void append(const std::string& name, const std::string& bytes) const {
    std::ofstream(out + "/" + name, std::ios::app) << bytes;
  }
};

TEST_F(Rma, what_was_written_checks_and_names_what_is_absent) {
  std::ofstream(folder.path + "/dmesg") << "NVRM: Xid 79\n";
  const auto error = write(report_of(given), {{.kind = "kernel-log", .path = folder.path + "/dmesg"}});
  ASSERT_FALSE(error) << error->text();
  EXPECT_FALSE(check_rma(out, key.public_key()));
  std::ifstream in(out + "/rma.json");
  const auto document = json::parse(in);
  EXPECT_EQ(document["unit"]["id"], "gpu:103");
  EXPECT_EQ(document["flags"][0]["arithmetic"]["h"], 14.9);
  EXPECT_EQ(document["flags"][0]["action"], "not known (table of " + profiles::actions().date() + ")");
  EXPECT_EQ(document["series"][0]["nights"].size(), 10U);
  for (const auto& item : document["checklist"])
    EXPECT_EQ(item["state"], item["kind"] == "kernel-log" ? "attached" : "absent") << item;
}

TEST_F(Rma, a_changed_file_an_added_file_and_another_key_are_refused) {
  ASSERT_FALSE(write(report_of(given)));
  EXPECT_TRUE(check_rma(out, dossier::PrivateKey::from_seed(std::string(32, 'x')).value().public_key()));
  append("trend.html", " ");
  EXPECT_NE(check_rma(out, key.public_key())->what.find("is not the file that was signed"), std::string::npos);
  std::filesystem::remove_all(out);
  std::filesystem::remove(folder.path + "/h.db");
  ASSERT_FALSE(write(report_of(given)));
  append("note.txt", "not ours");
  EXPECT_NE(check_rma(out, key.public_key())->what.find("is not among the files"), std::string::npos);
}

TEST_F(Rma, a_changed_document_is_refused_though_its_manifest_fits) {
  ASSERT_FALSE(write(report_of(given)));
  append("rma.json", "\n");
  EXPECT_NE(check_rma(out, key.public_key())->what.find("is not the document that was signed"), std::string::npos);
}

TEST_F(Rma, a_unit_without_a_flag_a_simulation_and_an_unknown_attachment_are_refused) {
  auto report = report_of(given);
  report.flags.clear();
  EXPECT_NE(write(report)->what.find("has no flag"), std::string::npos);
  std::filesystem::remove(folder.path + "/h.db");
  report = report_of(given);
  report.simulated = true;
  EXPECT_NE(write(report)->what.find("simulation"), std::string::npos);
  std::filesystem::remove(folder.path + "/h.db");
  EXPECT_NE(write(report_of(given), {{.kind = "kernel_log", .path = "/dev/null"}})->hint.find("kernel-log"),
            std::string::npos);
}

}  // namespace
}  // namespace assay::nightly
