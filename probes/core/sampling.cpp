// sampling: the stopping rule.
#include "probes/core/sampling.h"

#include <chrono>
#include <cmath>
#include <span>
#include <stdexcept>

#include "probes/core/probe.h"
#include "probes/core/statistics.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kTrendWindow = 6;  // two halves of three: the fewest with a median each
constexpr double kConfidence = 0.95;

double finite(double value) {
  if (!std::isfinite(value)) throw std::runtime_error("a measured value is not finite");
  return value;
}

bool over(Clock::time_point begin, Seconds limit) {
  return std::chrono::duration<double>(Clock::now() - begin).count() > limit.count;
}

bool steady(std::span<const double> values, double goal) {
  if (values.size() < kTrendWindow) return false;
  const auto older = values.last(kTrendWindow).first(kTrendWindow / 2);
  const auto newer = values.last(kTrendWindow / 2);
  return std::abs(median(newer) - median(older)) <= goal * std::abs(median(older));
}

bool known(std::span<const double> samples, double goal) {
  const auto interval = order_statistic_interval(samples, 0.5, kConfidence);
  return interval && (interval->high - interval->low) / 2 <= goal * std::abs(median(samples));
}

}  // namespace

SamplingPlan sampling_plan(const Parameters& given) {
  SamplingPlan plan;
  plan.min_samples = static_cast<std::size_t>(given.count("min_samples"));
  plan.max_samples = static_cast<std::size_t>(given.count("max_samples"));
  plan.time_limit = given.seconds("time_limit");
  plan.warmup_limit = given.seconds("warmup_limit");
  plan.warmup_least = given.seconds("warmup_least");
  return plan;
}

Sampling sample(const SamplingPlan& plan, const std::function<double()>& measure) {
  Sampling result;
  const auto warmup_begin = Clock::now();
  do {
    result.warmup.push_back(finite(measure()));
  } while (!stop_requested() &&
           (!over(warmup_begin, plan.warmup_least) ||
            (!steady(result.warmup, plan.half_width_goal) && !over(warmup_begin, plan.warmup_limit))));

  const auto begin = Clock::now();
  std::size_t next_look = plan.min_samples;
  while (true) {
    result.samples.push_back(finite(measure()));
    const std::size_t taken = result.samples.size();
    if (taken < plan.min_samples || (!over(begin, plan.load_least) && !stop_requested())) continue;
    const bool looks = taken >= next_look || taken >= plan.max_samples;
    if (looks) next_look = 2 * taken;
    if (looks && known(result.samples, plan.half_width_goal)) {
      result.stopped = "stable";
    } else if (taken >= plan.max_samples) {
      result.stopped = "sample_cap";
    } else if (over(begin, plan.time_limit) || stop_requested()) {
      result.stopped = "time_cap";
    } else {
      continue;
    }
    return result;
  }
}

Sampling sample_fixed(std::size_t count, const std::function<double()>& measure) {
  Sampling result{.samples = {}, .warmup = {}, .stopped = "fixed"};
  for (std::size_t i = 0; i < count; ++i) result.samples.push_back(finite(measure()));
  return result;
}

Sampling share_of(Sampling values, double whole) {
  for (auto* part : {&values.samples, &values.warmup}) {
    for (double& value : *part) value /= whole;
  }
  return values;
}

}  // namespace assay
