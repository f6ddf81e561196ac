// count_and_state: counts against the rate of all units, states against an expected value.
//
// Count. All units share one Poisson rate: the events of good visits over the nights that those visits cover
// (exposure), rate = (events + 0.5) / exposure. A unit that shows k events after `nights` nights is bad when P(X >= k)
// <= p for X with the Poisson mean rate x nights (poisson_tail in charts.h); p is a share of the budget of false flags
// over the visits of its nights (count_p, detector.cpp). No rate is used before 12 nights of exposure. A single event
// of a fatal metric is bad, and so is more than `most_per_day` a night, regardless of the others. Bad visits and series
// with a flag are left out of the rate, so that a sick unit does not hide itself. Example: 10 events in 1,000 nights
// give a rate of 0.0105 a night. Two events in one night have the probability 5.5e-5, and are bad where p is at least
// that.
//
// State. The expected value is the rule's, else the one that more than half of at least four units of the cohort show
// tonight, else the unit's own first one. Any other value is bad.
#include "orchestrator/drift/count_and_state.h"

#include <algorithm>
#include <cmath>

#include "orchestrator/drift/charts.h"

namespace assay::drift {
namespace {

constexpr std::size_t kPeersForMode = 4;
constexpr double kExposureForRate = 12;  // nights of all peers together, before a rate is judged

/// The value of most of tonight's peers, by cohort; of equally many the larger one.
std::map<std::uint32_t, double> modes_of(std::span<const PlainInput> inputs) {
  std::map<std::uint32_t, std::map<double, std::size_t>> counts;
  for (const auto& input : inputs) {
    if (input.regular && std::isfinite(input.value)) ++counts[input.cohort][input.value];
  }
  std::map<std::uint32_t, double> modes;
  for (const auto& [cohort, values] : counts) {
    std::size_t all = 0;
    std::size_t most = 0;
    for (const auto& [value, count] : values) {
      all += count;
      if (count >= most) {
        most = count;
        modes[cohort] = value;
      }
    }
    if (all < kPeersForMode || 2 * most <= all) modes.erase(cohort);
  }
  return modes;
}

}  // namespace

double PlainMetric::events_since(const PlainState& kept, const PlainInput& input) const {
  if (rules_.course != Course::since_boot && rules_.course != Course::for_life) return input.value;
  if (kept.seen == 0) return 0;  // events before it was watched are not of tonight
  const bool fell = input.value < kept.last;
  // A counter of the part's life that falls was replaced or rewritten: it has no events.
  if (rules_.course == Course::for_life) return fell ? 0 : input.value - kept.last;
  return fell || kept.boot != input.boot ? input.value : input.value - kept.last;
}

PlainFinding PlainMetric::count(Day day, const PlainInput& input, double p) {
  PlainState& kept = states[input.slot];
  const double happened = events_since(kept, input);
  const bool runs_on = rules_.course == Course::since_boot || rules_.course == Course::for_life;
  const bool tells = kept.seen > 0 || !runs_on;              // the first reading of a counter is no night of exposure
  const bool again = kept.seen > 0 && kept.last_day == day;  // within a night
  const double nights = kept.seen > 0 ? std::max(1.0, static_cast<double>(day) - kept.last_day) : 1;
  kept.last = input.value;
  kept.boot = input.boot;
  kept.last_day = day;
  kept.seen = 1;
  const double rate = (events + 0.5) / std::max(exposure, 1.0);
  const bool unusual = exposure >= kExposureForRate && poisson_tail(rate * nights, happened) <= p;
  const bool many = rules_.most_per_day && happened > *rules_.most_per_day * nights;
  const bool bad = happened > 0 && (rules_.fatal || unusual || many);
  if (!bad && kept.held == 0 && tells) {
    events += happened;
    if (!again) exposure += nights;
  }
  return {.bad = bad, .regular = input.regular, .events = happened, .expected = rate};
}

PlainFinding PlainMetric::state(const PlainInput& input, const std::map<std::uint32_t, double>& modes) {
  PlainState& kept = states[input.slot];
  const auto mode = modes.find(input.cohort);
  if (kept.seen == 0) {
    kept.seen = 1;
    kept.last = input.value;
  }
  const double expected = rules_.expected ? *rules_.expected : mode != modes.end() ? mode->second : kept.last;
  return {.bad = input.value != expected, .regular = input.regular, .events = input.value, .expected = expected};
}

std::vector<PlainFinding> PlainMetric::night(Day day, std::span<const PlainInput> inputs, double p) {
  std::vector<PlainFinding> found;
  const auto modes = rules_.type == MetricClass::state ? modes_of(inputs) : std::map<std::uint32_t, double>{};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const PlainInput& input = inputs[i];
    if (!std::isfinite(input.value) || (rules_.type == MetricClass::count && input.value < 0)) continue;
    found.push_back(rules_.type == MetricClass::state ? state(input, modes) : count(day, input, p));
    found.back().input = i;
  }
  return found;
}

}  // namespace assay::drift
