// gaussian: random numbers that are the same on every machine, for operands, samples and cycles.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

namespace assay::host {

/// SplitMix64 (Steele, Lea & Flood 2014): one 64-bit state, any seed is good.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}
  /// 64 uniform bits.
  constexpr std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, bound) by the high half of a product (Lemire 2019); the bias is under bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits()) * bound) >> 64);
  }
  /// Uniform in (0, 1).
  constexpr double unit() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }

 private:
  std::uint64_t state_;
};
static_assert(Random(1234567).bits() == 6457827717110365317ULL);  // the published test vector

/// Fills `target` with standard normal numbers (Box & Muller 1958) of the stream `seed`.
template <class Real>
void fill_gaussian(std::span<Real> target, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = 0; i < target.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log(random.unit()));
    const double angle = 2 * std::numbers::pi * random.unit();
    target[i] = static_cast<Real>(radius * std::cos(angle));
    if (i + 1 < target.size()) target[i + 1] = static_cast<Real>(radius * std::sin(angle));
  }
}

}  // namespace assay::host
