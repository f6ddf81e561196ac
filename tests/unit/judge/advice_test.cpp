// What to do about findings: the table of actions, and the advice for a verdict.
#include <functional>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "orchestrator/judge/cells/condition_words.h"
#include "orchestrator/judge/overall/advice.h"
#include "orchestrator/judge/overall/verdict_table.h"
#include "orchestrator/plan/catalogue.h"
#include "probes/core/json_io.h"
#include "profiles/embedded.h"
#include "tests/unit/judge/judged.h"

namespace assay::judge {
namespace {

using nlohmann::json;
using profiles::ActionTable;

const ActionTable& table() { return profiles::actions(); }

TEST(Actions, a_finding_has_the_action_of_its_row) {
  struct Case {
    std::string probe, metric, condition, value, words;
  };
  const Case cases[] = {
      {"health_gpu", "xid_events", "", "48", "reset (xid_numbers 48)"},
      {"health_gpu", "xid_events", "", "13 (900 times), 79", "reset (xid_numbers 79)"},
      {"health_gpu", "xid_events", "", "63", "none (xid_numbers 63)"},
      {"health_gpu", "xid_events", "", "54, 63, 94", "reseat (xid_numbers 54)"},
      {"health_gpu", "xid_events", "", "999", "not known"},
      {"health_gpu", "xid_events", "", "13, 999", "not known"},  // what has no row does not hide behind what may wait
      {"health_gpu", "xid_events", "", "4 8", "not known"},
      {"health_gpu", "xid_events", "", "", "not known"},
      {"cuda_gemm", "", "xid_numbers", "31 95 31", "reset (xid_numbers 95)"},
      {"health_gpu", "", "recovery_action", "reset_gpu", "reset (recovery_action reset_gpu)"},
      {"health_gpu", "", "recovery_action", "drain_p2p", "drain (recovery_action drain_p2p)"},
      {"health_gpu", "", "recovery_action", "unknown_7", "not known"},
      {"health_gpu", "remapping_pending", "", "", "reset (remapping_pending)"},
      {"health_gpu", "remapping_failed", "", "", "rma (remapping_failed)"},
      {"health_gpu", "retired_pages", "", "", "isolate (retired_pages)"},
      {"health_gpu", "ecc_uncorrected", "", "", "reset (ecc_uncorrected)"},
      {"health_gpu", "ecc_corrected", "", "", "watch (ecc_corrected)"},
      {"health_gpu", "nvlinks_inactive", "", "", "drain (nvlinks_inactive)"},
      {"health_gpu", "pcie_width", "", "", "reconfigure (pcie_width)"},
      {"health_gpu", "pcie_replays", "", "", "reseat (pcie_replays)"},
      {"cuda_gemm", "mismatches", "", "", "isolate (mismatches)"},
      {"host_gemm", "mismatches", "", "", "drain (mismatches)"},  // of any probe
      {"cuda_gemm", "throughput", "", "", "reset (throughput)"},
      {"cuda_peer_bandwidth", "read_bandwidth", "", "", "drain (read_bandwidth)"},
      {"cuda_gemm", "", "throttle_hw_thermal_s", "3.5", "watch (throttle_hw_thermal_s)"},
      {"health_links", "pcie_errors_uncorrected", "", "", "reset (pcie_errors_uncorrected)"},
      {"health_links", "link_downed", "", "", "reseat (link_downed)"},
      {"health_links", "optics_alarms", "", "rx power 3 low", "reseat (module_alarms rx power low)"},
      {"health_links", "optics_alarms", "", "temperature high", "watch (module_alarms temperature high)"},
      {"health_links", "optics_alarms", "", "tx bias high 8, temperature high", "reseat (module_alarms tx bias high)"},
      {"health_drive", "critical_warnings", "", "temperature, read-only", "rma (warnings read-only)"},
      {"health_drive", "critical_warnings", "", "reserved bits 40h", "not known"},
      {"health_drive", "wear", "", "", "watch (wear)"},
      {"host_configuration", "iommu_on", "", "", "reconfigure (host_configuration)"},
      {"host_configuration", "", "iommu_mode", "translated", "reconfigure (iommu_mode)"},
      {"host_configuration", "", "nvidia_version", "580.95.05", "update (nvidia_version)"},
      {"health_gpu", "no_such_metric", "", "", "not known"},
  };
  for (const auto& one : cases) {
    const auto advice = one.condition.empty() ? table().of_metric(one.probe, one.metric, one.value)
                                              : table().of_condition(one.probe, one.condition, one.value);
    EXPECT_EQ(short_words(advice), one.words) << one.metric << one.condition << " " << one.value;
  }
  for (const auto& [kind, action] :
       {std::pair{Fault::node, "drain (node)"}, {Fault::pair, "reseat (pair)"}, {Fault::leaf, "reseat (leaf)"}})
    EXPECT_EQ(short_words(advice_of({.fault = kind, .nodes = {"n1"}, .leaf = "", .tests = {}, .words = ""})), action);
}

TEST(Actions, a_nodes_text_chooses_only_by_exact_keys_and_is_never_shown) {
  for (const char* text : {"48; reset", "reset_gpu reboot_node\x1b[2J", "xid 48", "048", "48.0", "rma", "read-only!"}) {
    for (const char* name : {"xid_numbers", "recovery_action", "warnings", "module_alarms"}) {
      const auto advice = table().of_condition("health_gpu", name, text);
      EXPECT_EQ(short_words(advice), "not known") << name << " " << text;
    }
  }
  std::string many;
  for (int i = 0; i < 5000; ++i) many += (many.empty() ? "" : ", ") + std::to_string(100000 + i);
  EXPECT_EQ(short_words(table().of_condition("health_gpu", "xid_numbers", many + ", 79")), "reset (xid_numbers 79)");
}

TEST(Actions, every_row_is_about_something_that_a_probe_records) {
  std::set<std::string> known;
  for (const auto& probe : plan::known_probes()) {
    for (const auto& metric : probe.document.at("metrics")) {
      for (const std::string& of : {probe.name, std::string()})
        known.insert(of + "." + metric.at("name").get<std::string>());
    }
    for (const auto& condition : probe.document.at("conditions")) known.insert(condition.at("name").get<std::string>());
  }
  for (const auto& [name, unused] : plan::embedded_profiles()) {  // imports of other tools are no probes
    const auto profile = plan::profile_named(name).value();
    for (const auto& one : profile.requirements) known.insert(one.probe + "." + one.judged());
  }
  known.insert("sxid_numbers");  // of switches: no probe reads them yet
  known.insert("hypervisor");    // a fact of the host
  for (const auto& row : table().rows()) {
    const bool of_metric = row.found == profiles::Found::metric, of_condition = row.found == profiles::Found::condition;
    EXPECT_TRUE(!of_metric || known.contains(row.probe + "." + row.name)) << row.name;
    EXPECT_TRUE(!of_condition || known.contains(row.name)) << row.name;
    EXPECT_LE(row.advice.says.size(), 200U);
    EXPECT_TRUE(row.by.empty() ? !table().source_words(row.advice).empty() : row.advice.says.empty()) << row.name;
  }
}

TEST(Actions, every_demand_on_a_nodes_configuration_has_a_row_of_its_own) {
  const auto profile = plan::profile_named("nvidia-node-configuration").value();
  ASSERT_FALSE(profile.requirements.empty());
  for (const auto& one : profile.requirements) {
    const auto advice =
        one.demand ? table().of_condition(one.probe, one.judged(), "") : table().of_metric(one.probe, one.judged(), "");
    EXPECT_TRUE(short_words(advice).ends_with("(" + one.judged() + ")")) << one.id << ": " << short_words(advice);
  }
}

TEST(Actions, every_requirement_of_a_built_in_profile_that_fails_has_an_action) {
  std::size_t judged = 0;
  for (const auto& [name, unused] : plan::embedded_profiles()) {
    const auto profile = plan::profile_named(name).value();
    for (const auto& one : profile.requirements) {
      const auto found = one.demand ? profiles::Found::condition : profiles::Found::metric;
      const bool by_value = std::ranges::any_of(table().rows(), [&](const profiles::ActionRow& row) {
        return row.found == found && row.name == one.judged() && (!row.by.empty() || !row.values.empty());
      });
      const auto advice = one.demand ? table().of_condition(one.probe, one.judged(), "")
                                     : table().of_metric(one.probe, one.judged(), "");
      const bool by_words = one.demand && has_condition_words(one.judged());
      EXPECT_TRUE(by_value || by_words || !advice.says.empty()) << name << ": " << one.probe << "." << one.judged();
      ++judged;
    }
  }
  EXPECT_GT(judged, 500U);
}

TEST(Actions, a_condition_has_its_remedy_in_one_place) {
  plan::RequiredCondition demand;
  demand.at_most = 0;
  for (const auto& row : table().rows()) {
    demand.name = row.name;
    if (row.found != profiles::Found::condition || !has_condition_words(row.name)) continue;
    const std::string sentence =
        condition_sentence(demand, {.name = row.name, .demanded = "<= 0", .seen = Value{1.0}, .met = false}, "");
    EXPECT_EQ(sentence.find(':'), std::string::npos) << sentence;
  }
}

TEST(Actions, a_table_that_is_bent_is_refused_with_its_place) {
  struct Case {
    std::function<void(json&)> change;
    std::string says;
  };
  const auto row = [](json& all) -> json& { return all["rows"][3]; };
  const Case cases[] = {
      {[&](json& all) { row(all)["action"] = "reboot"; }, "t: rows[3].action: 'reboot' is not one of isolate, rma, "},
      {[&](json& all) { row(all)["action"] = "not known"; }, "t: rows[3].action: 'not known' is not one of"},
      {[&](json& all) { row(all)["source"] = "xidd"; }, "t: rows[3].source: there is no source 'xidd'"},
      {[&](json& all) { row(all).erase("source"); }, "t: rows[3]: the field 'source' is missing"},
      {[&](json& all) { row(all)["says"] = std::string(201, 'a'); }, "t: rows[3].says: "},
      {[&](json& all) { row(all)["sayz"] = "x"; }, "t: rows[3]: unknown field 'sayz'"},
      {[&](json& all) { row(all)["metric"] = "wear"; }, "t: rows[3]: has no finding, or several"},
      {[&](json& all) { row(all).erase("condition"); }, "t: rows[3]: has no finding, or several"},
      {[&](json& all) {
         row(all)["metrics"] = {"wear", "gpus"};
       },
       "t: rows[3]: has no finding, or several"},
      {[&](json& all) {
         all["rows"] = {all["rows"][2],
                        {{"metrics", {"wear", "wear"}}, {"action", "watch"}, {"says", "x"}, {"source", "xid"}}};
       },
       "t: rows[1]: metric wear has row 1 already"},
      {[&](json& all) { row(all)["by"] = "xid_numbers"; }, "t: rows[3].by: is given with an action"},
      {[&](json& all) { all["rows"][0]["by"] = "xid_number"; }, "t: rows[0].by: no row has values of the condition"},
      {[&](json& all) { all["rows"][0]["values"] = {"1"}; }, "t: rows[0].values: belongs to a condition"},
      {[&](json& all) { row(all)["values"] = {"11"}; }, "t: rows[3]: condition xid_numbers 11 has row 2 already"},
      {[&](json& all) { row(all)["values"] = json::array(); }, "t: rows[3].values: "},
      {[&](json& all) { all["date"] = "2026-02-30"; }, "t: date: '2026-02-30' is no day"},
      {[&](json& all) { all["sources"]["xid"]["date"] = "2026-13-01"; }, "t: sources.xid.date: '2026-13-01' is no day"},
      {[&](json& all) { all["schema"] = "assay.actions/2"; }, "t: schema: 'assay.actions/2' is not"},
  };
  const std::string whole(profiles::embedded_documents().at(profiles::kActionsDocument));
  ASSERT_TRUE(ActionTable::read(whole, "t"));
  for (const auto& one : cases) {
    json bent = json::parse(whole);
    one.change(bent);
    const auto read = ActionTable::read(bent.dump(), "t");
    ASSERT_FALSE(read) << one.says;
    EXPECT_TRUE(read.error().text().starts_with(one.says)) << read.error().text();
  }
  EXPECT_FALSE(ActionTable::read("{", "t"));
}

TEST(Actions, a_table_of_more_than_180_days_says_so) {
  json document = json::parse(profiles::embedded_documents().at(profiles::kActionsDocument));
  document["date"] = "2026-01-01";
  const auto old = ActionTable::read(document.dump(), "t").value();
  EXPECT_EQ(old.age_words("2026-06-30T23:59:59.000Z"), "table of 2026-01-01");
  EXPECT_EQ(old.age_words("2026-07-01T00:00:00.000Z"),
            "table of 2026-01-01, more than 180 days old: look for a newer one");
  EXPECT_EQ(old.age_words("2025-01-01"), "table of 2026-01-01");
  EXPECT_EQ(old.age_words("yesterday"), "table of 2026-01-01");
}

/// A run of which the record of the only node has `xids`, judged as if its bandwidth were health_gpu's Xid events.
struct XidRun {
  fixture::MemoryRun run{{R"({"limit": {"at_least": 100, "unit": "B/s"}})"}};
  Verdict verdict;
  Advices advices;

