// memory_kernels: the kernels that move, make and compare bytes. Every function enqueues on `stream` of the current
// device and returns; addresses are aligned to 16 bytes, and may be of a peer or of mapped host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "probes/core/units.h"
#include "probes/cuda/device.h"
#include "probes/cuda/fold.h"
#include "probes/cuda/stream_values.h"
#include "probes/cuda/walk_words.h"

namespace assay::cuda {

/// Blocks of kSumThreads threads for `pieces`. Throws std::invalid_argument when one launch takes no so many.
inline unsigned blocks_for(std::uint64_t pieces) {
  const std::uint64_t blocks = (pieces + kSumThreads - 1) / kSumThreads;
  if (blocks > INT32_MAX) throw std::invalid_argument("more elements than one launch takes");
  return static_cast<unsigned>(blocks);
}

/// Three arrays of `elements` doubles each; elements is even.
struct HbmPointers {
  double* a = nullptr;
  double* b = nullptr;
  double* c = nullptr;
  std::uint64_t elements = 0;
};

/// Fills `target` with hbm_start_value(kernel, array, ...).
void enqueue_start(HbmKernel kernel, HbmArray array, double* target, std::uint64_t elements, const Stream& stream);

/// One pass of `kernel` over the arrays. read adds the words of a, and dot the products, to the kSumWords words of
/// `sums` modulo 2^64; write fills a with the payload 0.
void enqueue_pass(HbmKernel kernel, const HbmPointers& arrays, std::uint64_t* sums, const Stream& stream);

/// Adds to *wrong how many elements of `found` are not, bit by bit, hbm_expected(kernel, array, ...).
void enqueue_check(HbmKernel kernel, HbmArray array, const double* found, std::uint64_t elements, std::uint64_t* wrong,
                   const Stream& stream);

/// Fills `target` with the payload `seed`.
void enqueue_fill(std::byte* target, Bytes size, std::uint64_t seed, const Stream& stream);

/// Adds the words of `source` to the kSumWords words of `sums`, modulo 2^64.
void enqueue_sum(const std::byte* source, Bytes size, std::uint64_t* sums, const Stream& stream);

/// Adds the right sums of the payload `seed`, and of a pass of dot over `elements` elements: the same arithmetic,
/// without memory.
void enqueue_right_sum(Bytes size, std::uint64_t seed, std::uint64_t* sums, const Stream& stream);
void enqueue_right_dot(std::uint64_t elements, std::uint64_t* sums, const Stream& stream);

/// One step of a walk over one slice at `memory`.
void enqueue_walk(std::byte* memory, Bytes size, const WalkStep& step, const WalkLog& log, const Stream& stream);

/// Adds to *wrong how many words of `found` are not those of the payload `seed`.
void enqueue_payload_check(const std::byte* found, Bytes size, std::uint64_t seed, std::uint64_t* wrong,
                           const Stream& stream);

/// Copies by the multiprocessors, not by a copy engine.
void enqueue_copy(std::byte* target, const std::byte* source, Bytes size, const Stream& stream);

/// One thread follows `steps` byte offsets through `memory` (see chase_words) from offset *at, and leaves in *at where
/// it ends. Every load goes to the memory itself: copies of it in caches count as stale.
void enqueue_chase(const std::byte* memory, std::uint64_t* at, std::uint64_t steps, const Stream& stream);

}  // namespace assay::cuda
