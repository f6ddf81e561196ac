// payload: the stored bytes, which follow from a key and do not compress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::cluster_storage {

/// Which payload: two keys that differ anywhere have streams that share nothing.
struct PayloadKey {
  std::uint64_t rank = 0;
  std::uint64_t step = 0;
  std::uint64_t nonce = 0;  ///< drawn anew by each run, so that no store can know the bytes of an earlier one
};

/// splitmix64's increment, the odd fraction of the golden ratio, and its output of a state (Steele, Lea & Flood 2014).
inline constexpr std::uint64_t kPayloadGamma = 0x9e3779b97f4a7c15;
constexpr std::uint64_t payload_mix(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}
static_assert(payload_mix(kPayloadGamma) == 0xe220a8397b1dcdaf);  // the first output of splitmix64 from seed 0

/// The state mixed out of a key, and word `index` of its stream: output `index` of splitmix64 from there.
constexpr std::uint64_t payload_seed(const PayloadKey& key) {
  return payload_mix(payload_mix(payload_mix(key.nonce + kPayloadGamma) + key.rank * kPayloadGamma) +
                     key.step * kPayloadGamma);
}
constexpr std::uint64_t payload_word(std::uint64_t seed, std::uint64_t index) {
  return payload_mix(seed + (index + 1) * kPayloadGamma);
}

/// A random nonce from the kernel.
std::uint64_t fresh_payload_nonce();

/// Fills `out` with the bytes that the stream of `key` has from `offset` on. `offset` and out.size() are multiples
/// of 8. Any part can be made without the preceding ones.
void fill_payload(const PayloadKey& key, std::uint64_t offset, std::span<std::byte> out);

/// Bytes of `found` that differ from fill_payload's for `key` at `offset`; same preconditions.
std::uint64_t payload_mismatches(const PayloadKey& key, std::uint64_t offset, std::span<const std::byte> found);

}  // namespace assay::cluster_storage
