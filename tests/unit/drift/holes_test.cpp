// Nights with holes: what is preempted or not measured delays a flag by as much as is missing, and raises none.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/drift/detector.h"
#include "orchestrator/rehearse/nights.h"

namespace assay::drift {
namespace {

using rehearse::NightFaultKind;

constexpr std::size_t kNodes = 600, kEvery = 10;  // one node in ten falls
constexpr int kFall = 40, kNights = 85;

struct Delays {
  double mean = 0;  ///< nights from the fall to the flag
  std::size_t found = 0, others = 0;
};

/// A fall of `sigma` deviations on every tenth node, where a share `missing` of all visits is not made.
Delays delays(double missing, double sigma) {
  rehearse::NightFaults faults{.sigma_spread = 0};
  for (std::size_t node = 0; node < kNodes; node += kEvery)
    faults.faults.push_back({.unit = fmt::format("n{:05}", node), .from_night = kFall, .sigma = sigma});
  faults.faults.push_back({.kind = NightFaultKind::preempt, .p = missing / 2});
  faults.faults.push_back({.kind = NightFaultKind::missing, .p = missing / 2});
  rehearse::Nights source({.nodes = kNodes, .metrics = 1}, std::move(faults));
  Detector detector(source.fleet(), {});
  std::map<std::string, int> raised;
  for (int i = 0; i < kNights; ++i) {
    detector.add(source.next());
    for (const Flag& flag : detector.report().flags) raised.emplace(flag.node, i);
  }
  Delays all;
  for (const auto& [node, night] : raised) {
    if (std::stoul(node.substr(1)) % kEvery != 0) {
      ++all.others;
    } else if (night >= kFall) {
      all.mean += night - kFall + 1;
      ++all.found;
    }
  }
  all.mean /= static_cast<double>(std::max<std::size_t>(all.found, 1));
  return all;
}

// Row f of the acceptance tests.
TEST(NightsWithHoles, a_third_of_the_visits_missing_delays_a_flag_by_as_much_and_raises_no_more) {
  const Delays whole = delays(0, 2), holes = delays(0.3, 2);
  EXPECT_GE(whole.found, kNodes / kEvery - 2);
  EXPECT_GE(holes.found, kNodes / kEvery - 2);
  const double share = 1 - 0.3 + 0.15 * 0.15;  // of visits that are made: both faults may hit one
  EXPECT_NEAR(holes.mean / whole.mean, 1 / share, 0.2) << whole.mean << " and " << holes.mean << " nights";
  EXPECT_LE(whole.others, 4U);
  EXPECT_LE(holes.others, 4U);
}

// Row l of the acceptance tests.
TEST(NightsWithHoles, a_tool_that_crashes_on_a_hundred_nodes_flags_none_of_them_and_leaves_a_hole_for_each) {
  rehearse::NightFaults faults;
  for (int node = 0; node < 100; ++node)
    faults.faults.push_back(
        {.kind = NightFaultKind::missing, .unit = fmt::format("n{:05}", node), .from_night = 30, .p = 1});
  rehearse::Nights source({.nodes = 400, .metrics = 2}, std::move(faults));
  Policy policy;
  policy.false_flags.count = 0.001;
  Detector detector(source.fleet(), policy);
  for (int i = 0; i < 30 + policy.max_age_nights; ++i) detector.add(source.next());
  EXPECT_EQ(detector.report().coverage.not_measured, 100U);
  EXPECT_EQ(exit_code(detector.report()), 0) << "one night is no hole";
  detector.add(source.next());
  const DriftReport report = detector.report();
  EXPECT_TRUE(report.flags.empty());
  EXPECT_TRUE(report.fleet.empty());
  EXPECT_EQ(report.coverage.overdue.size(), 100U);
  EXPECT_EQ(exit_code(report), 3);
}

}  // namespace
}  // namespace assay::drift