  explicit XidRun(const std::string& xids) {
    auto& conditions = run.plan.probes.at("disk").description.conditions;
    std::ranges::find(conditions, "direct_io", &Description::OwnCondition::name)->name = "xid_numbers";
    std::string record = run.record("n1", std::vector<double>(10, 10.0));
    const auto name = record.find("direct_io");
    record.replace(record.find("true", name), 4, json(xids).dump()).replace(name, 9, "xid_numbers");
    run.attempt(0, "exited", record);
    verdict = test::judged(run);
    run.journal.last = "2026-11-28T00:00:00.000Z";
    plan::Plan as_health = run.plan;
    as_health.profile.requirements.at(0).probe = "health_gpu";
    as_health.profile.requirements.at(0).metric = "xid_events";
    advices = advices_of(as_health, run.journal, verdict, run.reader());
  }
};

TEST(Advice, the_record_of_a_failed_cell_says_which_event_it_was) {
  const XidRun given("31, 79");
  ASSERT_EQ(given.verdict.results.at(0).outcome, Outcome::fail) << given.verdict.results.at(0).reason;
  EXPECT_EQ(short_words(given.advices.of(given.verdict.results[0]).value()), "reset (xid_numbers 79)");
  const std::string text = verdict_table(given.verdict, {.width = 1000}, given.advices);
  EXPECT_NE(text.find(" Action: reset (xid_numbers 79).\n"), std::string::npos) << text;
  EXPECT_NE(text.find("actions by the table of 2026-"), std::string::npos) << text;
  EXPECT_NE(text.find("next     first reset n1: The GPU is no longer on the bus"), std::string::npos) << text;
}

TEST(Advice, what_is_not_known_is_said_and_none_of_it_is_in_the_verdict) {
  const XidRun given("4711");
  const std::string text = verdict_table(given.verdict, {.width = 1000}, given.advices);
  EXPECT_NE(text.find(" Action: not known.\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("4711"), std::string::npos) << text;
  EXPECT_EQ(verdict_text(XidRun("79").verdict).find("no longer on the bus"), std::string::npos);
}

TEST(Advice, a_rate_of_a_virtual_machine_may_be_taken_by_other_guests_and_a_wrong_byte_may_not) {
  const auto table_of = [](const char* hypervisor, double mismatches, bool of_gemm = false,
                           const std::string& statistic = "max") {
    fixture::MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}})",
                            R"({"metric": "mismatches", "repeat": {"n": 1}, "limit": {"at_most": 0, "unit": "1"}, )"
                            R"("statistic": ")" +
                                statistic + "\"}"});
    run.journal.node_facts["n1"]["hypervisor"] = hypervisor;
    run.journal.last = "2026-11-28T00:00:00.000Z";
    std::string record = run.record("n1", std::vector<double>(10, 41.0));
    const auto value = record.find("[0.0]", record.find("mismatches"));
    record.replace(value, 5, fmt::format("[{:.1f}]", fmt::join(std::vector<double>(10, mismatches), ",")));
    run.attempt(0, "exited", record);
    const Verdict verdict = test::judged(run);
    plan::Plan plan = run.plan;
    auto& metrics = plan.probes.at("disk").description.metrics;
    std::ranges::find(metrics, "mismatches", &Description::OwnMetric::name)->kind = MetricKind::fault;
    if (of_gemm) {
      plan.profile.requirements.at(0).probe = "host_gemm";
      plan.profile.requirements.at(0).metric = "throughput";
    }
    return verdict_table(verdict, {.width = 1000}, advices_of(plan, run.journal, verdict, run.reader()));
  };
  EXPECT_NE(table_of("KVM", 0, true).find(" Action: watch (hypervisor).\n"), std::string::npos);
  EXPECT_NE(table_of("none", 0, true).find(" Action: drain (throughput).\n"), std::string::npos);
  const std::string guest = table_of("KVM", 0);
  EXPECT_NE(guest.find(" Action: watch (hypervisor).\n"), std::string::npos) << guest;
  EXPECT_NE(
      guest.find("first watch n1: It is a virtual machine, of which other guests may take these rates: bare metal "
                 "or a quiet host decides. Then measure again."),
      std::string::npos)
      << guest;
  EXPECT_NE(table_of("none", 0).find(" Action: not known.\n"), std::string::npos);
  EXPECT_NE(table_of("KVM", 3).find("next     first drain n1: Data came back wrong"), std::string::npos)
      << table_of("KVM", 3);
  const std::string by_median = table_of("KVM", 3, false, "median");
  EXPECT_NE(by_median.find("next     first drain n1: Data came back wrong"), std::string::npos) << by_median;
}

