// acceptance: one integral for each kind of cell gives its probability to pass; their product is that of the plan. See
// acceptance.h.
#include "orchestrator/plan/acceptance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "orchestrator/plan/repeat.h"
#include "probes/core/portable_math.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::plan {
namespace {

constexpr int kIntervals = 120;  // of an integral over a normal density: its error is below 1e-9
constexpr double kWidth = 6;     // standard deviations to either side; 2e-9 is beyond

/// The mean of `inner` over a standard normal variable (Simpson's rule).
template <class Inner>
double normal_mean(Inner inner) {
  const double step = 2 * kWidth / kIntervals;
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double z = -kWidth + i * step;
    const double weight = i == 0 || i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * portable_exp(-z * z / 2) * inner(z);
  }
  constexpr double kDensity = 0.3989422804014327;  // 1 / sqrt(2 pi)
  return sum * step / 3 * kDensity;
}

/// Margin by which a mean of `attempts` must exceed the limit, as a share of it.
double guard(const HealthyFleet& fleet, int attempts, double risk, const StatedUncertainty& stated, double subjects) {
  if (attempts == 1) {
    const double u = portable_hypot(std::max(stated.reproducibility, stated.between_runs), stated.instrument);
    return (stated.reproducibility > 0 ? -normal_quantile(risk) : student_quantile(1 - risk, 1)) * u;
  }
  const double u = portable_hypot(fleet.between_runs / std::sqrt(attempts), stated.instrument);
  const double measured = student_quantile(1 - risk, std::max(1.0, subjects * (attempts - 1))) * u;
  const double least = portable_hypot(stated.between_runs / std::sqrt(attempts), stated.instrument);
  return std::max(measured, -normal_quantile(risk) * least);
}

}  // namespace

std::expected<HealthyFleet, InputError> healthy_fleet(std::string_view text, const std::string& where) {
  double numbers[3] = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  const InputError odd{where, fmt::format("'{}' is not three numbers from 0 to 100", text),
                       "write the margin above the limits and the deviations between nodes and between runs in per "
                       "cent, such as 4,0.5,0.5"};
  for (int i = 0; i < 3; ++i) {
    const auto read = std::from_chars(at, end, numbers[i]);
    const bool last = i == 2;
    if (read.ec != std::errc{} || !(numbers[i] >= 0 && numbers[i] <= 100)) return std::unexpected(odd);
    if (last ? read.ptr != end : read.ptr == end || *read.ptr != ',') return std::unexpected(odd);
    at = last ? end : read.ptr + 1;
  }
  return HealthyFleet{.margin = numbers[0] / 100, .between_nodes = numbers[1] / 100, .between_runs = numbers[2] / 100};
}

double chance_to_pass(const HealthyFleet& fleet, int attempts, int more_attempts, double risk,
                      const StatedUncertainty& stated, double subjects) {
  const int stages = more_attempts > 0 ? 2 : 1;
  const double first = guard(fleet, attempts, risk / stages, stated, subjects);
  const double of_first = std::max(fleet.between_runs / std::sqrt(attempts), 1e-12);
  const int all = attempts + more_attempts;
  const double second = guard(fleet, all, risk / stages, stated, subjects);
  return normal_mean([&](double node) {
    const double mean = fleet.margin + node * fleet.between_nodes;
    if (stages == 1) return normal_cdf((mean - first) / of_first);
    const double of_more = std::max(fleet.between_runs / std::sqrt(more_attempts), 1e-12);
    return normal_mean([&](double run) {
      const double seen = mean + run * of_first;
      if (seen >= first) return 1.0;
      const double needed = (second * all - seen * attempts) / more_attempts;  // of the mean of the others
      return normal_cdf((mean - needed) / of_more);
    });
  });
}

AcceptanceChance acceptance_chance(const Plan& plan, const HealthyFleet& fleet) {
  AcceptanceChance chance;
  std::unordered_map<std::string_view, double> subjects;
  for (const auto& cell : plan.coverage) {
    const Requirement& requirement = *plan.requirement(cell.requirement);
    if (!requirement.required) continue;
    if (cell.step.empty()) ++chance.unplanned;
    if (cell.step.empty() || !varies_between_runs(requirement.statistic)) continue;
    const site::Node* node = cell.subject.kind == "node" ? plan.site.node(cell.subject.id) : nullptr;
    const std::string kind(word_of(requirement.scope));
    subjects[cell.requirement] += node == nullptr ? 1 : designed_parts(plan.profile, *node, kind).value_or(1);
  }
  const double risk = normal_cdf(-plan.profile.guard_factor);
  std::map<std::tuple<int, int, StatedUncertainty, double, double>, double> known;
  double log_accepted = 0;
  for (const auto& [id, count] : subjects) {
    const Requirement& requirement = *plan.requirement(id);
    const auto& metric = *plan.probes.at(requirement.probe).description.metric(requirement.metric);
    const double both = requirement.contrast ? std::sqrt(2.0) : 1;  // a ratio has the scatter of two figures
    const StatedUncertainty stated{.instrument = both * metric.instrument,
                                   .between_runs = both * metric.between_runs,
                                   .reproducibility = requirement.reproducibility ? requirement.reproducibility->u : 0};
    HealthyFleet own = fleet;
    own.between_runs *= both;
    const auto [entry, fresh] =
        known.try_emplace({requirement.attempts, requirement.more_attempts, stated, own.between_runs, count}, 0);
    if (fresh)
      entry->second = chance_to_pass(own, requirement.attempts, requirement.more_attempts, risk, stated, count);
    chance.cells += static_cast<std::size_t>(count);
    log_accepted += count * portable_log(std::max(entry->second, 1e-300));
  }
  chance.accepted = chance.unplanned > 0 ? 0 : portable_exp(log_accepted);
  return chance;
}

}  // namespace assay::plan
