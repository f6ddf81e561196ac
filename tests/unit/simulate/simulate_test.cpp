// simulate: a fleet that does not exist gives a run that looks like one, finds what is wrong with it, and says
// everywhere that nothing was measured.
#include "orchestrator/simulate/simulate.h"

#include <algorithm>
#include <ranges>
#include <stdexcept>

#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/plan/catalogue.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/statistics.h"
#include "tests/unit/simulate/rehearsal.h"

namespace assay::simulate {
namespace {

using Words = std::vector<std::string>;

TEST(simulate, a_healthy_fleet_passes_every_cell_and_is_not_accepted) {
  const Rehearsal fleet(plan_of({kAlone, kClean, kTogether, kFleet}, {.nodes = 40, .per_rack = 8}));
  for (const auto& result : fleet.verdict.results)
    EXPECT_EQ(result.outcome, judge::Outcome::pass) << result.requirement << ": " << result.reason;
  EXPECT_EQ(fleet.verdict.overall, judge::Overall::incomplete);
  EXPECT_EQ(judge::exit_code(fleet.verdict.overall), 3);
  EXPECT_TRUE(fleet.verdict.reason.starts_with(
      "SIMULATION, which accepts or rejects nothing; had it been measured, it would be accepted: "))
      << fleet.verdict.reason;
  EXPECT_TRUE(fleet.summary.false_alarms.empty());
  EXPECT_EQ(fleet.summary.tests, 0U);
}

TEST(simulate, a_demand_is_met_by_every_node_but_those_with_a_fault_that_names_its_condition) {
  const std::string floor = R"({"demand": {"name": "direct_io", "version": {"at_least": "570", "below": "590"}}})";
  const std::string range = R"({"demand": {"name": "direct_io", "version": {"outside": [{"below": "580"}]}}})";
  const std::string drives =
      R"({"scope": "drive", "demand": {"name": "direct_io", "one_of": ["off"]}, "parameters": {"size": 3}})";
  const plan::Faults faults{.faults = {{.node = "n00001", .metric = "direct_io", .factor = 0.5}}};
  const auto outcomes = [](const Rehearsal& fleet) {
    std::map<std::string, int> all;
    for (const auto& result : fleet.verdict.results)
      ++all[result.node + " " + std::string(judge::to_string(result.outcome))];
    return all;
  };
  EXPECT_EQ(outcomes(Rehearsal(plan_of({floor, range}, {.nodes = 2}))),
            (std::map<std::string, int>{{"n00000 pass", 2}, {"n00001 pass", 2}}));
  plan::Plan of_drives = *plan::make_plan(fixture::profile({drives}, {{"drive", 2}}), simulated_site({.nodes = 2}),
                                          fixture::programs(), {});
  of_drives.simulation = plan::Simulation{.seed = 1, .faults = faults};
  EXPECT_EQ(outcomes(Rehearsal(std::move(of_drives))),
            (std::map<std::string, int>{{"n00000 pass", 2}, {"n00001 fail", 2}}));
}

TEST(simulate, a_metric_with_a_limit_in_units_and_one_of_its_fleet_meets_both) {
  const std::string fleet_too = R"({"limit": {"at_least": 0.9, "of": "fleet_median", "unit": "B/s"}})";
  const std::string best_too = R"({"limit": {"at_least": 0.75, "of": "best_sample", "unit": "B/s"}})";
  EXPECT_EQ(Rehearsal(plan_of({kAlone, fleet_too, best_too}, {.nodes = 10})).verdict.counts.at("pass"), 30U);
}

TEST(simulate, what_nothing_limits_in_units_is_about_a_million_where_it_is_a_rate_and_else_about_one) {
  const std::string share = R"({"probe": "checked", "scope": "group", "metric": "share",
                                "limit": {"at_least": 0.5, "of": "fleet_median", "unit": "1"}})";
  const std::string clean = R"({"probe": "checked", "scope": "group", "metric": "mismatches", "statistic": "max",
                                "at": "every", "repeat": {"n": 1}, "limit": {"at_most": 0, "unit": "1"}})";
  const Rehearsal fleet(plan_of({kFleet, clean, share}, {.nodes = 4, .per_rack = 2}));
  EXPECT_NEAR(*fleet.verdict.results.front().value, 1e6, 1e5);
  ASSERT_TRUE(fleet.verdict.results.back().value) << fleet.verdict.results.back().reason;
  EXPECT_NEAR(*fleet.verdict.results.back().value, 1, 0.1);
}

