// chase_words: a cycle of byte offsets that one GPU thread follows through memory, each load needing the one before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::cuda {

/// Bytes between two places of the cycle: the line of NVIDIA's L2, so that no load brings the next along.
inline constexpr std::uint64_t kChaseLine = 128;

/// Memory that holds one random cycle through `places` lines (Sattolo 1986; the same seed gives the same cycle): the
/// first word of each line is the byte offset of the next line, all others are 0.
std::vector<std::uint64_t> chase_words(std::size_t places, std::uint64_t seed);

/// The byte offset at which `steps` steps from byte offset `from` end. Throws std::out_of_range when a word leads out
/// of `words`.
std::uint64_t chase_end(std::span<const std::uint64_t> words, std::uint64_t from, std::uint64_t steps);

}  // namespace assay::cuda
