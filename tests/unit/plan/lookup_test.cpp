// Steps of a plan by id.
#include <gtest/gtest.h>

#include "orchestrator/plan/plan.h"

namespace assay::plan {
namespace {

Plan with_steps(const std::vector<std::string>& ids) {
  Plan plan;
  for (const auto& id : ids) plan.steps.push_back({.id = id});
  return plan;
}

TEST(Lookup, a_step_is_found_by_its_number_and_in_no_other_place) {
  const Plan plan = with_steps({"0001-a-n01", "0002-a-n02", "0003-b-n01"});
  EXPECT_EQ(plan.step("0001-a-n01"), &plan.steps[0]);
  EXPECT_EQ(plan.step("0003-b-n01"), &plan.steps[2]);
  for (const char* id : {"", "0002", "0002-a-n01", "0003-b-n01.t1", "0000-a-n01", "99999999999999999999-a", "x"})
    EXPECT_EQ(plan.step(id), nullptr) << id;
}

TEST(Lookup, a_step_whose_number_is_not_its_place_is_found_all_the_same) {
  const Plan plan = with_steps({"0002-a-n02", "n01", "0001-a-n01", "4294967296-c"});
  for (const auto& step : plan.steps) EXPECT_EQ(plan.step(step.id), &step);
}

}  // namespace
}  // namespace assay::plan
