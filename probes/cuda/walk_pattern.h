// walk_pattern: the words that a walk writes into a memory, in order, and the errors that it finds.
// Plain constexpr C++: the kernels and the host's tests run the same lines.
//
// A walk goes from content to content: it compares every word with the content before and writes the next one, so that
// a content is held as long as it takes to go round. The payload and its complement come first; then, in each pass, the
// patterns of memory testers as moving inversions (memtest86; NVIDIA DCGM, "Memtest Diagnostic"): the pattern, its
// complement written upwards, the pattern again written downwards.
//
// Checkerboards are on words. A sector of 32 B is one burst of HBM (64 lines, 4 beats: AMD PG313; 32 lines, 8 beats
// with HBM3), but no document says which byte is on which line and beat, nor the place of a cell in its row. If beats
// are neighbouring bytes, as is likely, alternating words turn every line with each beat of 8 B, stripes of 32 with
// each of 4 B.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "probes/cuda/mixed.h"
#include "probes/cuda/payload.h"

namespace assay::cuda {

/// How a word follows from its index: payload_word; its byte offset; random bits; always the same; one bit that moves
/// on from word to word; the same in even words and its complement in odd ones.
enum class WalkKind : std::uint32_t { payload, address, random, constant, walking_bit, alternating };

/// A pattern of a walk: its words, with the bits of `base` turned.
struct WalkPattern {
  std::string_view name;
  WalkKind kind;
  std::uint64_t base;
};

/// A walk begins with the first; of the stripes, one or another differs in any two bits of a word.
inline constexpr std::array kWalkPatterns = {
    WalkPattern{"payload", WalkKind::payload, 0},
    WalkPattern{"address", WalkKind::address, 0},
    WalkPattern{"random", WalkKind::random, 0},
    WalkPattern{"solid", WalkKind::constant, 0},
    WalkPattern{"stripes_1", WalkKind::constant, 0x5555555555555555},
    WalkPattern{"stripes_2", WalkKind::constant, 0x3333333333333333},
    WalkPattern{"stripes_4", WalkKind::constant, 0x0f0f0f0f0f0f0f0f},
    WalkPattern{"stripes_8", WalkKind::constant, 0x00ff00ff00ff00ff},
    WalkPattern{"stripes_16", WalkKind::constant, 0x0000ffff0000ffff},
    WalkPattern{"stripes_32", WalkKind::constant, 0x00000000ffffffff},
    WalkPattern{"walking_bit", WalkKind::walking_bit, 0},
    WalkPattern{"board_8_bytes", WalkKind::alternating, 0x5555555555555555},
    WalkPattern{"board_4_bytes", WalkKind::constant, 0xaaaaaaaa55555555},
};

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

/// One content of the walk: a pattern or its complement, in one pass.
struct WalkContent {
  std::size_t pattern = 0;  ///< of kWalkPatterns
  bool inverted = false;
  bool downwards = false;  ///< written from the end of a slice to its begin
  std::uint64_t pass = 0;
};

/// Contents of the payload, and of each other pattern in a pass.
inline constexpr std::uint64_t kPayloadContents = 2, kPatternContents = 3;

/// How many contents a walk of `passes` passes has.
constexpr std::uint64_t walk_contents(std::uint64_t passes) {
  return kPayloadContents + passes * kPatternContents * (kWalkPatterns.size() - 1);
}
static_assert(walk_contents(0) == 2 && walk_contents(1) == 38);

/// Content `number` of a walk.
constexpr WalkContent walk_content(std::uint64_t number) {
  if (number < kPayloadContents) return {.pattern = 0, .inverted = number == 1, .downwards = false, .pass = 0};
  const std::uint64_t place = number - kPayloadContents, patterns = kWalkPatterns.size() - 1;
  const std::uint64_t part = place % kPatternContents;
  return {.pattern = 1 + place / kPatternContents % patterns,
          .inverted = part == 1,
          .downwards = part == 2,
          .pass = place / kPatternContents / patterns};
}

/// The words that slice `slice` of `slice_bytes` B each holds as content `number`. Payloads of two slices share no
/// word, and a pass has other random words than any before it.
constexpr WalkWords walk_words(std::uint64_t number, std::uint64_t slice, std::uint64_t slice_bytes) {
  const WalkContent content = walk_content(number);
  const WalkPattern& pattern = kWalkPatterns[content.pattern];
  const std::uint64_t own = (slice + 1) << 48;
  return {.kind = pattern.kind,
          .base = content.inverted ? ~pattern.base : pattern.base,
          .seed = pattern.kind == WalkKind::address  ? slice * slice_bytes
                  : pattern.kind == WalkKind::random ? mixed(own, content.pass)
                                                     : own};
}

/// One step over one slice: the content that is compared and the one that is written then.
struct WalkStep {
  WalkWords expected, next;
  bool checks = true, writes = true;
  bool downwards = false;
  std::uint64_t content = 0;  ///< number of the content that is compared
  std::uint64_t offset = 0;   ///< of the slice in the walk, in B
};

/// The step that compares content `number` - 1 of slice `slice` and writes content `number`, unless that is `end`.
constexpr WalkStep walk_step(std::uint64_t number, std::uint64_t end, std::uint64_t slice, std::uint64_t slice_bytes) {
  return {.expected = walk_words(number - 1, slice, slice_bytes),
          .next = walk_words(number, slice, slice_bytes),
          .checks = true,
          .writes = number < end,
          .downwards = walk_content(number).downwards,
          .content = number - 1,
          .offset = slice * slice_bytes};
}

/// A word that did not have its content.
struct WalkError {
  std::uint64_t content = 0;   ///< number of the content
  std::uint64_t offset = 0;    ///< of the word in the walk, in B
  std::uint64_t expected = 0;  ///< the word that was written
  std::uint64_t found = 0;
  std::uint64_t again = 0;  ///< at a second read at once, which the second-level cache may answer

  [[nodiscard]] constexpr std::uint64_t flipped() const { return expected ^ found; }
};

}  // namespace assay::cuda
