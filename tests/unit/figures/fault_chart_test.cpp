// The matrix of faults by place: one for all classes of a measurement, counts from the records, absent where it says
// nothing.
#include <gtest/gtest.h>

#include "reports/figures/record_charts.h"
#include "tests/unit/figures/chart_fixture.h"

namespace assay::figures {
namespace {

using fixture::contains;
using fixture::demanded;
using fixture::judged;

plan::Requirement forbidden(const std::string& id, const std::string& metric) {
  plan::Requirement requirement = demanded(id, metric);
  requirement.at_every = true;
  requirement.limit.at_least.reset();
  requirement.limit.at_most = 0;
  return requirement;
}

/// Two classes of faults at two cases, one of which was counted in one of two attempts.
struct Consistency {
  Consistency() {
    plan.profile.requirements = {forbidden("stale", "stale_reads"), forbidden("wrong", "wrong_reads"),
                                 demanded("rate", "bandwidth")};
    Record record;
    for (const char* metric : {"stale_reads", "wrong_reads"}) {
      for (const char* place : {"new_file", "rename"}) record.measurements.push_back(counted(metric, place, 0));
    }
    records["all"] = {record, record};
    records["all"][1].measurements[3].samples = {7};
    result = judged("all clients", judge::Outcome::fail, 7, "all");
  }
  static Measurement counted(const char* metric, const char* place, double count) {
    Measurement one;
    one.metric = metric;
    one.at = {{"case", std::string(place)}};
    one.samples = {count};
    return one;
  }
  [[nodiscard]] Chart chart(std::size_t requirement) const {
    return fault_chart(plan, plan.profile.requirements[requirement], {&result}, records);
  }

  plan::Plan plan;
  judge::Result result;
  std::map<std::string, std::vector<Record>> records;
};

TEST(FaultChart, shows_what_was_counted_at_each_place_once_for_all_classes) {
  const Consistency run;
  const Chart chart = run.chart(0);
  EXPECT_TRUE(contains(chart.svg, "Faults of probe by case and class"));
  for (const char* label : {"new_file", "rename", "stale_reads", "wrong_reads"})
    EXPECT_TRUE(contains(chart.svg, label)) << label;
  EXPECT_TRUE(contains(chart.svg, "s-fail_far\" d=\"M1 1h1v1h-1z\"")) << chart.svg;
  EXPECT_TRUE(contains(chart.svg, ">7<"));
  EXPECT_TRUE(contains(chart.caption, "1 of 4 are not 0"));
  EXPECT_TRUE(run.chart(1).svg.empty());
  EXPECT_TRUE(run.chart(2).svg.empty());
}

TEST(FaultChart, is_absent_for_one_class_other_parameters_and_places_of_two_coordinates) {
  Consistency one_class;
  one_class.plan.profile.requirements[1].parameters = {{"size", std::int64_t{1}}};
  EXPECT_TRUE(one_class.chart(0).svg.empty());
  Consistency two_coordinates;
  two_coordinates.records["all"][0].measurements[0].at["size"] = std::int64_t{1};
  EXPECT_TRUE(two_coordinates.chart(0).svg.empty());
  Consistency clean;  // zeros are a table
  clean.records["all"][1].measurements[3].samples = {0};
  EXPECT_TRUE(clean.chart(0).svg.empty());
  Consistency no_records;
  no_records.records.clear();
  EXPECT_TRUE(no_records.chart(0).svg.empty());
}

TEST(FaultChart, hostile_places_stay_text) {
  Consistency run;
  run.records["all"][0].measurements[0].at = {{"case", std::string("<script>x</script>")}};
  EXPECT_FALSE(contains(run.chart(0).svg + run.chart(0).caption, "<script"));
}

}  // namespace
}  // namespace assay::figures
