// What steps write to storages, before any of them runs.
#include "orchestrator/plan/storage_use.h"

#include <gtest/gtest.h>

#include "tests/unit/fixture.h"

namespace assay::plan {
namespace {

constexpr const char* kWhole = R"({"probe": "fabric", "scope": "cluster", "limit": {"at_least": 100, "unit": "B/s"}})";

/// A plan on `nodes` nodes; its probe fabric writes `held` into the storage of all.
Plan plan_of(int nodes, const std::string& held, bool shared) {
  auto programs = fixture::programs();
  for (auto& program : programs) {
    if (program.name != "fabric") continue;
    program.description.document["space"] = {
        {{"into", "where"}, {"shared", shared}, {"when", ""}, {"held", held}, {"times", "2"}}};
    program.description.document["parameters"].push_back({{"name", "where"},
                                                          {"unit", ""},
                                                          {"fallback", "/store"},
                                                          {"quick", ""},
                                                          {"meaning", "where it writes"},
                                                          {"choices", ""}});
    program.description = *read_description(program.description.document.dump(), "fabric");
  }
  return *make_plan(fixture::profile({kWhole}), fixture::site(nodes), programs, {});
}

}  // namespace

TEST(storage_use, a_plan_says_what_each_node_writes_and_all_together) {
  const Plan plan = plan_of(4, "ranks 1000000000", true);
  const auto uses = storage_uses(plan);
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].need.held, 4e9);
  const int attempts = plan.steps[0].attempts;
  EXPECT_EQ(storage_text(uses), "fabric writes to /store: 4 GB at one time, 1 GB of each of 4 nodes; in " +
                                    std::to_string(attempts) + (attempts == 1 ? " attempt" : " attempts") +
                                    " of 1 step " + std::to_string(8 * attempts) + " GB\n");
}

TEST(storage_use, a_plan_that_writes_nothing_says_nothing) {
  EXPECT_EQ(storage_text(storage_uses(plan_of(2, "0", true))), "");
}

TEST(storage_use, each_node_is_asked_for_the_directories_of_its_steps) {
  const Plan plan = plan_of(2, "1000", false);
  const auto asked = storage_directories(storage_uses(plan));
  EXPECT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked.begin()->second, std::vector<std::string>{"/store"});
}

TEST(storage_use, a_storage_with_too_little_is_named_with_node_step_and_what_is_missing) {
  const Plan plan = plan_of(2, "1000000000", false);
  const auto uses = storage_uses(plan);
  const std::string first = plan.steps[0].nodes[0], second = plan.steps[0].nodes[1];
  const FreeSpace enough = {{first, {{"/store", 1'100'000'000}}}, {second, {{"/store", 1'100'000'001}}}};
  EXPECT_TRUE(short_of_space(uses, enough).empty());
  const FreeSpace less = {{first, {{"/store", 1'100'000'000}}}, {second, {{"/store", 600'000'000}}}};
  const auto problems = short_of_space(uses, less);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].step, uses[0].step);
  const InputError& problem = problems[0].lacking;
  EXPECT_EQ(problem.where, "/store on " + second);
  EXPECT_EQ(problem.what,
            "600 MB are free; step " + plan.steps[0].id + " puts up to 1 GB there and needs a tenth more, 1.1 GB");
  EXPECT_EQ(problem.hint,
            "nothing was measured: free 500 MB there and continue with `assay run --resume`, or give the probe less to "
            "write, or another directory");
}

TEST(storage_use, a_step_that_fits_on_none_of_its_nodes_is_named_once) {
  const Plan plan = plan_of(2, "1000000000", false);
  const FreeSpace none = {{plan.steps[0].nodes[0], {{"/store", 0}}}, {plan.steps[0].nodes[1], {{"/store", 0}}}};
  const auto problems = short_of_space(storage_uses(plan), none);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].lacking.where, "/store on " + plan.steps[0].nodes[0]);
}

TEST(storage_use, a_directory_that_could_not_be_asked_refuses_nothing) {
  const Plan plan = plan_of(2, "1000000000", false);
  EXPECT_TRUE(short_of_space(storage_uses(plan), {{plan.steps[0].nodes[0], {}}}).empty());
}

}  // namespace assay::plan