TEST(simulate, a_leak_between_tenants_is_found_as_a_link_between_a_node_and_a_path) {
  const auto profile = plan::profile_named("tenants-apart");
  ASSERT_TRUE(profile) << profile.error().text();
  site::Site site = simulated_site({.nodes = 6});
  tell_parts(*profile, site);
  const auto newest_first = std::views::reverse(plan::known_probes());
  const auto known = std::ranges::find(newest_first, plan::kCrossingProbe, &plan::KnownProbe::name);
  const plan::Program probe{.name = plan::kCrossingProbe,
                            .sha256 = std::string(64, '1'),
                            .path = "/p",
                            .description = *read_description(known->document.dump(), "catalogue")};
  const auto with = [&](plan::Faults faults) {
    auto plan = plan::make_plan(*profile, site, {probe}, {});
    if (!plan) throw std::runtime_error(plan.error().text());
    plan->simulation = plan::Simulation{.seed = 1, .faults = std::move(faults)};
    return Rehearsal(std::move(*plan));
  };
  const Rehearsal apart = with({});
  EXPECT_EQ(apart.verdict.counts.at("pass"), apart.verdict.results.size()) << apart.verdict.reason;
  const plan::Faults leak{
      .faults = {{.node = "n00001", .other = "tenant-b-etcd", .metric = "answered", .factor = 0.5}}};
  EXPECT_FALSE(check_faults(leak, site, "faults"));
  const Rehearsal open = with(leak);
  EXPECT_EQ(open.summary.found, (Words{"link n00001 tenant-b-etcd"}));
  EXPECT_TRUE(open.summary.missed.empty() && open.summary.false_alarms.empty());
  EXPECT_EQ(open.verdict.counts.at("fail"), 1U);
}

TEST(simulate, a_failing_fleet_is_not_rejected_either) {
  const Rehearsal fleet(plan_of({kAlone}, {.nodes = 4}, {.faults = {{.node = "n00002", .factor = 0.5}}}));
  EXPECT_EQ(fleet.verdict.overall, judge::Overall::incomplete);
  EXPECT_NE(fleet.verdict.reason.find("it would be rejected"), std::string::npos);
  EXPECT_EQ(fleet.verdict.deviations.front().what,
            "The run is a simulation: nothing was measured, every record is made up.");
}

TEST(simulate, a_bad_node_is_found_alone_and_by_the_metric_that_it_is_bad_in) {
  const Rehearsal fleet(plan_of(
      {kAlone, kClean}, {.nodes = 10},
      {.faults = {{.node = "n00003", .factor = 0.8}, {.node = "n00005", .metric = "mismatches", .factor = 0.5}}}));
  EXPECT_EQ(fleet.summary.found, (Words{"node n00003", "node n00005"}));
  EXPECT_TRUE(fleet.summary.missed.empty());
  EXPECT_TRUE(fleet.summary.false_alarms.empty());
  EXPECT_EQ(fleet.verdict.counts.at("fail"), 2U);
}

TEST(simulate, a_node_and_a_link_that_are_bad_only_together_with_others_are_localised) {
  const plan::Faults faults{
      .faults = {{.node = "n00003", .factor = 0.5}, {.node = "n00010", .other = "n00040", .factor = 0.5}}};
  const Rehearsal fleet(plan_of({kTogether}, {.nodes = 64}, faults));
  EXPECT_EQ(fleet.summary.found, (Words{"node n00003", "link n00010 n00040"}));
  EXPECT_TRUE(fleet.summary.false_alarms.empty());
  ASSERT_EQ(fleet.verdict.localised.size(), 1U);
  EXPECT_EQ(fleet.summary.tests, tests_in(fleet.run.journal).size());
  EXPECT_LE(fleet.summary.tests, fleet.summary.tests_budget);
  EXPECT_GT(fleet.summary.localisation_s, 0);
}

