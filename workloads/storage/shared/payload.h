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

/// A random nonce from the kernel.
std::uint64_t fresh_payload_nonce();

/// Fills `out` with the bytes that the stream of `key` has from `offset` on. `offset` and out.size() are multiples
/// of 8. Word i of the stream is splitmix64's output i (Steele, Lea & Flood 2014) from a state mixed out of the key, so
/// any part can be made without the preceding ones.
void fill_payload(const PayloadKey& key, std::uint64_t offset, std::span<std::byte> out);

/// Bytes of `found` that differ from fill_payload's for `key` at `offset`; same preconditions.
std::uint64_t payload_mismatches(const PayloadKey& key, std::uint64_t offset, std::span<const std::byte> found);

}  // namespace assay::cluster_storage
