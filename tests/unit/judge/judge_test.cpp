// The judge: what passes, and above all what does not.
#include <gtest/gtest.h>

#include "orchestrator/judge/cells/judge.h"
#include "tests/unit/judge/judged.h"

namespace assay::judge {
namespace {

using fixture::MemoryRun;
using namespace test;

/// Median 110, order-statistic interval [100, 120] at level 0.979; no sample follows the one before it.
const std::vector<double> kSpread110 = {109, 90, 111, 130, 105, 112, 100, 120, 108, 115};

}  // namespace

TEST(judge, a_steady_value_above_the_limit_is_accepted) {
  MemoryRun run({kAtLeast100});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  const Verdict verdict = judged(run);
  EXPECT_EQ(verdict.results.at(0).outcome, Outcome::pass);
  EXPECT_EQ(verdict.overall, Overall::accepted);
  EXPECT_EQ(verdict.results.at(0).evidence, std::vector<std::string>{"records/0001-disk-n1/1/0.jsonl"});
}

TEST(judge, a_value_within_the_guard_band_accepts_nothing) {
  MemoryRun run({R"({"limit": {"at_least": 109, "unit": "B/s"}})"});
  run.attempt(0, "exited", run.record("n1", kSpread110));
  EXPECT_EQ(only(run).outcome, Outcome::conditional_pass);
  EXPECT_EQ(judged(run).overall, Overall::incomplete);
}

TEST(judge, the_published_guard_band_example_comes_out) {
  // JCGM 106:2012, 7.4: measured 13.6 with u = 1.8 between 12.5 and 16.3 conforms with probability 0.663.
  EXPECT_NEAR(normal_cdf((16.3 - 13.6) / 1.8) - normal_cdf((12.5 - 13.6) / 1.8), 0.663, 5e-4);
}

TEST(judge, nothing_measured_is_never_accepted) {
  const MemoryRun run({kAtLeast100});
  EXPECT_EQ(only(run).outcome, Outcome::not_measured);
  EXPECT_EQ(judged(run).overall, Overall::incomplete);
}

TEST(judge, a_missing_probe_is_not_measured_and_named) {
  MemoryRun run({kAtLeast100});
  run.plan = *plan::make_plan(fixture::profile({kAtLeast100}), fixture::site(1), {}, {});
  EXPECT_EQ(only(run).outcome, Outcome::not_measured);
  EXPECT_EQ(only(run).reason, "the probe disk is not part of this build");
  EXPECT_EQ(judged(run).overall, Overall::incomplete);
}

TEST(judge, a_missing_end_is_an_error) {
  MemoryRun run({kAtLeast100});
  std::string text = run.record("n1", kSteady110);
  text.erase(text.rfind("{\"sequence\""));
  run.attempt(0, "exited", text);
  EXPECT_EQ(only(run).outcome, Outcome::error);
  EXPECT_NE(only(run).reason.find("'end' is missing"), std::string::npos);
}

TEST(judge, a_record_of_another_host_is_refused) {
  MemoryRun run({kAtLeast100});
  run.attempt(0, "exited", run.record("n7", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::error);
  EXPECT_NE(only(run).reason.find("'n7'"), std::string::npos);
}

TEST(judge, evidence_that_is_gone_is_an_error) {
  MemoryRun run({kAtLeast100});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  run.files.clear();
  EXPECT_EQ(only(run).outcome, Outcome::error);
}

TEST(judge, a_condition_unmet_or_absent_is_inconclusive) {
  constexpr const char* kCold =
      R"({"limit": {"at_least": 100, "unit": "B/s"}, "conditions": [{"name": "direct_io", "equals": true}]})";
  MemoryRun unmet({kCold});
  unmet.attempt(0, "exited", unmet.record("n1", kSteady110, false));
  EXPECT_EQ(only(unmet).outcome, Outcome::inconclusive);
  EXPECT_EQ(
      only(unmet).reason,
      "The page cache took part: name a directory on a local file system that can do direct I/O, with --directory.");

  MemoryRun absent(
      {R"({"limit": {"at_least": 100, "unit": "B/s"}, "conditions": [{"name": "clock_synchronised", "equals": true}]})"});
  absent.attempt(0, "exited", absent.record("n1", kSteady110));
  EXPECT_EQ(only(absent).outcome, Outcome::inconclusive);
  EXPECT_EQ(only(absent).reason,
            "The condition clock_synchronised = true is demanded, and it was not recorded (Whether the kernel reports, "
            "where it can be queried, that its clock follows a time source).");
}

TEST(judge, too_few_samples_are_inconclusive) {
  MemoryRun run({kAtLeast100});
  run.attempt(0, "exited", run.record("n1", std::vector<double>(9, 110.0)));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_EQ(only(run).reason, "9 samples measured in attempt 1; 10 are required.");
}

TEST(judge, a_crash_after_a_good_attempt_is_not_passed_over) {
  MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 2}})"});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  run.attempt(0, "crashed", "", "signal 11");
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
}