TEST(simulate, a_node_that_fails_alone_is_left_out_of_the_search) {
  const Rehearsal fleet(plan_of({kAlone, kTogether}, {.nodes = 64}, {.faults = {{.node = "n00003", .factor = 0.5}}}));
  ASSERT_EQ(fleet.verdict.localised.size(), 1U);
  EXPECT_EQ(fleet.verdict.localised[0].excluded, Words{"n00003"});
  EXPECT_EQ(fleet.summary.tests, 1U);
  EXPECT_EQ(fleet.summary.found, Words{"node n00003"});
}

TEST(simulate, a_dead_node_is_not_measured_and_the_others_go_on) {
  const Rehearsal fleet(plan_of({kAlone, kByRack}, {.nodes = 8, .per_rack = 4}, {.dead = {"n00001"}}));
  EXPECT_EQ(fleet.summary.found, Words{"dead n00001"});
  EXPECT_EQ(fleet.verdict.counts.at("pass"), 8U);
  EXPECT_EQ(fleet.verdict.counts.at("not_measured"), 2U);
}

TEST(simulate, a_flapping_node_fails_in_some_seeds_and_not_in_others) {
  std::size_t failed = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    failed += Rehearsal(plan_of({kAlone}, {.nodes = 4},
                                {.faults = {{.node = "n00001", .factor = 0.5, .probability = 0.5}}}, seed))
                  .verdict.counts.at("fail");
  }
  EXPECT_GT(failed, 5U);
  EXPECT_LT(failed, 35U);
}

TEST(simulate, a_wide_spread_gives_false_alarms_that_are_counted) {
  const Rehearsal fleet(plan_of({kAlone}, {.nodes = 200}, {.spread = {{"bandwidth", 0.05}}}));
  EXPECT_FALSE(fleet.summary.false_alarms.empty());
}

TEST(simulate, nodes_work_side_by_side_and_steps_of_several_wait_for_all) {
  const Rehearsal fleet(plan_of({kAlone, kTogether}, {.nodes = 10}));
  EXPECT_EQ(fleet.run.duration_s, 20);  // two steps of 10 s, which is what the probes say
}

TEST(simulate, the_same_seed_gives_the_same_run_and_another_seed_another) {
  const auto journal = [](std::uint64_t seed) {
    return Rehearsal(plan_of({kAlone}, {.nodes = 5}, {}, seed)).run.journal_text;
  };
  EXPECT_EQ(journal(3), journal(3));
  EXPECT_NE(journal(3), journal(4));
}

TEST(simulate, a_value_within_the_guard_band_is_measured_again) {
  const std::string close =
      R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 2, "more_attempts": 3}})";
  const Rehearsal fleet(plan_of(
      {close}, {.nodes = 1},
      {.faults = {{.node = "n00000", .factor = 0.9615}}, .spread = {{"bandwidth", 0}}, .healthy = {.run_to_run = 0}}));
  EXPECT_EQ(fleet.summary.attempts, 5U);
}

TEST(simulate, pairs_of_gpus_within_a_node_are_as_many_as_its_design_has_and_no_false_alarm) {
  const std::string pairs = R"({"scope": "pair", "limit": {"at_least": 100, "unit": "B/s"}})";
  plan::Plan plan = *plan::make_plan(fixture::profile({pairs}, {{"gpu", 8}, {"pair", 56}}),
                                     simulated_site({.nodes = 2}), fixture::programs(), {});
  plan.simulation = plan::Simulation{.seed = 1, .faults = {}};
  const Rehearsal fleet(plan);
  EXPECT_GE(fleet.verdict.counts.at("pass"), 111U);  // of a hundred healthy pairs one may stay open by chance
  EXPECT_EQ(fleet.verdict.counts.at("fail"), 0U);
  EXPECT_EQ(fleet.verdict.results.size(), 112U);
  EXPECT_EQ(fleet.summary.false_alarms, Words{});
  plan.simulation->faults.faults = {{.node = "n00001", .factor = 0.5}};
  const Rehearsal faulty(plan);
  EXPECT_EQ(faulty.summary.found, Words{"node n00001"});
  EXPECT_EQ(faulty.summary.false_alarms, Words{});
}

