// pattern: data sent by every rank in a check, and data that it must then have received. Added numbers are whole
// and so small that every sum is exact in the type, in any order of addition. Data that is only moved are words of
// random bits: numbers would leave most bits of an element the same, and a bit of a path that is stuck at that value
// would be missed. The same functions run in kernels, on hosts and in the tests.
#pragma once

#include <cstdint>

#include "probes/collective/kinds.h"

namespace assay::collective {

/// One check of one rank.
struct Pattern {
  Operation operation = Operation::all_reduce;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint64_t chunk = 1;    ///< elements of one share (Shape::chunk)
  std::uint64_t seed = 0;     ///< another for every check, so that data left by an earlier one does not pass
  std::uint32_t modulus = 2;  ///< from sum_modulus
  bool sparse = false;        ///< from sum_is_sparse
};

/// Values that are added are below this; a prime, so that no period of a buffer meets theirs, and exact in every type.
inline constexpr std::uint32_t kLargestModulus = 251;

/// Whether the ranks are so many that each can add 1 only now and then for the sum to stay exact.
constexpr bool sum_is_sparse(std::uint32_t ranks, std::uint32_t limit) { return ranks > limit; }

/// The modulus of the values that are added, so that no sum of `ranks` of them is over `limit`.
constexpr std::uint32_t sum_modulus(std::uint32_t ranks, std::uint32_t limit) {
  if (sum_is_sparse(ranks, limit)) return (ranks + limit - 1) / limit + 1;  // ranks / modulus ones
  const std::uint32_t modulus = limit / ranks + 1;                          // ranks * (modulus - 1) at most
  return modulus > kLargestModulus ? kLargestModulus : modulus;
}
static_assert(sum_modulus(8, 256) == 33 && sum_modulus(256, 256) == 2 && sum_modulus(1000, 256) == 5);

/// A well mixed number of `seed` and `index` (splitmix64: Steele, Lea & Flood 2014).
constexpr std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// What `rank` adds at element `index` of a reduction: index decides where a cycle of the modulus begins, the rank how
/// far on it is; so the sum needs no loop over ranks, and a rank that is missing or counted twice shows.
constexpr std::uint32_t added(const Pattern& pattern, std::uint32_t rank, std::uint64_t index) {
  const auto place =
      static_cast<std::uint32_t>((mixed(pattern.seed, index) % pattern.modulus + rank) % pattern.modulus);
  return pattern.sparse ? (place == 0 ? 1 : 0) : place;
}

/// The sum of added() over all ranks.
constexpr std::uint32_t sum(const Pattern& pattern, std::uint64_t index) {
  const std::uint32_t m = pattern.modulus, n = pattern.ranks;
  const auto first = static_cast<std::uint32_t>(mixed(pattern.seed, index) % m);
  if (pattern.sparse) {
    const std::uint32_t rank = (m - first) % m;  // the first rank whose place is 0; then every m-th
    return rank < n ? (n - 1 - rank) / m + 1 : 0;
  }
  const std::uint32_t whole = n / m * (m * (m - 1) / 2);
  const std::uint32_t rest = n % m, to_end = m - first;
  if (rest <= to_end) return whole + rest * first + rest * (rest - 1) / 2;
  const std::uint32_t around = rest - to_end;
  return whole + to_end * first + to_end * (to_end - 1) / 2 + around * (around - 1) / 2;
}

/// The word that `source` has for `target` at element `index` of a share, where data is only moved; an element is as
/// much of its lower end as the type is long. For an operation that sends the same to all, `target` is 0.
constexpr std::uint64_t moved(const Pattern& pattern, std::uint64_t source, std::uint64_t target, std::uint64_t index) {
  return mixed(mixed(pattern.seed, source << 32 | target), index);
}

/// The number or word at `index` of the send buffer.
constexpr std::uint64_t sent(const Pattern& pattern, std::uint64_t index) {
  if (reduces(pattern.operation)) return added(pattern, pattern.rank, index);
  if (pattern.operation == Operation::all_to_all || pattern.operation == Operation::scatter) {
    return moved(pattern, pattern.rank, index / pattern.chunk, index % pattern.chunk);
  }
  return moved(pattern, pattern.rank, 0, index);
}

/// The number or word that must be at `index` of the receive buffer.
constexpr std::uint64_t received(const Pattern& pattern, std::uint64_t index) {
  const std::uint64_t share = index / pattern.chunk, within = index % pattern.chunk;
  switch (pattern.operation) {
    case Operation::all_reduce:
      return sum(pattern, index);
    case Operation::reduce_scatter:
      return sum(pattern, pattern.rank * pattern.chunk + index);
    case Operation::all_gather:
      return moved(pattern, share, 0, within);
    case Operation::all_to_all:
      return moved(pattern, share, pattern.rank, within);
    case Operation::broadcast:
      return moved(pattern, 0, 0, index);
    case Operation::scatter:
      return moved(pattern, 0, pattern.rank, index);
    case Operation::send_recv:
      return moved(pattern, (pattern.rank + pattern.ranks - 1) % pattern.ranks, 0, index);
  }
  return 0;
}

/// The element that is `word`, which sent() or received() gave, as its bits, in the lower end: they are compared, since
/// a zero whose sign was turned equals a zero. No compiler's half is needed: the numbers are whole and exact (see
/// exact_limit), so that those of 16 bits are a float's leading ones.
constexpr std::uint64_t bits_of(Element element, const Pattern& pattern, std::uint64_t word) {
  if (!reduces(pattern.operation))
    return element == Element::fp64 ? word : word & (~std::uint64_t{0} >> (64 - 8 * size_of(element)));
  if (element == Element::fp64) return __builtin_bit_cast(std::uint64_t, static_cast<double>(word));
  const auto bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(word));
  if (element == Element::fp32) return bits;
  if (element == Element::bf16) return bits >> 16;
  constexpr std::uint32_t kBias = (127 - 15) << 10;  // of the exponents of float and half
  return word == 0 ? 0 : (bits >> 13) - kBias;
}
static_assert(bits_of(Element::fp32, {.operation = Operation::all_reduce}, 1) == 0x3f800000);
static_assert(bits_of(Element::fp64, {.operation = Operation::all_reduce}, 3) == 0x4008000000000000);
static_assert(bits_of(Element::fp16, {.operation = Operation::all_reduce}, 0) == 0 &&
              bits_of(Element::fp16, {.operation = Operation::all_reduce}, 1) == 0x3c00 &&
              bits_of(Element::fp16, {.operation = Operation::all_reduce}, 2047) == 0x67ff &&
              bits_of(Element::fp16, {.operation = Operation::all_reduce}, 2048) == 0x6800);
static_assert(bits_of(Element::bf16, {.operation = Operation::all_reduce}, 1) == 0x3f80 &&
              bits_of(Element::bf16, {.operation = Operation::all_reduce}, 255) == 0x437f &&
              bits_of(Element::bf16, {.operation = Operation::all_reduce}, 256) == 0x4380);
static_assert(bits_of(Element::bf16, {.operation = Operation::all_gather}, 0x123456789) == 0x6789);

}  // namespace assay::collective
