// walk_words: one word of a walk's content, one step over a slice, and an error: what the kernels need of a walk.
// Plain constexpr C++: the kernels and the host's tests run the same lines.
#pragma once

#include <bit>
#include <cstdint>

#include "probes/cuda/mixed.h"
#include "probes/cuda/payload_words.h"

namespace assay::cuda {

/// How a word follows from its index: payload_word; its byte offset; random bits; always the same; one bit that moves
/// on from word to word; the same in even words and its complement in odd ones.
enum class WalkKind : std::uint32_t { payload, address, random, constant, walking_bit, alternating };

/// The words of one slice while it holds one content.
struct WalkWords {
  WalkKind kind = WalkKind::payload;
  std::uint64_t base = 0;
  std::uint64_t seed = 0;  ///< of payload and random; of address the offset of the slice in B
};

/// Word `index` of a slice.
constexpr std::uint64_t walk_word(const WalkWords& words, std::uint64_t index) {
  switch (words.kind) {
    case WalkKind::payload:
      return payload_word(words.seed, index) ^ words.base;
    case WalkKind::address:
      return (words.seed + index * sizeof(std::uint64_t)) ^ words.base;
    case WalkKind::random:
      return mixed(words.seed, index) ^ words.base;
    case WalkKind::constant:
      return words.base;
    case WalkKind::walking_bit:
      return std::rotl(std::uint64_t{1}, static_cast<int>(index % 64)) ^ words.base;
    case WalkKind::alternating:
      return index % 2 == 0 ? words.base : ~words.base;
  }
  return 0;
}
static_assert(walk_word({WalkKind::address, ~std::uint64_t{0}, 4096}, 2) == ~std::uint64_t{4112});

/// One step over one slice: the content that is compared and the one that is written then.
struct WalkStep {
  WalkWords expected, next;
  bool checks = true, writes = true;
  bool downwards = false;
  std::uint64_t content = 0;  ///< number of the content that is compared
  std::uint64_t offset = 0;   ///< of the slice in the walk, in B
};

/// A word that did not have its content.
struct WalkError {
  std::uint64_t content = 0;   ///< number of the content
  std::uint64_t offset = 0;    ///< of the word in the walk, in B
  std::uint64_t expected = 0;  ///< the word that was written
  std::uint64_t found = 0;
  std::uint64_t again = 0;  ///< at a second read at once, which the second-level cache may answer

  [[nodiscard]] constexpr std::uint64_t flipped() const { return expected ^ found; }
};

/// Where wrong words are counted and noted. All is in the memory of the device.
struct WalkLog {
  std::uint64_t* wrong = nullptr;  ///< how many so far
  WalkError* errors = nullptr;     ///< the first of them
  std::uint64_t room = 0;          ///< for errors
};

}  // namespace assay::cuda
