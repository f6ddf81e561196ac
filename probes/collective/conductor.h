// conductor: the leader of rank 0, which asks all ranks, size by size, in batches of repetitions, and records.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/parameters.h"
#include "probes/core/record.h"
#include "probes/core/sampling.h"
#include "probes/core/units.h"

namespace assay {
class Recorder;
}  // namespace assay

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

class Fleet;

/// Differences between the libraries whose collectives are measured. Each call gets the answers of all ranks, by rank,
/// and throws std::runtime_error when the measurement cannot continue.
struct LibraryRules {
  using Answers = std::vector<nlohmann::json>;
  std::string prefix;                           ///< of the names of time, algbw and busbw
  std::function<Bytes(const Answers&)> admit;   ///< after "hello": limit of both buffers of a rank, in B
  std::function<void(const Answers&)> entered;  ///< after "enter", or null
  std::function<void(const Sampling& busbw, const Subject&, const Values& at)> measured;  ///< after each size, or null
  std::function<void(const Answers&)> finished;  ///< after "facts", the last request
};

/// Measures every one of `sizes` that fits on all ranks of `fleet`: a check, the timing by sampling()'s rules, a second
/// check; records time, algbw, busbw and mismatches with "at" the size, and the condition sizes_left_out. The ranks are
/// asked, in this order, for "hello"; "introduce", for a word that every rank must know of every other; "enter", with
/// all "words" by rank; "allocate"; then "check" and "time" for each size; "facts". `given` has operation, type and the
/// sampling parameters. The subject is the node, or of several nodes the group with their names joined by commas.
/// Throws std::runtime_error when a rank fails, `rules` refuse, or no size fits.
void conduct(Fleet& fleet, const Parameters& given, const std::vector<Bytes>& sizes, const LibraryRules& rules,
             Recorder& record);

}  // namespace assay::collective
