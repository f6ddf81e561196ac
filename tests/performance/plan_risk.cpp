// plan_risk: the operating characteristic that a plan states beside the share of made-up fleets that the judge's own
// functions accept. docs/PERFORMANCE.md has what came out.
#include <algorithm>
#include <cmath>
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

/// A fleet whose nodes have one rate each.
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

/// Whether all nodes of one made-up fleet pass: those that do not after the first stage are measured again.
bool is_accepted(const Fleet& fleet, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const std::size_t first = static_cast<std::size_t>(fleet.repeats.attempts);
  const std::size_t all = first + static_cast<std::size_t>(fleet.repeats.more_attempts);
  std::vector<std::vector<double>> nodes(fleet.repeats.steps, std::vector<double>(all));
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const double mean =
        node < fleet.bad ? -fleet.short_by : fleet.figures.margin + fleet.figures.between_nodes * normal(random);
    const double off = fleet.stated.instrument * normal(random);
    for (double& one : nodes[node]) one = kLimit * (1 + mean + off + fleet.figures.between_runs * normal(random));
  }
  const judge::StatedScatter stated{.least = fleet.stated.between_runs};
  const double risk = judge::risk_of(kGuardFactor, fleet.repeats.more_attempts > 0);
  std::vector<std::size_t> counts(nodes.size(), first);
  const auto passes = [&] {
    judge::BetweenRuns between;
    for (std::size_t node = 0; node < nodes.size(); ++node)
      between.add(fmt::format("{}", node), estimate_of(nodes[node], counts[node]));
    std::vector<bool> pass(nodes.size());
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const auto estimate = estimate_of(nodes[node], counts[node]);
      judge::Result result;
      judge::decide({.at_least = kLimit, .unit = "1"}, estimate, between.of(estimate, stated), fleet.stated.instrument,
                    {}, risk, result);
      pass[node] = result.outcome == judge::Outcome::pass;
    }
    return pass;
  };
  std::vector<bool> pass = passes();
  if (all == first) return std::ranges::all_of(pass, [](bool one) { return one; });
  for (std::size_t node = 0; node < nodes.size(); ++node) counts[node] = pass[node] ? first : all;
  pass = passes();
  return std::ranges::all_of(pass, [](bool one) { return one; });
}

double stated_chance(const Fleet& fleet) {
  const double risk = normal_cdf(-kGuardFactor);
  return std::exp(plan::ChanceToPass(fleet.figures, fleet.repeats, risk, fleet.stated)
                      .log_all(fleet.figures.margin, fleet.short_by, static_cast<double>(fleet.bad)));
}

/// The largest difference over fleets of these nodes with instruments of this relative uncertainty.
double compare(std::size_t nodes, double instrument, int fleets, std::mt19937_64& random) {
  double most = 0;
  for (const auto& [attempts, more] : {std::pair{3, 0}, {3, 4}, {5, 5}}) {
    for (const double margin : {0.0, 0.01, 0.02, 0.03, 0.05}) {
      for (const std::size_t bad : {0UL, 1UL}) {
        const Fleet fleet{.figures = {.margin = margin, .between_nodes = 0.005, .between_runs = 0.01},
                          .repeats = {.attempts = attempts, .more_attempts = more, .steps = nodes},
                          .stated = {.instrument = instrument},
                          .bad = bad,
                          .short_by = 0.005};
        const double stated = stated_chance(fleet);
        int accepted = 0;
        for (int i = 0; i < fleets; ++i) accepted += is_accepted(fleet, random) ? 1 : 0;
        const double seen = static_cast<double>(accepted) / fleets;
        most = std::max(most, std::abs(seen - stated));
        fmt::print("{:5} {:4.1f} % {}+{:<5} {:5.1f} % {:3} {:7.4f} {:7.4f} {:+.4f}\n", nodes, instrument * 100,
                   attempts, more, margin * 100, bad, stated, seen, seen - stated);
      }
    }
  }
  return most;
}

/// Paths of a soak's interruptions along an early stop's boundaries, by their times and not by looks.
double compare_soaks(int paths, std::mt19937_64& random) {
  double most = 0;
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
      most = std::max(most, std::abs(seen - stated.accepted));
      fmt::print("soak, {:2} tolerated, {:6.0f} h between two: {:7.4f} {:7.4f} {:+.4f}, ends after {:.1f} of 6\n",
                 tolerated, mtbf_h, stated.accepted, seen, seen - stated.accepted, stated.looks);
    }
  }
  return most;
}

int run(int fleets) {
  std::mt19937_64 random(42);
  fmt::print("nodes instrument attempts margin bad  stated  made up  difference\n");
  double most = 0;
  for (const std::size_t nodes : {1UL, 4UL, 8UL, 12UL, 64UL}) most = std::max(most, compare(nodes, 0, fleets, random));
  for (const std::size_t nodes : {4UL, 12UL}) most = std::max(most, compare(nodes, 0.01, fleets, random));
  most = std::max(most, compare_soaks(fleets, random));
  fmt::print("largest difference {:.4f}, of {} fleets each\n", most, fleets);
  constexpr double kErrors = 4, kAllowed = 0.01;  // standard errors of a share of so many fleets
  return most <= kAllowed + kErrors * 0.5 / std::sqrt(fleets) ? 0 : 1;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) { return assay::run(count > 1 ? std::atoi(arguments[1]) : 4000); }
