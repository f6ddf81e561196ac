// walk_errors: the pattern of a walk, and its errors by the fault that they look like.
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
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "probes/cuda/mixed.h"
#include "probes/cuda/walk_words.h"

namespace assay::cuda {

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

/// How many words of each class. Every word is in one of the first four.
struct WalkClasses {
  std::uint64_t single_bit = 0;    ///< one bit wrong
  std::uint64_t burst = 0;         ///< several bits wrong, all within 8 neighbours
  std::uint64_t warp_aligned = 0;  ///< the same bits wrong in 4 words or more of one content, which one warp reads at
                                   ///< once (512 B) or one lane of several warps does
  std::uint64_t other = 0;         ///< other sets of bits
  std::uint64_t stuck = 0;         ///< places that gave the same wrong bit in several contents
  std::uint64_t transient = 0;     ///< right at the second read

  friend bool operator==(const WalkClasses&, const WalkClasses&) = default;
};

/// The classes of `errors`, which may be in any order (arXiv 2605.04213 and doi:10.1145/3466752.3480111 have shapes of
/// errors in GPUs and their memories).
WalkClasses classes_of(std::span<const WalkError> errors);

/// "3 single_bit, 0 burst, ..." of `classes`; `all` errors were found, of which `listed` are in the classes.
std::string words_of(const WalkClasses& classes, std::uint64_t listed, std::uint64_t all);

/// Pattern, offset, the word that was read, the one that was written, bits, and the second read.
std::string words_of(const WalkError& error);

/// The first of `errors` in words, as many as a reader looks at.
std::string places_of(std::span<const WalkError> errors);

}  // namespace assay::cuda
