// A part that vanishes from the records of a node that is measured on is missed in the first night.
#include <gtest/gtest.h>

#include "orchestrator/drift/detector.h"

namespace assay::drift {
namespace {

/// Two nodes of two GPUs and a drive each; units 0 to 3 are the GPUs, 4 and 5 the drives, 6 and 7 the nodes.
Fleet two_nodes() {
  Fleet fleet{.cohorts = {"H200"}};
  for (const char* id : {"gpu:0", "gpu:1", "gpu:2", "gpu:3", "drive:4", "drive:5", "node:6", "node:7"}) {
    const std::string name(id);
    const auto number = static_cast<std::uint32_t>(fleet.units.size());
    const bool second = number == 2 || number == 3 || number == 5 || number == 7;
    fleet.units.push_back({.id = name,
                           .kind = name.substr(0, name.find(':')),
                           .node = second ? "n2" : "n1",
                           .slot = name.substr(name.size() - 1)});
    fleet.series.push_back({.unit = number, .metric = number < 4 ? 0U : number < 6 ? 1U : 2U});
  }
  for (const char* name : {"cuda_gemm.throughput", "health_drive.wear", "host_gemm.rate"})
    fleet.metrics.push_back({.name = name, .probe = "p", .unit = "1"});
  return fleet;
}

/// A night in which each of these units is measured: in the run "a" of both nodes, or in one of its own node.
Night night_of(const Fleet& fleet, int number, const std::vector<std::uint32_t>& units, bool together = true) {
  Night night{.date = Date{std::chrono::days{20'000 + number}}};
  for (const std::uint32_t unit : units) {
    const std::string& node = fleet.units[unit].node;
    night.readings.push_back({.series = unit, .visit = static_cast<std::uint32_t>(night.visits.size()), .value = 1});
    night.visits.push_back(
        {.unit = unit, .run_sha256 = together ? "a" : node, .node = node, .slot = fleet.units[unit].slot});
  }
  return night;
}

std::vector<std::string> overdue(const Detector& detector) {
  std::vector<std::string> units;
  for (const auto& one : detector.report().coverage.overdue) units.push_back(one.unit + " " + one.last_state);
  return units;
}

using Names = std::vector<std::string>;
const std::vector<std::uint32_t> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(MissingPart, a_gpu_that_is_in_no_record_beside_its_neighbour_is_overdue_at_once_and_until_it_is_measured) {
  const Fleet fleet = two_nodes();
  for (const bool together : {true, false}) {
    Detector detector(fleet, {});
    detector.add(night_of(fleet, 0, kAll, together));
    EXPECT_EQ(exit_code(detector.report()), 0);
    detector.add(night_of(fleet, 1, {0, 2, 3, 4, 5, 6, 7}, together));
    EXPECT_EQ(overdue(detector), Names{"gpu:1 missing"});
    EXPECT_EQ(exit_code(detector.report()), 3);
    EXPECT_NE(summary_text(detector.report()).find("gpu:1 on n1: 1 nights, missing"), std::string::npos);
    detector.add(night_of(fleet, 2, {4, 5, 6, 7}, together));
    auto resumed = Detector::resume(fleet, {}, detector.state());
    ASSERT_TRUE(resumed) << resumed.error().text();
    EXPECT_EQ(overdue(*resumed), Names{"gpu:1 missing"});
    resumed->add(night_of(fleet, 3, kAll, together));
    EXPECT_EQ(overdue(*resumed), Names{});
  }
}

TEST(MissingPart, all_gpus_of_a_node_are_missed_where_the_run_measured_those_of_another) {
  const Fleet fleet = two_nodes();
  Detector detector(fleet, {});
  detector.add(night_of(fleet, 0, kAll));
  detector.add(night_of(fleet, 1, {2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(overdue(detector), (Names{"gpu:0 missing", "gpu:1 missing"}));
}

TEST(MissingPart, figures_that_a_night_leaves_out_and_nodes_that_are_not_due_are_not_missed) {
  const Fleet fleet = two_nodes();
  Detector detector(fleet, {});
  detector.add(night_of(fleet, 0, kAll));
  detector.add(night_of(fleet, 1, {4, 5, 6, 7}));  // no figure of GPUs tonight
  detector.add(night_of(fleet, 2, {2, 3, 5, 7}));  // n1 not visited
  EXPECT_EQ(overdue(detector), Names{});
}

TEST(MissingPart, a_part_with_another_in_its_place_or_retired_is_not_missed) {
  Fleet fleet = two_nodes();
  fleet.units.push_back({.id = "gpu:8", .kind = "gpu", .node = "n1", .slot = "1"});
  fleet.series.push_back({.unit = 8, .metric = 0});
  Detector detector(fleet, {});
  detector.add(night_of(fleet, 0, kAll));
  Night night = night_of(fleet, 1, {0, 2, 4, 5, 6, 7, 8});
  night.events.push_back(
      {.night = night.date, .time = "2024-10-05T00:00:00.000Z", .scope = "gpu:3", .kind = EventKind::retired});
  detector.add(night);
  EXPECT_EQ(overdue(detector), Names{});
}

TEST(MissingPart, a_history_without_a_figure_is_not_called_healthy) {
  const Fleet fleet = two_nodes();
  const Detector detector(fleet, {});
  EXPECT_EQ(exit_code(detector.report()), 3);
  EXPECT_NE(summary_text(detector.report()).find("nothing was judged"), std::string::npos);
}

}  // namespace
}  // namespace assay::drift
