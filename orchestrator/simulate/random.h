// random: numbers that look random and are the same for the same seed, with every compiler.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "probes/core/portable_math.h"

namespace assay::simulate {

/// SplitMix64 (Steele, Lea and Flood 2014).
class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  /// SeededRandom of their own for whatever `words` name under `seed` (FNV-1a over the words).
  SeededRandom(std::uint64_t seed, std::initializer_list<std::string_view> words)
      : state_(seed ^ 0xcbf29ce484222325ULL) {
    for (const auto word : words) {
      for (const char c : word) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
      state_ = (state_ ^ 0xffU) * 0x100000001b3ULL;  // no byte of a word, so that "ab","c" is not "a","bc"
    }
  }

  /// The next 64 bits.
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// A whole number from 0 to `end` - 1; `end` is at least 1.
  std::size_t below(std::size_t end) { return next() % end; }
  /// Even in 0 to 1, without 1.
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// Whether something of this probability happens.
  bool happens(double probability) { return share() < probability; }
  /// Standard normal (Marsaglia and Bray 1964, the polar method), the same bits on every processor.
  double normal() {
    constexpr int kTries = 200;  // each finds a point in the circle with probability 0.785
    for (int i = 0; i < kTries; ++i) {
      const double x = 2 * share() - 1;
      const double y = 2 * share() - 1;
      const double square = x * x + y * y;
      if (square > 0 && square < 1) return x * std::sqrt(-2 * portable_log(square) / square);
    }
    return 0;
  }

 private:
  std::uint64_t state_;
};

}  // namespace assay::simulate
