// findings: errors, counted, and in sentences as far as there is room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::inference {

/// Of many findings the first few have sentences; all are counted.
struct Findings {
  static constexpr std::size_t kMostSentences = 20;
  std::uint64_t count = 0;
  std::vector<std::string> words;

  /// `times` findings of one sentence.
  void add(std::string sentence, std::uint64_t times = 1) {
    count += times;
    if (words.size() < kMostSentences) words.push_back(std::move(sentence));
  }
  void take(Findings other) {
    count += other.count;
    for (auto& sentence : other.words) {
      if (words.size() < kMostSentences) words.push_back(std::move(sentence));
    }
  }
};

}  // namespace assay::inference
