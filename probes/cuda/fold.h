// fold: sums of the words of a timed read in which no errors cancel. Plain constexpr C++: the kernels and
// the host's tests run the same lines.
//
// A sum modulo 2^64 misses whole classes of errors: a bit that falls in one word and rises in another cancels, the
// highest bit cancels in any even number of words, as a warp's lanes or ten passes are, and a sum of products that is
// stored as a whole number loses every error below 1. So each thread also turns and joins the bits of its words, so
// that no two words of a thread can be exchanged, and mixes that with its number, so that no two threads can:
//   words w0, w1 of thread 5   ->   mixed(turned(turned(0, w0), w1), 5)
// The sum of these over all threads differs from the right one, but for one of 2^64, when the fold of any thread does.
#pragma once

#include <bit>
#include <cstdint>

#include "probes/cuda/mixed.h"

namespace assay::cuda {

/// Threads of a block of a sum, and vectors of 16 B that each of them reads: 32 KiB a block, all loads in flight.
inline constexpr std::uint64_t kSumThreads = 256, kSumPiece = 8;

/// Sums are kept in this many words, so that blocks which end together do not queue for one; their total counts. The
/// plain sums are followed by as many words for the folds (fold.h).
inline constexpr std::size_t kSumSlots = 64, kSumWords = 2 * kSumSlots;

/// Sizes are multiples of this: one load or store of one thread.
inline constexpr std::uint64_t kVectorBytes = 16;

/// The vector that is the `place`-th of thread `thread` of all: neighbours read neighbours.
constexpr std::uint64_t sum_vector(std::uint64_t thread, std::uint64_t place) {
  return thread / kSumThreads * (kSumThreads * kSumPiece) + place * kSumThreads + thread % kSumThreads;
}
static_assert(sum_vector(1, 0) == 1 && sum_vector(1, 1) == 257 && sum_vector(256, 0) == 2048);

/// `fold` with one word more.
constexpr std::uint64_t turned(std::uint64_t fold, std::uint64_t word) { return std::rotl(fold, 1) ^ word; }

/// The part of thread `thread` in the fold of all.
constexpr std::uint64_t fold_of_thread(std::uint64_t fold, std::uint64_t thread) { return mixed(fold, thread); }

/// The plain sum and the fold of words, both modulo 2^64.
struct Folded {
  std::uint64_t sum = 0, fold = 0;

  constexpr void add(const Folded& other) { sum += other.sum, fold += other.fold; }
  friend constexpr bool operator==(const Folded&, const Folded&) = default;
};

/// The part of thread `thread` in a sum over `vectors` vectors adds. word(i) is the i-th word of the memory; a vector
/// has two.
template <class Word>
constexpr Folded folded_by(std::uint64_t thread, std::uint64_t vectors, Word word) {
  Folded own;
  std::uint64_t fold = 0;
  for (std::uint64_t place = 0; place < kSumPiece; ++place) {
    const std::uint64_t vector = sum_vector(thread, place);
    if (vector >= vectors) break;
    for (std::uint64_t i = 2 * vector; i < 2 * vector + 2; ++i) {
      own.sum += word(i);
      fold = turned(fold, word(i));
    }
  }
  own.fold = fold_of_thread(fold, thread);
  return own;
}

}  // namespace assay::cuda
