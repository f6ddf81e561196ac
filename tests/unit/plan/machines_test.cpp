// Builds for several machines in a plan, and plans of drawn cells.
#include <gtest/gtest.h>

#include "orchestrator/plan/plan.h"
#include "tests/unit/fixture.h"

namespace assay::plan::machines_test {
namespace {

const std::string kOther(64, 'e');

/// fixture::programs for the head's machine, x86_64, and for aarch64.
std::vector<Program> both_builds() {
  auto programs = fixture::programs();
  for (auto& program : programs) {
    program.builds["x86_64"] = {program.sha256, ""};
    program.builds["aarch64"] = {kOther, ""};
  }
  return programs;
}

std::string one_limit() { return R"({"limit": {"at_least": 100, "unit": "B/s"}})"; }

site::Site site_of(const std::vector<std::string>& machines, site::Launcher launcher = site::Launcher::ssh) {
  auto site = fixture::site(static_cast<int>(machines.size()));
  for (std::size_t i = 0; i < machines.size(); ++i) {
    site.nodes[i].machine = machines[i];
    site.nodes[i].launcher = launcher;
  }
  return site;
}

Plan planned(const site::Site& site, const std::vector<Program>& programs, const PlanOptions& options = {}) {
  return *make_plan(fixture::profile({one_limit()}), site, programs, options);
}

/// The same plan after it was written and read.
std::string read_again(const Plan& plan) {
  const auto read = read_plan(plan_text(plan), "plan.json");
  return read ? plan_text(*read) : read.error().text();
}

}  // namespace

TEST(machines, a_plan_has_the_digest_of_every_build_that_a_node_may_be_given) {
  const Plan plan = planned(site_of({"aarch64", "x86_64"}), both_builds());
  const auto& builds = plan.probes.begin()->second.builds;
  EXPECT_EQ(builds.size(), 2U);
  EXPECT_EQ(builds.at("aarch64"), kOther);
  EXPECT_EQ(read_again(plan), plan_text(plan));
  EXPECT_EQ(planned(site_of({"", ""}), both_builds()).probes.begin()->second.builds.size(), 2U);
}

TEST(machines, a_plan_for_the_heads_own_kind_is_as_it_always_was) {
  EXPECT_TRUE(planned(site_of({"", ""}, site::Launcher::local), both_builds()).probes.begin()->second.builds.empty());
  EXPECT_EQ(plan_text(planned(fixture::site(2), fixture::programs())).find("builds"), std::string::npos);
}

TEST(machines, a_node_without_a_build_has_cells_without_a_step_and_their_reason) {
  auto programs = both_builds();
  for (auto& program : programs) program.builds.erase("aarch64");
  const Plan plan = planned(site_of({"aarch64", "x86_64"}), programs);
  EXPECT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.coverage.at(0).step, "");
  EXPECT_NE(plan.coverage.at(0).reason.find("is not part of this build for aarch64"), std::string::npos);
  EXPECT_EQ(read_again(plan), plan_text(plan));
}

TEST(drawn, only_drawn_cells_have_steps_and_the_plan_accepts_nothing) {
  const auto site = fixture::site(3);
  const Plan whole = planned(site, fixture::programs());
  const auto& cell = whole.coverage.at(1);
  const Plan plan =
      planned(site, fixture::programs(),
              {.only = {cell.requirement}, .localise = false, .drawn = {{cell.requirement, cell.subject}}});
  EXPECT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.only, std::vector<std::string>{cell.requirement});
  EXPECT_EQ(plan.coverage.size(), whole.coverage.size());
  EXPECT_EQ(plan.coverage.at(0).reason, "not drawn");
  EXPECT_EQ(plan.coverage.at(1).step, plan.steps.at(0).id);
  EXPECT_EQ(read_again(plan), plan_text(plan));
}

TEST(drawn, a_cell_that_the_plan_does_not_measure_is_refused) {
  const auto made = make_plan(fixture::profile({one_limit()}), fixture::site(2), fixture::programs(),
                              {.only = {"r0"}, .drawn = {{"r0", {.kind = "node", .id = "nowhere"}}}});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text().find("1 of 1 cells are none that the plan measures"), std::string::npos)
      << made.error().text();
}

}  // namespace assay::plan::machines_test
