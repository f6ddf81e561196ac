// mixed: well mixed numbers by counter, the same on host and GPU.
#pragma once

#include <cstdint>

namespace assay::cuda {

/// SplitMix64 of one number (Steele, Lea & Flood 2014): 64 bits that look random, another for every `index`.
constexpr std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace assay::cuda
