// batches: iterations of a collective measured a few at a time on all ranks, and the time of one iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "probes/core/sampling.h"

namespace assay::collective {

/// Iterations enqueued back to back: first `lead` that are not counted (the ranks enter the first at different times,
/// and leave it together), then `counted` with a time each.
struct Batch {
  std::int64_t lead = 0;
  std::int64_t counted = 0;
  friend bool operator==(const Batch&, const Batch&) = default;
};

/// The batch after one whose iterations took `last_s` each. Before anything is known: five to warm up and one to see.
/// Then about a second's worth, at most ten, so that a slow network ends in time and a fast one is not asked too often.
Batch next_batch(std::optional<double> last_s);

/// Time of each iteration: the longest of all ranks. `by_rank` has the ranks' times in the same order. Throws
/// std::runtime_error when ranks differ in their number of times or a time is not positive and finite.
std::vector<double> slowest(const std::vector<std::vector<double>>& by_rank);

/// Samples by sample()'s rules, taken in batches; `run` returns one time for each counted iteration, in s. Times of a
/// batch beyond the rule's end are kept as samples, too.
Sampling sample_batches(const SamplingPlan& plan, const std::function<std::vector<double>(Batch)>& run);

/// The same run in another unit: every time in `times` (samples and warm-up) as `amount` over it.
Sampling per_second(const Sampling& times, double amount);

}  // namespace assay::collective
