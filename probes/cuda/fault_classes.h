// fault_classes: faults of published classes that are put into the data of a check, and how many of them it finds.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "probes/cuda/mixed.h"

namespace assay::cuda {

/// Published classes: one bit of a word; 2 to 8 neighbouring bits, a byte as a beam leaves it in HBM2
/// (doi:10.1145/3466752.3480111); one bit of the same word in all 32 lanes of a warp, our form of the warp-aligned
/// errors of faults in a GPU's logic (arXiv 2605.04213); a bit that is stuck in one of kStuckEvery reads.
enum class FaultClass : std::uint8_t { single_bit, burst, warp_aligned, rare_stuck };
inline constexpr std::array kFaultClasses = {FaultClass::single_bit, FaultClass::burst, FaultClass::warp_aligned,
                                             FaultClass::rare_stuck};
inline constexpr std::uint64_t kStuckEvery = 1000;

/// Words that a fault needs at least: a warp's lanes read 16 B each. Words that one is put into where there are so
/// many.
inline constexpr std::size_t kLeastFaultWords = 64, kFaultWords = 1024;

/// Puts fault `number` of a class into `words`, kLeastFaultWords at least. Faults of one number are at one place; a
/// stuck bit may have its value there already, and then changes nothing.
constexpr void put_fault(std::span<std::uint64_t> words, FaultClass fault, std::uint64_t number) {
  constexpr std::uint64_t kLanes = 32, kWordsOfLane = 2, kLongestBurst = 8, kBits = 64;
  const auto below = [&](std::uint64_t draw, std::uint64_t limit) {
    return mixed(mixed(static_cast<std::uint64_t>(fault), number), draw) % limit;
  };
  std::uint64_t& word = words[below(0, words.size())];
  const std::uint64_t bit = std::uint64_t{1} << below(1, kBits);
  switch (fault) {
    case FaultClass::single_bit:
      word ^= bit;
      return;
    case FaultClass::burst: {
      const std::uint64_t length = 2 + below(1, kLongestBurst - 1);
      word ^= ((std::uint64_t{1} << length) - 1) << below(2, kBits + 1 - length);
      return;
    }
    case FaultClass::warp_aligned: {
      const std::uint64_t warp = kLanes * kWordsOfLane;
      const std::uint64_t first = below(2, words.size() / warp) * warp + below(3, kWordsOfLane);
      for (std::uint64_t lane = 0; lane < kLanes; ++lane) words[first + kWordsOfLane * lane] ^= bit;
      return;
    }
    case FaultClass::rare_stuck:
      word = below(2, 2) == 1 ? word | bit : word & ~bit;
  }
}

/// Faults of one class, and those that the check found. A stuck bit counts once for a whole round of the check.
struct FaultCount {
  std::uint64_t put = 0, found = 0;
};
using FaultCounts = std::array<FaultCount, kFaultClasses.size()>;  ///< in the order of kFaultClasses

/// Faults of a class that are put in: all found is a share of over 0.98.
inline constexpr std::uint64_t kFaultsPut = 256;

/// Counts where is_found(fault, number) is true, for kFaultsPut faults of each class and `stuck` stuck bits.
template <class IsFound>
FaultCounts count_faults(std::uint64_t stuck, const IsFound& is_found) {
  FaultCounts counts;
  for (const FaultClass fault : kFaultClasses) {
    FaultCount& count = counts[static_cast<std::size_t>(fault)];
    const std::uint64_t all = fault == FaultClass::rare_stuck ? stuck : kFaultsPut;
    for (; count.put < all; ++count.put) count.found += is_found(fault, count.put) ? 1 : 0;
  }
  return counts;
}

}  // namespace assay::cuda
