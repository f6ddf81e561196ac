// checksum: XXH64, so that a shard shows whether it is whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::cluster_storage {

/// XXH64 with seed 0 (Collet, xxHash specification 0.1.1) of the bytes given to add() in their order.
class Checksum {
 public:
  /// Takes more bytes in. Every call but the last must give a multiple of 32 bytes.
  void add(std::span<const std::byte> bytes);
  /// The hash of all bytes so far.
  [[nodiscard]] std::uint64_t value() const;

 private:
  static constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87, kPrime2 = 0xc2b2ae3d27d4eb4f;
  std::array<std::uint64_t, 4> lanes_ = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
  std::array<std::byte, 32> tail_ = {};
  std::size_t tail_size_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace assay::cluster_storage
