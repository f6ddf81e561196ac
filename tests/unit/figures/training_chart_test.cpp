// Bars of a training step and of its repair: means of raw samples, absent where a part is missing.
#include <gtest/gtest.h>

#include "reports/figures/parts_bars.h"
#include "reports/figures/record_charts.h"
#include "tests/unit/figures/chart_fixture.h"

namespace assay::figures {
namespace {

using fixture::contains;
using fixture::demanded;
using fixture::judged;

Measurement measured(const std::string& metric, std::vector<double> samples, const Subject& subject = {}) {
  Measurement one;
  one.metric = metric;
  one.subject = subject;
  one.samples = std::move(samples);
  return one;
}

Subject rank(const std::string& id) { return {.kind = "rank", .id = id}; }

/// Two requirements on one measurement of `probe`, of which one record is there.
struct Trained {
  Trained(const std::string& probe, Record record) {
    plan.profile.requirements = {demanded("first", "mismatches"), demanded("second", "step_time")};
    for (auto& one : plan.profile.requirements) one.probe = probe;
    records["all"] = {std::move(record)};
    result = judged("all ranks", judge::Outcome::pass, 200, "all");
  }
  [[nodiscard]] std::vector<Chart> charts(std::size_t requirement = 0) const {
    return training_charts(plan, plan.profile.requirements[requirement], {&result}, records);
  }

  plan::Plan plan;
  judge::Result result;
  std::map<std::string, std::vector<Record>> records;
};

/// Three faults, one of which ended no rank.
Record repaired() {
  Record record;
  record.measurements = {measured("detect_time", {3, 1}), measured("abort_time", {1, 1}),
                         measured("rebuild_time", {2, 2}), measured("restore_time", {1, 1}),
                         measured("recompute_time", {1, 5})};
  record.conditions = {
      {.name = "case_keys", .subject = {}, .value = std::string("kill:forward,slow:reduce,hang:reduce")}};
  return record;
}

Record stepped() {
  Record record;
  record.measurements = {measured("step_time", {1.0, 1.2}),
                         measured("compute_time", {0.8, 0.8}),
                         measured("optimizer_time", {0.2, 0.2}),
                         measured("exposed_comm", {0.2, 0.4}),
                         measured("self_time", {0.3, 0.5}, rank("0")),
                         measured("self_time", {0.9, 0.9}, rank("1"))};
  return record;
}

TEST(PartsBars, have_lengths_in_proportion_and_their_sum_at_the_end) {
  const std::string svg = parts_svg({.title = "t",
                                     .description = "d",
                                     .axis = "of one step",
                                     .names = {"a", "b"},
                                     .rows = {{"long", {3, 1}}, {"short", {1, 1}}}});
  // 490 units are 4 s.
  EXPECT_TRUE(contains(svg, "<rect class=\"part-0\" x=\"190.00\" y=\"38.00\" width=\"367.50\"")) << svg;
  EXPECT_TRUE(contains(svg, "<rect class=\"part-1\" x=\"557.50\" y=\"38.00\" width=\"122.50\"")) << svg;
  EXPECT_TRUE(contains(svg, "<rect class=\"part-1\" x=\"312.50\" y=\"60.00\" width=\"122.50\"")) << svg;
  EXPECT_TRUE(contains(svg, ">4 s<")) << svg;
  EXPECT_TRUE(contains(svg, ">2 s<")) << svg;
}

TEST(PartsBars, without_anything_above_0_are_none) {
  EXPECT_EQ(parts_svg({.title = "t", .description = "d", .axis = "", .names = {"a"}, .rows = {{"none", {0}}}}), "");
  EXPECT_EQ(parts_svg({.title = "t", .description = "d", .axis = "", .names = {"a"}, .rows = {}}), "");
}

TEST(TrainingChart, of_repairs_has_a_bar_for_each_kind_of_fault_that_ended_a_rank_and_one_for_all) {
  const auto charts = Trained("fault_resume", repaired()).charts();
  ASSERT_EQ(charts.size(), 1U);
  for (const char* label : {"all faults (2)", "kill in forward (1)", "hang in reduce (1)", ">8 s<", ">10 s<", ">9 s<"})
    EXPECT_TRUE(contains(charts[0].svg, label)) << label << charts[0].svg;
  EXPECT_FALSE(contains(charts[0].svg, "slow"));
  EXPECT_TRUE(contains(charts[0].caption, "Means over 2 faults"));
}

TEST(TrainingChart, of_repairs_names_no_kind_where_the_cases_are_not_as_many_as_the_repairs) {
  Record record = repaired();
  record.conditions[0].value = std::string("kill:forward");
  const auto charts = Trained("fault_resume", record).charts();
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_TRUE(contains(charts[0].svg, "fault of unknown kind (2)")) << charts[0].svg;
  EXPECT_FALSE(contains(charts[0].svg, "kill in forward"));
}

TEST(TrainingChart, of_a_step_has_its_parts_and_those_of_each_rank_the_slowest_first) {
  const auto charts = Trained("train_step", stepped()).charts();
  ASSERT_EQ(charts.size(), 2U);
  // 0.6 s of compute beside the optimizer's 0.2 s, and 0.3 s of communication, on 490 units for 1.1 s.
  for (const char* width : {"width=\"267.27\"", "width=\"89.09\"", "width=\"133.64\""})
    EXPECT_TRUE(contains(charts[0].svg, width)) << width << charts[0].svg;
  const auto slow = charts[1].svg.find(">rank 1<"), quick = charts[1].svg.find(">rank 0<");
  ASSERT_NE(slow, std::string::npos) << charts[1].svg;
  ASSERT_NE(quick, std::string::npos) << charts[1].svg;
  EXPECT_LT(slow, quick);
}

TEST(TrainingChart, is_drawn_once_for_a_measurement_and_not_without_all_of_its_parts) {
  EXPECT_TRUE(Trained("train_step", stepped()).charts(1).empty());
  EXPECT_TRUE(Trained("memory_bandwidth", stepped()).charts().empty());
  EXPECT_TRUE(Trained("train_step", Record()).charts().empty());
  Record without_restore = repaired();
  without_restore.measurements.erase(without_restore.measurements.begin() + 3);
  EXPECT_TRUE(Trained("fault_resume", without_restore).charts().empty());
}

TEST(TrainingChart, of_a_step_that_took_less_time_with_collectives_than_without_has_no_parts) {
  Record record = stepped();
  record.measurements[3].samples = {-0.3, 0.1};
  const auto charts = Trained("train_step", record).charts();
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_TRUE(contains(charts[0].svg, "What each rank does"));
}

TEST(TrainingChart, hostile_words_stay_text) {
  Record record = repaired();
  record.conditions[0].value =
      std::string("<script>x</script> of rank 0 in forward of step 4; hang of rank 1 in reduce of step 16");
  const auto charts = Trained("fault_resume", record).charts();
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_FALSE(contains(charts[0].svg + charts[0].caption, "<script"));
}

}  // namespace
}  // namespace assay::figures
