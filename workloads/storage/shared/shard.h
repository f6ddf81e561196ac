// shard: one rank's part of a checkpoint on disk: payload, then one block with its identity and checksum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "probes/core/error.h"
#include "workloads/storage/shared/direct_file.h"
#include "workloads/storage/shared/payload.h"

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

/// The block behind the payload. A shard without a whole one is torn and no part of any checkpoint.
struct ShardFooter {
  PayloadKey key;
  std::uint64_t size = 0;      ///< payload bytes before the footer
  std::uint64_t checksum = 0;  ///< XXH64 of the payload
};

/// The footer as the kDirectBlock bytes that are written; the last 8 are the XXH64 of those before.
void write_footer(const ShardFooter& footer, std::span<std::byte, kDirectBlock> block);

/// The footer in `block`, when it is one that write_footer made. Errors name `where`.
std::expected<ShardFooter, InputError> read_footer(std::span<const std::byte, kDirectBlock> block,
                                                   const std::string& where);

/// "shard-0003": the name of a committed shard. While it is written it has ".tmp" behind it.
std::string shard_name(std::uint64_t rank);

/// Writes `payload` durably into `directory`: temporary name, payload and footer, fsync, rename. The name itself is
/// durable after sync_directory(directory). The checksum is taken of each chunk while that is in flight.
void save_shard(const std::string& directory, const PayloadKey& key, std::span<const std::byte> payload,
                const ChunkPlan& plan);

/// Reads rank key.rank's committed shard into `payload` and returns its footer. Errors (also when key or size differ
/// from the footer's): the shard is torn, foreign, or damaged in its footer; `payload` is then undefined. A kernel's
/// refusal throws as in direct_file.h.
std::expected<ShardFooter, InputError> load_shard(const std::string& directory, const PayloadKey& key,
                                                  std::span<std::byte> payload, const ChunkPlan& plan);

/// Payload bytes that differ from what `footer.key` makes, and 1 more when the checksum of `payload` is not the
/// footer's. 0 is whole.
std::uint64_t shard_mismatches(const ShardFooter& footer, std::span<const std::byte> payload);

}  // namespace assay::cluster_storage
