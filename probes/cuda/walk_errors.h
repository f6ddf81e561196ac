// walk_errors: errors of a walk by the fault that they look like.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "probes/cuda/walk_pattern.h"

namespace assay::cuda {

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