TEST(judge, a_good_attempt_after_a_crash_is_not_accepted_either) {
  MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 2}})"});
  run.attempt(0, "deadline", "", "killed");
  run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
}

TEST(judge, an_interrupted_attempt_is_a_deviation_and_no_more) {
  MemoryRun run({kAtLeast100});
  run.attempt(0, "interrupted", "", "assay was killed while it ran");
  run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::pass);
  ASSERT_EQ(judged(run).deviations.size(), 1U);
  EXPECT_EQ(judged(run).overall, Overall::accepted);
}

TEST(judge, a_probe_that_read_another_place_than_the_machines_own_is_a_deviation) {
  const std::pair<const char*, const char*> kOwn[] = {{"root", "/"},
                                                      {"nvml_library", "libnvidia-ml.so.1"},
                                                      {"amd_smi_library", "libamd_smi.so.26"},
                                                      {"lldp", "lldpctl"},
                                                      {"tcti", "device:/dev/tpmrm0"}};
  for (const auto& [name, own] : kOwn) {
    MemoryRun run({kAtLeast100});
    run.attempt(0, "exited", run.record("n1", kSteady110));
    auto& probe = *run.plan.probes.find(run.plan.steps.front().probe);
    probe.second.description.parameters.push_back({.name = name, .fallback = own});
    const auto read_from = [&](const std::string& place) {
      Values parameters = run.plan.steps.front().parameters;
      parameters[name] = place;
      run.plan.steps.front().parameters = std::move(parameters);
    };
    for (const char* plain : {own, ""}) {
      read_from(plain);
      EXPECT_TRUE(judged(run).deviations.empty()) << name;
    }
    read_from("/tmp/tree");
    ASSERT_EQ(judged(run).deviations.size(), 1U) << name;
    EXPECT_EQ(judged(run).deviations.front().what,
              fmt::format("{} read {}=/tmp/tree, not {}: what it states need not be of the tested machine.",
                          probe.first, name, own));
  }
}

TEST(judge, a_skip_beside_a_good_attempt_is_not_passed_over) {
  MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 2}})"});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  std::ostringstream skipped;
  Recorder recorder(
      skipped, fixture::kSpec,
      {.probe = "disk", .revision = 1, .parameters = run.plan.steps[0].parameters, .host = {{"name", "n1"}}});
  recorder.end({.status = Status::skip, .reason = "the device fell off the bus"});
  run.attempt(0, "exited", skipped.str());
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
}

TEST(judge, more_attempts_than_planned_accept_nothing) {
  MemoryRun run({kAtLeast100});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
}

TEST(judge, a_run_killed_again_and_again_in_one_step_accepts_nothing) {
  MemoryRun run({kAtLeast100});
  for (int i = 0; i < 4; ++i) run.attempt(0, "interrupted", "", "assay was killed while it ran");
  run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
}

