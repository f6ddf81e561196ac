// decode_run: steps of one batch and context, each with a plain reading of the same bytes by the same threads.
#pragma once

#include <cstdint>
#include <string>
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
  Bytes cache;                      ///< last-level caches together
  std::size_t sets = 1;             ///< of weights, at least so many that the smallest pass twice the cache
  std::uint64_t largest_cache = 0;  ///< of keys and values of one set, B
};

/// Reads `given`. Throws BadParameter for a model that is not run here, a value that is out of range, or does not fit
/// into half of `memory`.
DecodePlan decode_plan(const Parameters& given, Bytes cache, Bytes memory);

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
  double off_cpu = 0;            ///< largest share of a thread, over all readings, in which it did not run
  std::uint64_t mismatches = 0;  ///< logits, and prints of steps, that are wrong
};

/// Measures one shape with the threads of `crew`. `sets` has room for it.
DecodeFigures measure_decode(const DecodePlan& plan, const DecodeShape& shape, DecodeSets& sets,
                             host::PinnedThreads& crew, std::uint64_t seed);

/// Records them; no rate and no figure compared with the floor if numbers are ring, anything was wrong, or data read
/// may have been in a cache.
void record_decode(const DecodePlan& plan, const DecodeFigures& figures, Recorder& record);

}  // namespace assay::inference
