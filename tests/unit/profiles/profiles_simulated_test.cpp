// Every profile that comes with assay, simulated with the probes of this build: a healthy fleet would be accepted, one
// with a slow node would not.
#include <algorithm>
#include <cstdlib>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/simulate/plant_site.h"
#include "orchestrator/simulate/simulate.h"
#include "tests/unit/profiles/built_in.h"

namespace assay::simulate {
namespace {

using Words = std::vector<std::string>;

/// Whether this build has every probe that a required figure of the profile needs.
bool is_built(const std::string& name) {
  const auto& profile = built_in(name);
  return std::ranges::all_of(profile.requirements, [](const plan::Requirement& one) {
    return !one.required ||
           std::ranges::find(built_programs(), one.probe, &plan::Program::name) != built_programs().end();
  });
}

/// Whether the profile can accept; those of nightly sweeps cannot.
bool requires_something(const std::string& name) {
  return std::ranges::any_of(built_in(name).requirements, &plan::Requirement::required);
}

struct Simulated {
  judge::Verdict verdict;
  SimulationSummary summary;

  Simulated(const std::string& name, std::size_t nodes, const plan::Faults& faults) {
    const auto& profile = built_in(name);
    site::Site site = simulated_site(shape_for(profile, {.nodes = nodes}));
    tell_parts(profile, site);
    auto plan = plan::make_plan(profile, site, built_programs(), {});
    if (!plan) throw std::runtime_error(plan.error().text());
    plan->simulation = plan::Simulation{.seed = 1, .faults = faults};
    const auto run = simulate(*plan, "digest");
    auto judged = judge::judge_run(*plan, "digest", run.journal, simulated_evidence(*plan, run.journal, run.records));
    if (!judged) throw std::runtime_error(judged.error().text());
    verdict = std::move(*judged);
    summary = summarise(*plan, run, verdict);
  }
};

/// Each outcome of a requirement that is no pass, once.
std::string no_pass(const judge::Verdict& verdict) {
  std::set<std::string> all;
  for (const auto& result : verdict.results) {
    if (result.outcome != judge::Outcome::pass)
      all.insert(fmt::format("{}: {}: {}\n", result.requirement, judge::to_string(result.outcome), result.reason));
  }
  return fmt::format("{}", fmt::join(all, ""));
}

/// Small fleets, unless the environment asks for larger ones.
std::size_t fleet_nodes() {
  const char* nodes = std::getenv("ASSAY_FLEET_NODES");
  return nodes == nullptr ? 8 : std::stoul(nodes);
}

class SimulatedProfile : public testing::TestWithParam<std::string> {};

TEST_P(SimulatedProfile, of_a_healthy_fleet_would_be_accepted_or_says_what_lacks) {
  const Simulated fleet(GetParam(), fleet_nodes(), {});
  const auto& reason = fleet.summary.would_be;
  if (!requires_something(GetParam())) {
    EXPECT_NE(reason.find("The profile requires nothing"), std::string::npos) << reason;
  } else if (is_built(GetParam())) {
    EXPECT_NE(reason.find("it would be accepted: "), std::string::npos) << reason;
  } else {
    EXPECT_NE(reason.find("is not part of this build"), std::string::npos) << reason;
  }
  EXPECT_EQ(fleet.summary.false_alarms, Words{}) << no_pass(fleet.verdict);
}

/// Of a profile that requires no speed, only that nothing is wrong: a metric that counts what is. Else empty.
std::string only_faults(const std::string& name) {
  std::string first;
  const auto& profile = built_in(name);
  for (const auto& one : profile.requirements) {
    if (!one.required) continue;
    if (one.demand) return "";
    const auto program = std::ranges::find(built_programs(), one.probe, &plan::Program::name);
    if (program == built_programs().end() || program->description.metric(one.metric)->kind != MetricKind::fault)
      return "";
    if (first.empty()) first = one.metric;
  }
  return first;
}

bool requires_conditions_alone(const std::string& name) {
  return std::ranges::all_of(built_in(name).requirements,
                             [](const auto& one) { return !one.required || one.demand.has_value(); });
}

/// Profiles that require a figure, or nothing: a simulated node has no fault in a condition.
std::vector<std::string> profiles_with_figures() {
  auto names = profile_names();
  std::erase_if(names, [](const auto& name) { return requires_something(name) && requires_conditions_alone(name); });
  return names;
}

class SimulatedFault : public testing::TestWithParam<std::string> {};

TEST_P(SimulatedFault, of_a_fleet_with_a_node_at_half_speed_or_with_faults_would_not_be_accepted) {
  const std::string metric = only_faults(GetParam());
  // Of a profile that judges by meters of the site: a flow that is told 60 % too high, and a feed that is, too.
  const plan::Faults wrong =
      judges_by_meters(built_in(GetParam()))
          ? plan::Faults{.meters = {{.meter = "r0000-cdu", .quantity = Quantity::flow, .gain = 1.6},
                                    {.meter = "r0000-a", .gain = 1.6}}}
          : plan::Faults{.faults = {{.node = "n00002", .metric = metric, .factor = 0.5}}};
  const Simulated fleet(GetParam(), fleet_nodes(), wrong);
  EXPECT_EQ(fleet.summary.would_be.find("would be accepted"), std::string::npos) << fleet.summary.would_be;
}

TEST(SimulatedTraining, names_a_slow_node_by_its_ranks_and_blames_no_other) {
  const Simulated fleet("train-host", 16, {.faults = {{.node = "n00007", .metric = "self_time", .factor = 0.7}}});
  Words late;
  for (const auto& result : fleet.verdict.results) {
    if (result.requirement != "train.self_share") continue;
    EXPECT_EQ(result.subject.kind, "group");
    if (result.outcome == judge::Outcome::fail) late.push_back(result.subject.id);
  }
  EXPECT_EQ(late, Words{"n00007"}) << no_pass(fleet.verdict);
}

TEST(SimulatedOffload, accuses_the_node_whose_packets_pass_software_and_no_other) {
  const Simulated fleet("dpu-node", 8, {.faults = {{.node = "n00003", .metric = "offloaded_share", .factor = 0}}});
  EXPECT_EQ(fleet.summary.would_be.find("would be accepted"), std::string::npos) << fleet.summary.would_be;
  int others = 0, no_pass_of_it = 0;
  for (const auto& result : fleet.verdict.results) {
    if (result.requirement != "virtual.offload" || result.outcome == judge::Outcome::pass) continue;
    ++(result.subject.id.find("n00003") == std::string::npos ? others : no_pass_of_it);
    EXPECT_EQ(result.outcome, judge::Outcome::fail) << result.reason;
  }
  EXPECT_EQ(others, 0) << no_pass(fleet.verdict);
  EXPECT_EQ(no_pass_of_it, 5) << no_pass(fleet.verdict);  // its rounds
  EXPECT_EQ(fleet.summary.false_alarms, Words{}) << no_pass(fleet.verdict);
}

INSTANTIATE_TEST_SUITE_P(shipped, SimulatedProfile, testing::ValuesIn(profile_names()), name_of_test);
INSTANTIATE_TEST_SUITE_P(shipped, SimulatedFault, testing::ValuesIn(profiles_with_figures()), name_of_test);

}  // namespace
}  // namespace assay::simulate
