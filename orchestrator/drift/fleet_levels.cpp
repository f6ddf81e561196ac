// fleet_levels: follows the common level of a kind of unit with two charts, and compares it with the signed acceptance.
#include "orchestrator/drift/fleet_levels.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orchestrator/drift/charts.h"
#include "probes/core/portable_math.h"

namespace assay::drift {
namespace {

constexpr double kLeastDeviation = 1e-6;  // of a level from night to night; without it every rounding is a step

double deviation_of(const FleetLevel& kept) {
  return kept.reference.n < 2 ? 0 : std::sqrt(kept.reference.squares / (kept.reference.n - 1));
}

}  // namespace

void move_level(FleetLevel& kept, Day day, double level, std::size_t units, const Policy& policy, double h_small,
                double h_large) {
  kept.last_day = day;
  kept.units = static_cast<double>(units);
  const double n = kept.reference.n;
  double e = n > 0 ? level - kept.reference.mean : 0;
  kept.effect = e;
  const double s = std::max(deviation_of(kept), kLeastDeviation);
  if (n >= policy.warmup) {
    const double z = std::clamp(student_score(e / (s * std::sqrt(1 + 1 / n)), n - 1), -policy.clip, policy.clip);
    if (kept.c_large == 0 && !kept.held) kept.since = day;
    kept.c_small = std::max(0.0, kept.c_small + z - kSmallSlack);
    kept.c_large = std::max(0.0, kept.c_large + z - kLargeSlack);
    if (kept.c_small > h_small || kept.c_large > h_large) kept.held = true;
    if (kept.c_small == 0 && kept.c_large == 0) kept.held = false;
    e = std::clamp(e, -policy.winsor * s, policy.winsor * s);
  }
  if (!kept.held) kept.reference.add(n > 0 ? kept.reference.mean + e : level);
}

double acceptance_limit(const FleetLevel& kept, double min_effect) {
  constexpr double kOneSided95 = 1.645;
  constexpr double kOneNight = 1.4142135623730951;  // sqrt(1 + 1 / 1): tonight's deviation and the acceptance's
  return -std::max(-portable_log(1 - min_effect), kOneSided95 * deviation_of(kept) * kOneNight);
}

std::vector<FleetFinding> fleet_findings(const std::string& metric, const std::map<std::string, FleetLevel>& levels,
                                         double min_effect, Day tonight) {
  std::vector<FleetFinding> found;
  for (const auto& [cohort, kept] : levels) {
    if (kept.last_day != tonight) continue;
    const auto add = [&](FleetFinding::Kind kind, Day since, double effect, double limit, const char* against) {
      FleetFinding one{.kind = kind,
                       .metric = metric,
                       .cohort = cohort,
                       .since = date_of(since),
                       .ratio = portable_exp(effect),
                       .limit = portable_exp(limit),
                       .units = static_cast<std::size_t>(kept.units)};
      one.words = fmt::format("All {} units together are at {:.2f} % of {}: look for what changed on all of them.",
                              one.units, 100 * one.ratio, against);
      found.push_back(std::move(one));
    };
    const double least = portable_log(1 - min_effect);
    if (kept.held && kept.effect < least)
      add(FleetFinding::Kind::step, kept.since, kept.effect, least, "their earlier nights");
    const double limit = acceptance_limit(kept, min_effect);
    if (kept.has_accepted && kept.accepted_effect < limit)
      add(FleetFinding::Kind::below_acceptance, tonight, kept.accepted_effect, limit, "their signed acceptance");
  }
  return found;
}

}  // namespace assay::drift