TEST(judge, a_limit_beyond_every_number_is_inconclusive_and_leaves_a_readable_verdict) {
  MemoryRun run({R"({"limit": {"at_most": 1, "unit": "B/s", "of": "best_sample"}})"});
  run.plan.profile.requirements[0].limit.at_most = 1e308;  // no profile can say so; a plan in memory can
  run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_TRUE(read_verdict(verdict_text(judged(run)), "v"));
}

TEST(judge, an_unfinished_run_is_never_accepted) {
  MemoryRun run({kAtLeast100});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  run.journal.finished = false;
  EXPECT_EQ(judged(run).overall, Overall::incomplete);
}

TEST(judge, one_step_is_judged_from_its_own_attempts_alone) {
  MemoryRun run({R"({"limit": {"at_least": 109, "unit": "B/s"}})",
                 R"({"limit": {"at_least": 0.9, "of": "fleet_median", "unit": "B/s"}})"},
                8);
  for (std::size_t i = 0; i < 8; ++i) run.attempt(i, "exited", run.record("n" + std::to_string(i + 1), kSpread110));
  Journal part;
  part.attempts = {run.journal.attempts[1]};
  part.node_facts["n2"] = run.journal.node_facts["n2"];
  const std::vector<plan::Cell> cells = {run.plan.coverage[1], run.plan.coverage[9]};
  const auto results = judge_step(run.plan, run.plan.steps[1], cells, part, run.reader());
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].outcome, Outcome::conditional_pass);
  EXPECT_EQ(results[0].node, "n2");
  EXPECT_EQ(results[1].outcome, Outcome::inconclusive);  // the fleet is not in the part
  EXPECT_EQ(judged(run).results[9].outcome, Outcome::pass);
}

TEST(judge, what_was_left_out_and_a_clock_that_jumped_are_told) {
  MemoryRun run({kAtLeast100});
  run.journal.left_out[run.plan.steps[0].id] = "the run's deadline was too near for it";
  run.journal.clock_jumps.push_back({.time = "2026-01-05T06:00:00.000Z", .by_s = -3600});
  EXPECT_EQ(only(run).outcome, Outcome::not_measured);
  EXPECT_EQ(only(run).reason, "the run's deadline was too near for it");
  EXPECT_EQ(judged(run).deviations.at(0).what, "1 steps did not start: the run's deadline was too near for it");
  EXPECT_NE(judged(run).deviations.at(1).what.find("jumped by -3600.0 s"), std::string::npos);
}

TEST(judge, a_share_of_another_metric_carries_that_metrics_uncertainty) {
  MemoryRun run({R"({"limit": {"at_least": 0.9, "unit": "B/s", "of": "metric:raw_bandwidth"}})"});
  run.attempt(0, "exited", run.record("n1", kSteady110, true, kSpread110));
  EXPECT_EQ(*only(run).reference, 110);
  EXPECT_NEAR(*only(run).limit_low, 99, 1e-9);
  EXPECT_GT(*only(run).uncertainty, 3);
}

TEST(judge, a_share_of_the_best_sample_judges_steadiness) {
  MemoryRun run({R"({"limit": {"at_least": 0.5, "unit": "B/s", "of": "best_sample"}})"});
  run.attempt(0, "exited", run.record("n1", kSpread110));
  EXPECT_EQ(*only(run).reference, 130);
  EXPECT_EQ(only(run).outcome, Outcome::pass);
}

TEST(judge, a_share_of_nothing_is_no_pass) {
  for (const char* limit : {R"({"limit": {"at_least": 0.5, "unit": "B/s", "of": "best_sample"}})",
                            R"({"limit": {"at_least": 0.9, "unit": "B/s", "of": "metric:raw_bandwidth"}})"}) {
    MemoryRun run({limit});
    const std::vector<double> nothing(10, 0.0);
    run.attempt(0, "exited", run.record("n1", nothing, true, nothing));
    EXPECT_EQ(only(run).outcome, Outcome::inconclusive) << limit;
    EXPECT_NE(only(run).reason.find("is 0"), std::string::npos) << only(run).reason;
    EXPECT_EQ(only(run).value, 0);
  }
}

