// faults: classes of published faults, put into words between what was written and what checks them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "probes/cuda/fault_classes.h"
#include "probes/cuda/fold.h"
#include "probes/cuda/walk_errors.h"

namespace assay::cuda {

using Random = std::mt19937_64;

inline std::uint64_t below(Random& random, std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
}

/// What the sums of a timed read over `words` are.
inline Folded folded(std::span<const std::uint64_t> words) {
  Folded all;
  const std::uint64_t vectors = words.size() / 2, threads = (vectors + kSumPiece - 1) / kSumPiece;
  const std::uint64_t whole_blocks = (threads + kSumThreads - 1) / kSumThreads * kSumThreads;
  for (std::uint64_t thread = 0; thread < whole_blocks; ++thread)
    all.add(folded_by(thread, vectors, [&](std::uint64_t i) { return words[i]; }));
  return all;
}

/// A slice of `words` words that is walked through on the host, with the walk's own arithmetic; `read(index, stored)`
/// is what a read of a word gives, `write(memory, index, word)` what a write leaves in all of them.
struct FaultyMemory {
  std::vector<std::uint64_t> words;
  std::function<std::uint64_t(std::uint64_t, std::uint64_t)> read = [](std::uint64_t, std::uint64_t stored) {
    return stored;
  };
  std::function<void(std::vector<std::uint64_t>&, std::uint64_t, std::uint64_t)> write =
      [](std::vector<std::uint64_t>& memory, std::uint64_t index, std::uint64_t word) { memory[index] = word; };

  /// Errors of one step.
  std::vector<WalkError> step(const WalkStep& now) {
    std::vector<WalkError> errors;
    for (std::uint64_t i = 0; i < words.size(); ++i) {
      const std::uint64_t at = now.downwards ? words.size() - 1 - i : i, right = walk_word(now.expected, at);
      const std::uint64_t found = read(at, words[at]);
      if (now.checks && found != right)
        errors.push_back({now.content, now.offset + at * sizeof(found), right, found, read(at, words[at])});
      if (now.writes) write(words, at, walk_word(now.next, at));
    }
    return errors;
  }

  /// Errors of a walk of `passes` passes.
  std::vector<WalkError> walk(std::uint64_t passes) {
    const std::uint64_t bytes = words.size() * sizeof(std::uint64_t), end = walk_contents(passes);
    for (std::uint64_t i = 0; i < words.size(); ++i) write(words, i, walk_word(walk_words(0, 0, bytes), i));
    std::vector<WalkError> errors;
    for (std::uint64_t number = 1; number <= end; ++number)
      std::ranges::copy(step(walk_step(number, end, 0, bytes)), std::back_inserter(errors));
    return errors;
  }
};

}  // namespace assay::cuda
