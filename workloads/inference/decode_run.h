// decode_run: steps of one batch and context, each with a plain reading of the same bytes by the same threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "probes/host/pinned_threads.h"
#include "workloads/inference/decode_walk.h"

namespace assay::inference {

/// Parameters of the run.
struct DecodePlan {
  train::ModelShape model;                      ///< with the layers that are run
  std::vector<std::int64_t> batches, contexts;  ///< every one with every other
  std::int64_t steps = 200;
  DecodeNumbers numbers = DecodeNumbers::gaussian;
  Bytes cache = {};      ///< last-level caches together
  std::size_t sets = 1;  ///< at least so many that the smallest shape passes twice the cache

  /// The shapes with the fewest and with the most sequences and tokens.
  [[nodiscard]] DecodeShape least() const {
    return {.model = model, .batch = batches.front(), .context = contexts.front()};
  }
  [[nodiscard]] DecodeShape most() const {
    return {.model = model, .batch = batches.back(), .context = contexts.back()};
  }
  /// The same with this cache, and with another number of layers: with the sets that it then takes.
  [[nodiscard]] DecodePlan with_cache(Bytes other) const;
  [[nodiscard]] DecodePlan with_layers(std::int64_t layers) const;
};

/// Reads `given`. Throws BadParameter for a model that is not run here and a value that is out of range.
DecodePlan decode_plan(const Parameters& given);

/// Throws BadParameter unless it fits into half of `memory`.
void check_memory(const DecodePlan& plan, Bytes memory);

/// How many sets of `set` B are used in turn so that they pass twice a cache of `cache` B: one that does so on its own
/// is its own successor.
constexpr std::size_t sets_past(std::uint64_t set, std::uint64_t cache) {
  return static_cast<std::size_t>(set >= 2 * cache ? 1 : (2 * cache + set - 1) / set);
}
static_assert(sets_past(100, 32) == 1 && sets_past(64, 32) == 1 && sets_past(10, 32) == 7);

/// Figures of one batch at one context.
struct DecodeFigures {
  DecodeShape shape;
  bool past_cache = false;                     ///< data read had left every cache
  std::vector<double> warmup, latency, floor;  ///< s
  std::vector<double> over_floor;              ///< of each round
  double off_cpu = 0;            ///< on hosts: largest share of a thread, over all readings, in which it did not run
  std::uint64_t mismatches = 0;  ///< logits, and prints of steps, that are wrong
};

/// Steps of one round.
inline constexpr std::int64_t kDecodeRound = 5;

/// Warm-up steps, and rounds in which a step and a reading alternate; both return their time in s.
void take_rounds(const DecodePlan& plan, DecodeFigures& figures, const std::function<double()>& step,
                 const std::function<double()>& reading);

/// Throws std::runtime_error where two inputs have one print: such a step does not depend on its input, as one whose
/// logits are all no numbers.
void demand_different(std::span<const std::uint64_t> prints);

/// Measures one shape with the threads of `crew`. `sets` has room for it.
DecodeFigures measure_decode(const DecodePlan& plan, const DecodeShape& shape, DecodeSets& sets,
                             host::PinnedThreads& crew, std::uint64_t seed);

/// Records the model, its sets, and the cache that they pass.
void record_model(const DecodePlan& plan, const Subject& subject, Recorder& record);

/// Records them, and a note where data read may have been in a cache; no rate and no figure compared with the floor if
/// numbers are ring, anything was wrong, or data read may have been in a cache.
void record_decode(const DecodePlan& plan, const DecodeFigures& figures, const Subject& subject, Recorder& record);

}  // namespace assay::inference