TEST(Advice, a_condition_that_is_not_met_has_its_action_though_the_cell_did_not_fail) {
  fixture::MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}})"});
  run.attempt(0, "exited", run.record("n1", test::kSteady110));
  Verdict verdict = test::judged(run);
  ASSERT_EQ(verdict.results.at(0).outcome, Outcome::pass);
  EXPECT_FALSE(advices_of(run.plan, run.journal, verdict, run.reader()).of(verdict.results[0]));
  verdict.results[0].outcome = Outcome::inconclusive;
  EXPECT_FALSE(advices_of(run.plan, run.journal, verdict, run.reader()).of(verdict.results[0])) << "asks for none";
  verdict.results[0].conditions = std::vector<ConditionSeen>{
      {.name = "ecc_mode", .demanded = "= true", .seen = Value{false}, .met = false},
      {.name = "throttle_hw_thermal_s", .demanded = "<= 0", .seen = Value{2.0}, .met = false},
      {.name = "remapped_rows_delta", .demanded = "<= 0", .seen = Value{std::int64_t{0}}, .met = true}};
  const auto advices = advices_of(run.plan, run.journal, verdict, run.reader());
  EXPECT_EQ(short_words(advices.of(verdict.results[0]).value()), "reconfigure (ecc_mode)");
}