TEST(judge, a_fleet_of_seven_has_no_median_to_refer_to) {
  MemoryRun run({R"({"limit": {"at_least": 0.5, "unit": "B/s", "of": "fleet_median"}})"}, 7);
  for (std::size_t i = 0; i < 7; ++i) run.attempt(i, "exited", run.record("n" + std::to_string(i + 1), kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::inconclusive);
  EXPECT_EQ(only(run).reason, "Needs 8 nodes for comparison; only 7 took part under the required conditions.");
}

TEST(judge, a_fleet_median_is_of_numbers_that_are_fit_to_be_judged) {
  constexpr const char* kShare = R"({"limit": {"at_least": 0.9, "unit": "B/s", "of": "fleet_median"},
                                     "conditions": [{"name": "direct_io", "equals": true}]})";
  MemoryRun run({kShare}, 14);
  for (std::size_t node = 0; node < 8; ++node)
    run.attempt(node, "exited", run.record("n" + std::to_string(node + 1), kSteady110));
  // Through the page cache and ten times as fast: neither judged nor a measure for the others.
  for (std::size_t node = 8; node < 14; ++node)
    run.attempt(node, "exited", run.record("n" + std::to_string(node + 1), std::vector<double>(10, 1100.0), false));
  const Verdict verdict = judged(run);
  EXPECT_EQ(*verdict.results.at(0).reference, 110);
  EXPECT_EQ(verdict.results.at(0).outcome, Outcome::pass);
  EXPECT_EQ(verdict.results.at(8).outcome, Outcome::inconclusive);
}

TEST(judge, a_drive_that_is_not_there_leaves_the_node_not_measured) {
  MemoryRun run({R"({"scope": "drive", "limit": {"at_least": 100, "unit": "B/s"}})"}, 1, {{"drive", 3}});
  run.attempt(0, "exited", run.record_of_drives(2, kSteady110));
  const Verdict verdict = judged(run);
  ASSERT_EQ(verdict.results.size(), 3U);
  EXPECT_EQ(verdict.results[0].subject, (Subject{"drive", "d1"}));
  EXPECT_EQ(verdict.results[1].outcome, Outcome::pass);
  EXPECT_EQ(verdict.results[2].subject, (Subject{"node", "n1"}));
  EXPECT_EQ(verdict.results[2].outcome, Outcome::not_measured);
  EXPECT_EQ(verdict.results[2].reason, "2 subjects of kind drive measured; the design has 3.");
  EXPECT_EQ(verdict.overall, Overall::incomplete);
}

TEST(judge, a_profile_that_leaves_the_number_to_the_site_finds_the_missing_part_by_it) {
  MemoryRun run({R"({"scope": "drive", "limit": {"at_least": 100, "unit": "B/s"}})"}, 1, {{"drive", plan::kOfSite}});
  run.attempt(0, "exited", run.record_of_drives(2, kSteady110));
  run.plan.site.nodes[0].parts = {{"drive", 2}};
  EXPECT_EQ(judged(run).overall, Overall::accepted);
  run.plan.site.nodes[0].parts = {{"drive", 3}};
  EXPECT_EQ(judged(run).results.at(2).reason, "2 subjects of kind drive measured; the design has 3.");
  run.plan.site.nodes[0].parts = {};
  const Verdict untold = judged(run);
  EXPECT_EQ(untold.overall, Overall::incomplete);
  EXPECT_EQ(untold.results.at(2).outcome, Outcome::not_measured);
  EXPECT_NE(untold.results.at(2).reason.find("the site does not say how many node n1 has (parts)"), std::string::npos);
}

