// exports_test: a run with one of every outcome in each format; what is no pass never looks like one.
#include "reports/exports/exports.h"

#include <regex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/core/json_io.h"
#include "probes/core/text.h"
#include "reports/compare/shown.h"
#include "reports/exports/cells.h"
#include "reports/page/render.h"
#include "tests/unit/run_fixture.h"

namespace assay::exports {
namespace {

class Exported : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const auto kind : {fixture::Kind::mixed, fixture::Kind::accepted}) {
      const fixture::TemporaryFolder folder;
      fixture::make_run(folder.path() + "/run", kind);
      runs().push_back(dossier::open_run(folder.path() + "/run", {}).value());
    }
  }
  static std::vector<dossier::OpenedRun>& runs() {
    static std::vector<dossier::OpenedRun> all;
    return all;
  }
  static const dossier::OpenedRun& mixed() { return runs().at(0); }
  static const dossier::OpenedRun& accepted() { return runs().at(1); }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
  static std::string joined(const std::map<std::string, std::string>& files) {
    std::string all;
    for (const auto& [name, text] : files) all += text;
    return all;
  }
  static std::size_t outcomes(const dossier::OpenedRun& run, judge::Outcome outcome, bool required = true) {
    return static_cast<std::size_t>(std::ranges::count_if(run.content.verdict.results, [&](const auto& one) {
      return one.outcome == outcome && one.required == required;
    }));
  }
  static std::vector<nlohmann::json> lines(const std::string& text) {
    std::vector<nlohmann::json> all;
    std::size_t begin = 0;
    while (begin < text.size()) {
      const auto end = text.find('\n', begin);
      all.push_back(parse_json(text.substr(begin, end - begin), "line").value());
      begin = end + 1;
    }
    return all;
  }
};

TEST_F(Exported, junit_has_a_test_for_each_cell_and_one_for_the_verdict) {
  const auto text = junit(mixed());
  EXPECT_EQ(count(text, "<testcase "), mixed().content.verdict.results.size() + 1);
  EXPECT_EQ(count(text, "<failure type=\"fail\""), outcomes(mixed(), judge::Outcome::fail));
  EXPECT_EQ(count(text, "<failure type=\"inconclusive\""), outcomes(mixed(), judge::Outcome::inconclusive));
  EXPECT_EQ(count(text, "<failure type=\"conditional_pass\""), outcomes(mixed(), judge::Outcome::conditional_pass));
  EXPECT_EQ(count(text, "<error type=\"not_measured\""), outcomes(mixed(), judge::Outcome::not_measured));
  EXPECT_EQ(count(text, "<failure type=\"rejected\""), 1U);
  EXPECT_GT(outcomes(mixed(), judge::Outcome::fail), 0U);
}

TEST_F(Exported, junit_of_an_accepted_run_has_no_failure) {
  const auto text = junit(accepted());
  EXPECT_EQ(count(text, "<failure"), 0U);
  EXPECT_EQ(count(text, "<error"), 0U);
}

TEST_F(Exported, times_of_junit_add_up_to_no_more_than_the_run) {
  const auto text = junit(mixed());
  double sum = 0;
  const std::string begins = "<testcase ";
  for (auto at = text.find(begins); at != std::string::npos; at = text.find(begins, at + 1))
    sum += std::stod(text.substr(text.find(" time=\"", at) + 7));
  const auto& journal = mixed().content.run.journal;
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, static_cast<double>(milliseconds(journal.last) - milliseconds(journal.begin)) / 1000);
  EXPECT_EQ(fixture::long_numbers(text), std::vector<std::string>());
}

