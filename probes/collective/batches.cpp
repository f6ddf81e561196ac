// batches: serves a stopping rule that takes one value at a time from batches of iterations.
#include "probes/collective/batches.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>

#include <fmt/format.h>

namespace assay::collective {

Batch next_batch(std::optional<double> last_s) {
  constexpr std::int64_t kWarmUp = 5;  // as nccl-tests had it until 2.19
  constexpr std::int64_t kMost = 10;   // with three commands each, far from the thousand a stream holds
  constexpr double kWorth_s = 1;
  if (!last_s) return {.lead = kWarmUp, .counted = 1};
  const double count = std::clamp(kWorth_s / *last_s, 1.0, static_cast<double>(kMost));
  return {.lead = 1, .counted = static_cast<std::int64_t>(count)};
}

std::vector<double> slowest(const std::vector<std::vector<double>>& by_rank) {
  std::vector<double> longest;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const auto& times = by_rank[rank];
    if (rank == 0) longest.assign(times.size(), 0);
    if (times.size() != longest.size()) {
      throw std::runtime_error(
          fmt::format("rank {} measured {} iterations and rank 0 {}", rank, times.size(), longest.size()));
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (!std::isfinite(times[i]) || times[i] <= 0)
        throw std::runtime_error(fmt::format("rank {} measured {} s", rank, times[i]));
      longest[i] = std::max(longest[i], times[i]);
    }
  }
  return longest;
}

Sampling sample_batches(const SamplingPlan& plan, const std::function<std::vector<double>(Batch)>& run) {
  std::deque<double> left;
  std::optional<double> last_s;
  auto sampling = sample(plan, [&] {
    if (left.empty()) {
      const Batch batch = next_batch(last_s);
      const auto times = run(batch);
      if (times.size() != static_cast<std::size_t>(batch.counted)) {
        throw std::runtime_error(fmt::format("{} of {} iterations were measured", times.size(), batch.counted));
      }
      left.assign(times.begin(), times.end());
    }
    last_s = left.front();
    left.pop_front();
    return *last_s;
  });
  sampling.samples.insert(sampling.samples.end(), left.begin(), left.end());
  return sampling;
}

Sampling per_second(const Sampling& times, double amount) {
  Sampling rates = times;
  for (auto* values : {&rates.samples, &rates.warmup}) {
    for (double& value : *values) value = amount / value;
  }
  return rates;
}

}  // namespace assay::collective
