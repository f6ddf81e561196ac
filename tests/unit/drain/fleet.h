// fleet: a site, its scheduler's view and a report with flags, made in memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/drain/decide.h"

namespace assay::drain {

inline drift::Date day(int number) { return drift::Date(std::chrono::days(20'000 + number)); }

/// A fleet of `count` nodes, `of_leaf` on each leaf, all in service, without flags.
struct FleetOfDrain {
  explicit FleetOfDrain(int count, int of_leaf = 8) {
    site.name = "s";
    for (int i = 0; i < count; ++i) {
      site.nodes.push_back({.name = name(i), .leaf = fmt::format("l{}", i / of_leaf)});
      now[name(i)] = {};
    }
    report.as_of = day(0);
    policy.mode = drift::Mode::drain;
  }
  static std::string name(int number) { return fmt::format("n{:05}", number); }
  /// A flag of node `number`, confirmed, raised some nights before tonight; one with a lower ratio is worse.
  drift::Flag& flag(int number, double ratio = 0.9, int nights_ago = 0) {
    report.flags.push_back({.id = fmt::format("f{:011}", number),
                            .unit = "node:" + name(number),
                            .node = name(number),
                            .metric = "host_gemm.throughput{size=8}",
                            .state = drift::UnitState::confirmed,
                            .raised = day(-nights_ago),
                            .ratio = ratio,
                            .words = "slow"});
    return report.flags.back();
  }
  [[nodiscard]] Decisions drains() const {
    return decide_drains(
        {.report = report, .policy = policy, .site = site, .now = now, .account = account, .time = time});
  }
  [[nodiscard]] Decisions releases(const std::vector<CleanSweep>& sweeps) const {
    return decide_releases(
        {.report = report, .policy = policy, .site = site, .now = now, .account = account, .time = time}, sweeps);
  }

  site::Site site;
  std::map<std::string, NodeNow> now;
  drift::DriftReport report;
  drift::Policy policy;
  Account account;
  std::chrono::system_clock::time_point time = day(28);  ///< nights after the drains of most tests
};

inline std::map<Ruling, int> counts(const Decisions& decisions) {
  std::map<Ruling, int> all;
  for (const auto& one : decisions.nodes) ++all[one.ruling];
  return all;
}

}  // namespace assay::drain