TEST_F(Exported, attempts_at_one_moment_divide_the_time) {
  judge::Journal journal;
  const auto attempt = [&](const char* step, int begin, int end) {
    judge::Attempt one;
    one.step = step;
    one.begin = fmt::format("2026-01-05T06:30:{:02}.000Z", begin);
    one.end = end == 0 ? "" : fmt::format("2026-01-05T06:30:{:02}.000Z", end);
    journal.attempts.push_back(one);
  };
  attempt("a", 0, 10);
  attempt("b", 5, 10);
  attempt("a", 20, 24);
  attempt("c", 20, 0);
  const auto times = step_times(journal);
  EXPECT_DOUBLE_EQ(times.at("a").share_s, 5 + 2.5 + 4);
  EXPECT_DOUBLE_EQ(times.at("b").share_s, 2.5);
  EXPECT_DOUBLE_EQ(times.at("c").share_s, 0);
  EXPECT_EQ(times.at("a").busy, 14'000);
}

TEST_F(Exported, numbers_that_no_machine_measures_are_bounded_everywhere) {
  const fixture::TemporaryFolder folder;
  fixture::make_fleet(folder.path() + "/usual", {});
  const auto usual = dossier::open_run(folder.path() + "/usual", {}).value();
  for (const double level : {4.9e-324, 1e-310, 1e300, 1.7e308}) {
    const std::string path = fmt::format("{}/{}", folder.path(), level);
    fixture::make_fleet(path, {.level = level});
    const auto opened = dossier::open_run(path, {});
    ASSERT_TRUE(opened) << level << ": " << opened.error().text();
    const auto compared = compare::compare(usual, *opened, {});
    for (const auto& text :
         {page::render_html(opened->content), junit(*opened), ctrf(*opened), csv(*opened), run_metrics(*opened),
          joined(ocp(*opened)), compare::comparison_table(compared, usual, *opened, 0),
          compare::comparison_json(compared, usual, *opened), compare::comparison_page(compared, usual, *opened)}) {
      EXPECT_LT(text.size(), 1'000'000U) << level;
      EXPECT_EQ(text.find(page::kMissingPart), std::string::npos) << level;
      EXPECT_FALSE(std::regex_search(text, std::regex("[ =:,\"-](nan|inf)[ ,\"<\n]", std::regex::icase))) << level;
      EXPECT_FALSE(std::regex_search(text, std::regex("[0-9]{40}[0-9.]{30}"))) << level;  // digests are no numbers
    }
  }
}

TEST_F(Exported, a_demand_is_shown_by_what_was_demanded_and_seen) {
  auto run = mixed();
  auto& result = run.content.verdict.results.at(0);
  result = {.requirement = result.requirement,
            .subject = result.subject,
            .node = result.node,
            .step = result.step,
            .outcome = judge::Outcome::fail,
            .reason = "It was on."};
  result.conditions =
      std::vector<judge::ConditionSeen>{{.name = "mode", .demanded = "one of \"<off>\"", .seen = Value{"<on>"}},
                                        {.name = "mode", .demanded = "one of \"<off>\"", .seen = Value{true}}};
  for (auto& one : run.content.run.plan.profile.requirements) {
    if (one.id != result.requirement) continue;
    one.metric.clear();
    one.limit = {};
    one.demand = {.name = "mode", .one_of = {Value{"<off>"}}};
  }
  const std::string page = page::render_html(run.content);
  EXPECT_EQ(page.find(page::kMissingPart), std::string::npos);
  EXPECT_EQ(page.find("<on>"), std::string::npos);
  EXPECT_EQ(page.find("<off>"), std::string::npos);
  EXPECT_NE(page.find("&lt;on&gt;, true"), std::string::npos);
  EXPECT_NE(page.find("condition mode per"), std::string::npos);
  EXPECT_NE(csv(run).find("\"one of \"\"<off>\"\"\",\"<on>, true\","), std::string::npos);
  EXPECT_NE(junit(run).find("value &lt;on&gt;, true\ndemanded one of"), std::string::npos);
  EXPECT_NE(ctrf(run).find("\"seen\": \"<on>, true\""), std::string::npos);
  EXPECT_NE(joined(ocp(run)).find("\"name\":\"mode\",\"value\":\"<on>, true\""), std::string::npos);
  const auto other = run;
  const auto compared = compare::compare(run, other, {});
  EXPECT_NE(compare::comparison_json(compared, run, other).find("condition mode"), std::string::npos);
}

TEST_F(Exported, hostile_texts_stay_texts) {
  EXPECT_EQ(junit(mixed()).find("<script>"), std::string::npos);
  // What is printed is made harmless, too, and must be the same bytes as in a file.
  for (const auto& text : {junit(mixed()), ctrf(mixed()), csv(mixed()), run_metrics(mixed())})
    EXPECT_EQ(harmless_page(text), text);
  EXPECT_EQ(run_metrics(mixed()).find("\u202E"), std::string::npos);
  EXPECT_NE(run_metrics(mixed()).find("</script>\\\"'&"), std::string::npos);  // with its quote escaped
}

TEST_F(Exported, ctrf_counts_what_it_lists) {
  const auto document = parse_json(ctrf(mixed()), "ctrf").value();
  const auto& results = document.at("results");
  std::map<std::string, int> counted;
  for (const auto& test : results.at("tests")) ++counted[test.at("status")];
  EXPECT_EQ(results.at("summary").at("tests"), results.at("tests").size());
  for (const char* status : {"passed", "failed", "other", "skipped", "pending"})
    EXPECT_EQ(results.at("summary").at(status), counted[status]) << status;
  for (const auto& test : results.at("tests")) {
    if (test.at("status") == "passed") {
      EXPECT_EQ(test.at("rawStatus"), "pass");
    }
  }
}

TEST_F(Exported, ocp_streams_are_numbered_and_end_as_the_nodes_do) {
  const auto files = ocp(mixed());
  EXPECT_EQ(files.size(), 3U);
  int rejected = 0;
  for (const auto& [name, text] : files) {
    const auto all = lines(text);
    std::string before;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].at("sequenceNumber"), i);
      EXPECT_LE(before, all[i].at("timestamp").get<std::string>());
      before = all[i].at("timestamp");
    }
    EXPECT_TRUE(all.front().contains("schemaVersion"));
    const auto& nodes = mixed().content.verdict.nodes;
    const auto node = std::ranges::find(nodes, name.substr(0, name.find('.')), &judge::NodeVerdict::node);
    EXPECT_EQ(all.back().at("testRunArtifact").at("testRunEnd").at("result"),
              node->outcome == judge::Overall::rejected ? "FAIL" : "NOT_APPLICABLE")
        << name;
    rejected += node->outcome == judge::Overall::rejected ? 1 : 0;
  }
  EXPECT_GT(rejected, 0);
}

