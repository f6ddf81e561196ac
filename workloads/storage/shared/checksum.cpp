// checksum: XXH64 after its specification; little-endian machines only, which all of ours are.
#include "workloads/storage/shared/checksum.h"

#include <bit>
#include <cstring>
#include <stdexcept>

namespace assay::cluster_storage {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87, kPrime2 = 0xc2b2ae3d27d4eb4f, kPrime3 = 0x165667b19e3779f9,
                        kPrime4 = 0x85ebca77c2b2ae63, kPrime5 = 0x27d4eb2f165667c5;
constexpr std::size_t kStripe = 32;

template <typename Word>
Word load(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

constexpr std::uint64_t round_of(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

constexpr std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round_of(0, lane)) * kPrime1 + kPrime4;
}

std::uint64_t finish(std::uint64_t hash, std::span<const std::byte> tail) {
  while (tail.size() >= 8) {
    hash = std::rotl(hash ^ round_of(0, load<std::uint64_t>(tail.data())), 27) * kPrime1 + kPrime4;
    tail = tail.subspan(8);
  }
  if (tail.size() >= 4) {
    hash = std::rotl(hash ^ load<std::uint32_t>(tail.data()) * kPrime1, 23) * kPrime2 + kPrime3;
    tail = tail.subspan(4);
  }
  for (const std::byte byte : tail)
    hash = std::rotl(hash ^ std::to_integer<std::uint64_t>(byte) * kPrime5, 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace

void Checksum::add(std::span<const std::byte> bytes) {
  if (tail_size_ != 0) throw std::logic_error("checksum: only the last part may end within a stripe of 32 bytes");
  total_ += bytes.size();
  auto lanes = lanes_;  // a local copy stays in registers
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      lanes[lane] = round_of(lanes[lane], load<std::uint64_t>(bytes.data() + lane * 8));
    }
  }
  lanes_ = lanes;
  tail_size_ = bytes.size();
  std::memcpy(tail_.data(), bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const {
  std::uint64_t hash = kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = merge(hash, lane);
  }
  return finish(hash + total_, std::span(tail_).first(tail_size_));
}

}  // namespace assay::cluster_storage