TEST(simulate, runs_of_one_node_differ_by_as_much_as_the_faults_file_says) {
  const std::string repeated = R"({"limit": {"at_least": 100, "unit": "B/s"}})";
  const auto values = [&](double run_to_run) {
    std::vector<double> all;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const Rehearsal fleet(
          plan_of({repeated}, {.nodes = 1}, {.healthy = {.margin = 0.1, .spread = 0, .run_to_run = run_to_run}}, seed));
      all.push_back(fleet.verdict.results.at(0).value.value());
    }
    return robust_sigma(all) / median(all);
  };
  EXPECT_LT(values(0), 0.002);
  EXPECT_GT(values(0.02), 0.012);
  EXPECT_LT(values(0.02), 0.03);
}

TEST(simulate, the_summary_says_what_healthy_nodes_are_like) {
  const Rehearsal fleet(plan_of({kAlone}, {.nodes = 2}));
  EXPECT_NE(
      summary_text(fleet.summary)
          .find("Simulated healthy nodes lie 4 % beyond their limits, differ by 0.5 %, and runs of one node by 0.5 %"),
      std::string::npos)
      << summary_text(fleet.summary);
  EXPECT_EQ(to_json(fleet.summary).at("healthy").at("run_to_run"), 0.005);
}

TEST(simulate, a_margin_below_the_limit_fails_every_node) {
  const Rehearsal fleet(plan_of({kAlone}, {.nodes = 4}, {.healthy = {.margin = -0.05}}));
  EXPECT_EQ(fleet.verdict.counts.at("fail"), 4U);
}

TEST(simulate, a_node_that_only_its_pairs_show_counts_as_found) {
  const std::string pairs =
      R"({"probe": "fabric", "scope": "pair", "rounds": 1, "limit": {"at_least": 100, "unit": "B/s"}})";
  const Rehearsal fleet(plan_of({pairs}, {.nodes = 4}, {.faults = {{.node = "n00003", .factor = 0.5}}}));
  EXPECT_EQ(fleet.verdict.counts.at("fail"), 1U);
  EXPECT_EQ(fleet.summary.found, Words{"node n00003"});
  EXPECT_EQ(fleet.summary.missed, Words{});
}

TEST(simulate, a_dead_node_that_is_only_in_pairs_counts_as_found) {
  const std::string pairs =
      R"({"probe": "fabric", "scope": "pair", "rounds": 1, "limit": {"at_least": 100, "unit": "B/s"}})";
  const Rehearsal fleet(plan_of({pairs}, {.nodes = 4}, {.dead = {"n00002"}}));
  EXPECT_EQ(fleet.summary.found, Words{"dead n00002"});
  EXPECT_EQ(fleet.summary.missed, Words{});
}

TEST(simulated_site, has_ports_on_the_planes_and_rails_that_are_wanted_on_leaves_of_their_own) {
  const auto site = simulated_site({.nodes = 4, .per_leaf = 2, .rails = 2, .planes = {"parameter", "data"}});
  const auto& ports = site.nodes[3].planes.at("parameter");
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[1].rail, "1");
  EXPECT_EQ(ports[1].leaf, "parameter-l0001-rail1");
  EXPECT_NE(ports[0].address, ports[1].address);
  EXPECT_EQ(site.nodes[3].planes.at("data").size(), 2U);
  const auto read = site::read_site(site::to_json(site).dump(), "site.json");
  EXPECT_TRUE(read) << read.error().text();
}

TEST(simulated_site, gets_what_the_profile_names_and_the_shape_leaves_open) {
  const auto profile = fixture::profile(
      {R"({"probe": "fabric", "scope": "pair", "plane": "parameter", "pairs": "in_leaf", "limit": {"at_least": 100, "unit": "B/s"}})"});
  const FleetShape shape = shape_for(profile, {.nodes = 6});
  EXPECT_EQ(shape.planes, Words{"parameter"});
  EXPECT_EQ(shape.rails, 1U);
  EXPECT_EQ(shape.per_leaf, 3U);
  EXPECT_EQ(shape_for(profile, {.nodes = 6, .per_leaf = 2, .rails = 8}).rails, 8U);
}

