// plan_risk: the operating characteristic that a plan states beside the share of made-up fleets that the judge's own
// functions accept. docs/PERFORMANCE.md has what came out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/decide/decision.h"
#include "orchestrator/plan/pass_chance.h"
#include "orchestrator/plan/stability_test.h"
#include "probes/core/statistics.h"

namespace assay {
namespace {

constexpr double kLimit = 100, kGuardFactor = 1.645;

/// A fleet whose nodes are measured by one step each, of one rate or of several parts.
struct Fleet {
  plan::HealthyFleet figures;
  plan::Repeats repeats;
  plan::StatedUncertainty stated;
  std::size_t bad = 0;  ///< nodes that are short
  double short_by = 0;
};

judge::AttemptsEstimate estimate_of(const std::vector<double>& attempts, std::size_t count) {
  judge::AttemptsEstimate estimate;
  estimate.each.assign(attempts.begin(), attempts.begin() + static_cast<std::ptrdiff_t>(count));
  const Moments all = moments(estimate.each);
  estimate.value = all.mean;
  estimate.between = all.standard_deviation();
  return estimate;
}

/// Whether all cells of one made-up fleet pass: nodes with one that does not after the first stage are measured again.
bool is_accepted(const Fleet& fleet, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const std::size_t first = static_cast<std::size_t>(fleet.repeats.attempts);
  const std::size_t all = first + static_cast<std::size_t>(fleet.repeats.more_attempts);
  const auto cells = static_cast<std::size_t>(fleet.repeats.cells_per_step);
  std::vector<std::vector<std::vector<double>>> nodes(fleet.repeats.steps);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const bool bad = node < fleet.bad && cell == 0;
      const double mean = bad ? -fleet.short_by : fleet.figures.margin + fleet.figures.between_nodes * normal(random);
      const double off = fleet.stated.instrument * normal(random);
      auto& attempts = nodes[node].emplace_back(all);
      for (double& one : attempts) one = kLimit * (1 + mean + off + fleet.figures.between_runs * normal(random));
    }
  }
  const judge::StatedScatter stated{.least = fleet.stated.between_runs};
  const double risk = judge::risk_of(kGuardFactor, fleet.repeats.more_attempts > 0);
  std::vector<std::size_t> counts(nodes.size(), first);
  std::vector<bool> pass(nodes.size());
  judge::GuardFactors factors;
  const auto judge_all = [&] {
    judge::BetweenRuns between;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      for (const auto& cell : nodes[node]) between.add(fmt::format("{}", node), estimate_of(cell, counts[node]));
    }
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      pass[node] = std::ranges::all_of(nodes[node], [&](const auto& cell) {
        const auto estimate = estimate_of(cell, counts[node]);
        judge::Result result;
        judge::decide({.at_least = kLimit, .unit = "1"}, estimate, between.of(estimate, stated),
                      fleet.stated.instrument, {}, risk, result, factors);
        return result.outcome == judge::Outcome::pass;
      });
      if (!pass[node] && counts != std::vector(nodes.size(), first)) return false;
    }
    return std::ranges::all_of(pass, [](bool one) { return one; });
  };
  if (judge_all()) return true;
  if (all == first) return false;
  for (std::size_t node = 0; node < nodes.size(); ++node) counts[node] = pass[node] ? first : all;
  return judge_all();
}

double stated_chance(const Fleet& fleet) {
  const double risk = normal_cdf(-kGuardFactor);
  return std::exp(plan::ChanceToPass(fleet.figures, fleet.repeats, risk, fleet.stated)
                      .log_all(fleet.figures.margin, fleet.short_by, static_cast<double>(fleet.bad)));
}

/// Differences of a whole comparison.
struct Differences {
  double most = 0;
  int cases = 0, over = 0, clear = 0;  ///< over: by more than a point; clear: and by four standard errors more

  void add(double difference, double error) {
    constexpr double kPoint = 0.01, kErrors = 4;
    most = std::max(most, std::abs(difference));
    ++cases;
    over += std::abs(difference) > kPoint ? 1 : 0;
    clear += std::abs(difference) > kPoint + kErrors * error ? 1 : 0;
  }
};