TEST(judge, as_many_drives_as_designed_are_accepted_and_one_more_is_an_error) {
  MemoryRun run({R"({"scope": "drive", "limit": {"at_least": 100, "unit": "B/s"}})"}, 1, {{"drive", 3}});
  MemoryRun surplus = run;
  run.attempt(0, "exited", run.record_of_drives(3, kSteady110));
  EXPECT_EQ(judged(run).overall, Overall::accepted);
  surplus.attempt(0, "exited", surplus.record_of_drives(4, kSteady110));
  EXPECT_EQ(judged(surplus).results.at(0).outcome, Outcome::error);
  EXPECT_EQ(judged(surplus).overall, Overall::incomplete);
}

TEST(judge, one_machine_reached_under_two_addresses_is_caught_by_its_name_and_boot) {
  MemoryRun run({kAtLeast100}, 2);
  run.journal.node_facts["n1"] = {{"name", "gpu-7"}, {"boot_id", "b-1"}};
  run.journal.node_facts["n2"] = {{"name", "gpu-7"}, {"boot_id", "b-1"}};
  run.attempt(0, "exited", run.record("gpu-7", kSteady110));
  run.attempt(1, "exited", run.record("gpu-7", kSteady110));
  EXPECT_EQ(judged(run).results.at(0).outcome, Outcome::error);
  EXPECT_NE(judged(run).results.at(0).reason.find("the nodes n1 and n2 are one machine: host name gpu-7, boot b-1"),
            std::string::npos);
  // Two containers of one machine share its boot, not their names; two machines may share a name, not a boot.
  run.journal.node_facts["n2"]["boot_id"] = "b-2";
  EXPECT_EQ(judged(run).overall, Overall::accepted);
}

TEST(judge, one_failing_node_rejects_the_whole_and_is_named) {
  MemoryRun run({kAtLeast100}, 2);
  run.attempt(0, "exited", run.record("n1", kSteady110));
  run.attempt(1, "exited", run.record("n2", std::vector<double>(10, 90.0)));
  const Verdict verdict = judged(run);
  EXPECT_EQ(verdict.overall, Overall::rejected);
  EXPECT_NE(verdict.reason.find("r0 on n2"), std::string::npos);
}

TEST(judge, an_advisory_failure_neither_rejects_nor_accepts) {
  MemoryRun run({R"({"limit": {"at_least": 200, "unit": "B/s"}, "severity": "advisory"})"});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::fail);
  EXPECT_EQ(judged(run).overall, Overall::incomplete);
}

TEST(judge, quick_runs_and_those_that_leave_something_out_accept_nothing) {
  MemoryRun quick({kAtLeast100});
  quick.attempt(0, "exited", quick.record("n1", kSteady110));
  quick.plan.quick = true;
  EXPECT_EQ(judged(quick).overall, Overall::incomplete);
  quick.plan.quick = false;
  quick.plan.only = {"r0"};
  EXPECT_EQ(judged(quick).overall, Overall::incomplete);
}

TEST(judge, an_exact_count_needs_one_sample_and_no_guard_band) {
  MemoryRun run(
      {R"({"metric": "mismatches", "statistic": "max", "repeat": {"n": 1}, "limit": {"at_most": 0, "unit": "1"}})"});
  run.attempt(0, "exited", run.record("n1", kSteady110));
  EXPECT_EQ(only(run).outcome, Outcome::pass);
}

TEST(verdict, is_written_and_read_back_and_refuses_a_changed_byte) {
  MemoryRun run({kAtLeast100});
  run.attempt(0, "exited", run.record("n1", kSpread110));
  const std::string text = verdict_text(judged(run));
  EXPECT_EQ(text, verdict_text(judged(run)));
  ASSERT_TRUE(read_verdict(text, "v")) << read_verdict(text, "v").error().text();
  EXPECT_FALSE(read_verdict(text + " ", "v"));
}

}  // namespace assay::judge