TEST(faults, a_document_is_read_strictly) {
  const auto faults =
      plan::read_faults(R"({"schema": "assay.faults/1", "bad_nodes": [{"node": "n00001", "factor": 0.8}],
    "bad_links": [{"a": "n00000", "b": "n00002", "factor": 0.5, "probability": 0.3}], "dead": ["n00003"], "spread": {"bandwidth": 0.02}})",
                        "faults.json");
  ASSERT_TRUE(faults) << faults.error().text();
  EXPECT_EQ(faults->faults.size(), 2U);
  EXPECT_EQ(faults->faults[1].other, "n00002");
  EXPECT_EQ(faults->faults[1].probability, 0.3);
  const auto unknown = plan::read_faults(R"({"schema": "assay.faults/1", "bad_node": []})", "faults.json");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("bad_node"), std::string::npos) << unknown.error().text();
  const auto factor = plan::read_faults(
      R"({"schema": "assay.faults/1", "bad_nodes": [{"node": "n00001", "factor": 1.5}]})", "faults.json");
  ASSERT_FALSE(factor);
  EXPECT_NE(factor.error().text().find("the share of performance that is left"), std::string::npos)
      << factor.error().text();
}

TEST(faults, a_node_that_the_fleet_has_not_is_named) {
  const auto problem =
      plan::check_faults({.faults = {{.node = "n7", .factor = 0.5}}}, simulated_site({.nodes = 3}), "faults.json");
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->text(), "faults.json: there is no node 'n7'\nhint: the simulated nodes are n00000 to n00002");
}

TEST(faults, a_metric_that_the_profile_does_not_judge_and_a_link_that_no_step_has_show_nowhere) {
  const auto profile = fixture::profile({kAlone});
  const auto problem =
      check_metrics({.faults = {{.node = "n00001", .metric = "busbw", .factor = 0.5}}}, profile, "faults.json");
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->text(),
            "faults.json: the profile " + profile.name + " judges no metric 'busbw'\nhint: it judges bandwidth");
  const plan::Faults faults{.faults = {{.node = "n00001", .metric = "bandwidth", .factor = 0.5},
                                       {.node = "n00000", .other = "n00002", .factor = 0.5}}};
  EXPECT_FALSE(check_metrics(faults, profile, "faults.json"));
  const Rehearsal fleet(plan_of({kAlone}, {.nodes = 3}, faults));
  EXPECT_EQ(fleet.summary.found, Words{"node n00001"});
  EXPECT_EQ(fleet.summary.missed, Words{});
  EXPECT_EQ(fleet.summary.untried, Words{"link n00000 n00002"});
}

/// Nodes that are judged by what the requirement `id` of nvidia-h200-sxm measures, and nothing else.
plan::Plan h200s(const std::string& id, int nodes, const plan::Faults& faults = {}) {
  plan::Profile profile = *plan::profile_named("nvidia-h200-sxm");
  const plan::Requirement kept = *std::ranges::find(profile.requirements, id, &plan::Requirement::id);
  std::erase_if(profile.requirements, [&](const plan::Requirement& one) {
    return one.probe != kept.probe || one.parameters != kept.parameters;
  });
  const auto programs = plan::simulated_programs();
  if (!programs) throw std::runtime_error(programs.error().text());
  plan::Plan plan =
      *plan::make_plan(profile, simulated_site({.nodes = static_cast<std::size_t>(nodes)}), *programs, {});
  plan.simulation = plan::Simulation{.seed = 3, .faults = faults};
  return plan;
}

TEST(simulate, healthy_nodes_keep_their_margin_beyond_the_guard_band_of_a_coarse_instrument) {
  const Rehearsal fleet(h200s("gpu.power_reach", 100));
  EXPECT_EQ(fleet.verdict.counts.at("pass"), fleet.verdict.results.size()) << fleet.verdict.reason;
}