TEST(Advice, the_most_urgent_action_comes_first_and_one_action_of_many_subjects_is_one_line) {
  Verdict verdict;
  Advices advices{.known = {}, .today = "2026-11-28"};
  for (const char* metric : {"ecc_corrected", "pcie_width", "pcie_generation", "retired_pages"}) {
    Result& one = verdict.results.emplace_back();
    one.requirement = metric;
    one.node = "n" + std::to_string(verdict.results.size());
    one.subject = {"gpu", "GPU-" + one.node};
    one.outcome = Outcome::fail;
    advices.known.emplace(&one, table().of_metric("health_gpu", metric));
  }
  Result& warning = verdict.results.emplace_back(verdict.results[3]);
  warning.node = "n9", warning.required = false;
  advices.known.emplace(&warning, table().of_metric("health_gpu", "retired_pages"));
  verdict.localised.push_back({.requirements = {"retired_pages"},
                               .state = SearchState::found,
                               .culprits = {{.fault = Fault::node, .nodes = {"n7"}, .words = "node n7: short"}}});
  std::string lines;
  for (const auto& one : to_do(verdict, advices)) {
    lines += fmt::format("{} ({}):", one.advice.action, fmt::join(one.findings, ", "));
    for (const auto& subject : one.subjects) lines += " " + subject;
    lines += "\n";
  }
  EXPECT_EQ(
      lines,
      "isolate (retired_pages): n4 gpu GPU-n4\ndrain (node): node n7\n"
      "reconfigure (pcie_width, pcie_generation): n2 gpu GPU-n2 n3 gpu GPU-n3\nwatch (ecc_corrected): n1 gpu GPU-n1\n");
  verdict.overall = Overall::rejected;
  const std::string text = verdict_table(verdict, {.width = 1000}, advices);
  EXPECT_NE(text.find("next     first isolate n4 gpu GPU-n4: "), std::string::npos) << text;
}

TEST(Advice, many_parts_of_one_node_are_counted_and_one_or_two_are_named) {
  Verdict verdict;
  for (const char* gpu : {"0", "1", "2", "3"}) {
    Result& one = verdict.results.emplace_back();
    one.node = gpu[0] == '3' ? "n2" : "n1";
    one.subject = {"gpu", std::string("GPU-") + gpu};
    one.outcome = Outcome::fail;
  }
  Advices advices{.known = {}, .today = "2026-11-28"};
  for (const auto& one : verdict.results) advices.known.emplace(&one, table().of_metric("health_gpu", "pcie_width"));
  EXPECT_EQ(to_do(verdict, advices).at(0).subjects, (std::vector<std::string>{"n1 (gpu: 3)", "n2 gpu GPU-3"}));
}

}  // namespace
}  // namespace assay::judge