TEST_F(Exported, ocp_passes_only_what_passes) {
  for (const auto& [name, text] : ocp(mixed())) {
    for (const auto& line : lines(text)) {
      if (!line.contains("testStepArtifact") || !line.at("testStepArtifact").contains("diagnosis")) continue;
      const auto& diagnosis = line.at("testStepArtifact").at("diagnosis");
      const std::string verdict = diagnosis.at("verdict");
      EXPECT_EQ(diagnosis.at("type") == "PASS", verdict.ends_with("-pass")) << verdict;
      EXPECT_EQ(diagnosis.at("type") == "FAIL", verdict.ends_with("-fail")) << verdict;
    }
  }
  for (const auto& [name, text] : ocp(accepted()))
    EXPECT_EQ(lines(text).back().at("testRunArtifact").at("testRunEnd").at("result"), "PASS") << name;
}

TEST_F(Exported, a_rehearsal_passes_in_no_format) {
  auto run = accepted();
  run.content.run.plan.quick = true;
  EXPECT_EQ(count(junit(run), "<failure"), 1U);
  EXPECT_EQ(parse_json(ctrf(run), "ctrf").value().at("results").at("summary").at("failed"), 1);
  for (const auto& [name, text] : ocp(run))
    EXPECT_EQ(lines(text).back().at("testRunArtifact").at("testRunEnd").at("result"), "NOT_APPLICABLE") << name;
}

TEST_F(Exported, metrics_have_one_outcome_a_cell_and_end) {
  const auto text = run_metrics(mixed());
  EXPECT_TRUE(text.ends_with("# EOF\n"));
  std::size_t on = 0;
  std::size_t at = 0;
  while ((at = text.find("assay_cell_outcome{", at)) != std::string::npos) {
    const auto line = text.substr(at, text.find('\n', at) - at);
    on += line.find("\"} 1 ") != std::string::npos ? 1 : 0;
    at += line.size();
  }
  EXPECT_EQ(on, mixed().content.verdict.results.size());
}

TEST_F(Exported, csv_has_a_row_a_cell_and_defuses_formulas) {
  auto run = accepted();
  run.content.verdict.results[0].reason = "=cmd|' /C calc'!A0, \"quoted\"";
  run.content.verdict.results[1].with = 1.5e9;
  run.content.verdict.results[1].without = 1.25e9;
  const auto text = csv(run);
  EXPECT_NE(text.find(",demanded,seen,with,without,action\n"), std::string::npos);
  EXPECT_EQ(count(text, ",,,1500000000,1250000000,"), 1U);
  EXPECT_EQ(count(text, "\n"), run.content.verdict.results.size() + 1);
  EXPECT_NE(text.find("\"'=cmd|' /C calc'!A0, \"\"quoted\"\"\""), std::string::npos);
}

TEST_F(Exported, the_action_of_a_cell_stands_in_every_format_that_has_texts) {
  auto run = mixed();
  const auto failed = std::ranges::find(run.content.verdict.results, judge::Outcome::fail, &judge::Result::outcome);
  ASSERT_NE(failed, run.content.verdict.results.end());
  const std::string unknown = "not known";
  EXPECT_EQ(action_of(run, *failed), unknown);
  run.content.advices.known.emplace(&*failed, profiles::actions().of_metric("health_gpu", "remapping_pending"));
  const std::string action = "reset (remapping_pending): A reset of the GPU replaces the row";
  for (const auto& text : {csv(run), junit(run), ctrf(run), joined(ocp(run))})
    EXPECT_EQ(count(text, action), 1U) << text.substr(0, 200);
  for (const auto& one : run.content.verdict.results) {
    EXPECT_TRUE(one.outcome != judge::Outcome::pass || action_of(run, one).empty()) << one.requirement;
  }
}

}  // namespace
}  // namespace assay::exports