TEST(simulate, a_slow_node_has_all_its_gpus_and_one_with_fewer_is_named_so) {
  const auto failed = [](const plan::SimulatedFault& fault) {
    std::vector<std::string> all;
    for (const auto& one : Rehearsal(h200s("health.gpus", 3, {.faults = {fault}})).verdict.results) {
      if (one.outcome == judge::Outcome::fail) all.push_back(one.requirement + " " + one.node);
    }
    return all;
  };
  EXPECT_EQ(failed({.node = "n00001", .factor = 0.9}), Words{});
  EXPECT_EQ(failed({.node = "n00001", .metric = "gpus", .factor = 0.875}),
            (Words{"health.gpus n00001", "after.gpus n00001"}));
  const Rehearsal healthy(h200s("health.gpus", 3));
  for (const auto& one : healthy.verdict.results) {
    if (one.requirement == "health.gpus") {
      EXPECT_EQ(one.value, 8.0) << one.node;
    }
  }
}

constexpr const char* kSwitched =
    R"({"contrast": {"parameter": "size", "on": 8, "off": 4, "at_least": 0.05, "shown_by": "direct_io"},
        "repeat": {"attempts": 3, "more_attempts": 4}})";

TEST(simulate, a_switch_that_does_nothing_is_named_in_every_run_and_one_that_works_in_none) {
  const plan::Faults faults{
      .switches = {{.node = "n00003", .parameter = "size"}, {.node = "n00005", .parameter = "size", .stuck = true}}};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Rehearsal fleet(plan_of({kSwitched}, {.nodes = 12}, faults, seed));
    EXPECT_EQ(fleet.summary.found, (Words{"switch n00003 size", "switch n00005 size"})) << seed;
    EXPECT_TRUE(fleet.summary.false_alarms.empty()) << seed;
    EXPECT_EQ(fleet.verdict.counts.at("pass"), 10U) << seed;
    EXPECT_EQ(fleet.verdict.counts.at("fail"), 1U) << seed;
  }
}

TEST(simulate, a_switch_beside_limits_of_both_sides_meets_all_three_on_a_healthy_node) {
  const std::string on = R"({"parameters": {"size": 8}, "limit": {"at_least": 100, "unit": "B/s"}})";
  const std::string off = R"({"parameters": {"size": 4}, "limit": {"at_least": 99, "unit": "B/s"}})";
  const Rehearsal fleet(plan_of({on, off, kSwitched}, {.nodes = 4}));
  EXPECT_EQ(fleet.verdict.counts.at("pass"), 12U) << fleet.verdict.reason;
}

TEST(simulate, a_switch_of_pairs_that_does_nothing_on_one_node_accuses_that_node_and_on_all_none) {
  const std::string pairs =
      R"({"probe": "fabric", "scope": "pair", "repeat": {"attempts": 3, "more_attempts": 0},
          "contrast": {"parameter": "size", "on": 8, "off": 4, "at_least": 0.05, "shown_by": "direct_io"}})";
  const Rehearsal one(plan_of({pairs}, {.nodes = 6}, {.switches = {{.node = "n00003", .parameter = "size"}}}));
  ASSERT_EQ(one.verdict.localised.size(), 1U);
  ASSERT_EQ(one.verdict.localised[0].culprits.size(), 1U) << one.verdict.localised[0].reason;
  EXPECT_EQ(one.verdict.localised[0].culprits[0].nodes, Words{"n00003"});
  plan::Faults everywhere;
  for (int i = 0; i < 6; ++i) everywhere.switches.push_back({.node = "n0000" + std::to_string(i), .parameter = "size"});
  const Rehearsal all(plan_of({pairs}, {.nodes = 6}, everywhere));
  ASSERT_EQ(all.verdict.localised.size(), 1U);
  EXPECT_EQ(all.verdict.localised[0].state, judge::SearchState::common_cause);
  EXPECT_TRUE(all.verdict.localised[0].culprits.empty());
}

}  // namespace
}  // namespace assay::simulate