/// Fleets of these nodes, with so many parts and instruments of this relative uncertainty.
void compare(std::size_t nodes, std::size_t parts, double instrument, int fleets, Differences& differences) {
  std::mt19937_64 random(42);
  for (const auto& [attempts, more] : {std::pair{3, 0}, {3, 4}, {3, 10}, {5, 5}}) {
    for (const double between_runs : {0.01, 0.02}) {
      for (const double share : {0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0}) {
        for (const std::size_t bad : {0UL, 1UL}) {
          const Fleet fleet{
              .figures = {.margin = share * between_runs, .between_nodes = 0.005, .between_runs = between_runs},
              .repeats = {.attempts = attempts,
                          .more_attempts = more,
                          .steps = nodes,
                          .cells_per_step = static_cast<double>(parts)},
              .stated = {.instrument = instrument},
              .bad = bad,
              .short_by = between_runs / 4};
          const double stated = stated_chance(fleet);
          // As many as give every case the error of one of 1/2.
          constexpr double kFewest = 0.05;
          const int made = static_cast<int>(fleets * std::max(4 * stated * (1 - stated), kFewest));
          int accepted = 0;
          for (int i = 0; i < made; ++i) accepted += is_accepted(fleet, random) ? 1 : 0;
          const double seen = static_cast<double>(accepted) / made;
          const double error = std::sqrt(std::max(stated * (1 - stated), 1.0 / made) / made);
          differences.add(seen - stated, error);
          fmt::print("{:5} {:5} {:4.1f} % {}+{:<5} {:4.1f} % {:5.1f} % {:3} {:7.4f} {:7.4f} {:+.4f} {:.4f}\n", nodes,
                     parts, instrument * 100, attempts, more, between_runs * 100, share * between_runs * 100, bad,
                     stated, seen, seen - stated, error);
          (void)std::fflush(stdout);
        }
      }
    }
  }
}

/// Paths of a soak's interruptions along an early stop's boundaries, by their times and not by looks.
void compare_soaks(int paths, Differences& differences) {
  std::mt19937_64 random(42);
  for (const int tolerated : {0, 4, 12}) {
    const plan::StabilityDesign design{.looks = 6,
                                       .nodes = 16,
                                       .hours = 12,
                                       .least_hours = 12,
                                       .tolerated = tolerated,
                                       .refused_mtbf_h = 1100.0 / (tolerated + 3),
                                       .accepted_mtbf_h = 16000.0 / (tolerated + 1),
                                       .vendor_risk = 0.1,
                                       .buyer_risk = 0.1};
    const auto looks = plan::looks_of_wald(design);
    for (const double mtbf_h : {design.refused_mtbf_h, 2 * design.refused_mtbf_h, design.accepted_mtbf_h}) {
      const auto stated = plan::test_end(looks, 16 * 12 / mtbf_h);
      std::exponential_distribution<double> next(1 / mtbf_h);
      int accepted = 0;
      for (int i = 0; i < paths; ++i) {
        std::vector<int> path(looks.size());
        for (int node = 0; node < 16; ++node) {
          for (double at_h = next(random); at_h < looks.back().hours; at_h += next(random)) {
            for (std::size_t look = 0; look < looks.size(); ++look) path[look] += at_h < looks[look].hours ? 1 : 0;
          }
        }
        const auto crossed = plan::crossing(looks, path);
        accepted += crossed && crossed->accepted ? 1 : 0;
      }
      const double seen = static_cast<double>(accepted) / paths;
      differences.add(seen - stated.accepted, std::sqrt(seen * (1 - seen) / paths));
      fmt::print("soak, {:2} tolerated, {:6.0f} h between two: {:7.4f} {:7.4f} {:+.4f}, ends after {:.1f} of 6\n",
                 tolerated, mtbf_h, stated.accepted, seen, seen - stated.accepted, stated.looks);
    }
  }
}

/// All fleets, or only those of `only` nodes; 0: the soaks alone.
int run(int fleets, int only) {
  fmt::print("nodes parts instrument attempts runs margin bad  stated  made up  difference  its standard error\n");
  Differences differences;
  for (const auto& [nodes, parts] :
       {std::pair{1, 1}, {1, 8}, {4, 1}, {8, 1}, {7, 8}, {12, 1}, {24, 8}, {64, 1}, {100, 1}, {300, 1}}) {
    if (only >= 0 && only != nodes) continue;
    compare(static_cast<std::size_t>(nodes), static_cast<std::size_t>(parts), 0, fleets, differences);
    if (nodes == 4 || nodes == 12)
      compare(static_cast<std::size_t>(nodes), static_cast<std::size_t>(parts), 0.01, fleets, differences);
  }
  if (only <= 0) compare_soaks(fleets, differences);
  fmt::print("largest difference {:.4f}; {} of {} cases over a point, {} clearly; {} fleets each\n", differences.most,
             differences.over, differences.cases, differences.clear, fleets);
  return differences.clear == 0 ? 0 : 1;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) {
  return assay::run(count > 1 ? std::stoi(arguments[1]) : 4000, count > 2 ? std::stoi(arguments[2]) : -1);
}
