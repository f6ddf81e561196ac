// kv_blocks: a cache of keys and values in blocks, on its way from one node's memory into another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "probes/host/tcp_streams.h"
#include "workloads/inference/findings.h"
#include "workloads/inference/kv_shape.h"

namespace assay::inference {

/// Unit of sending: a page of one layer; a page of all layers; or no page, an even part of the whole for each stream.
enum class KvLayout { layer, page, contiguous };

/// The cache of one sequence.
struct KvShape {
  train::ModelShape model;
  std::int64_t tokens = 0, page = 16;  ///< page divides tokens
  std::int64_t element = 2;            ///< B of a number
  std::int64_t tp = 1;                 ///< of whose ranks this is one's
  [[nodiscard]] std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(tokens * kv_bytes_per_token(model, element, tp));
  }
};

/// Where one block is in the memory of the sender and of the receiver, in B. Sizes are multiples of 8.
struct KvBlock {
  std::size_t from = 0, to = 0, size = 0;
};

/// The blocks of a cache in the order in which they are sent: layer by layer, or page by page. Pages lie in another
/// order on each side, by page tables out of `seed`, as a serving engine has them; without pages in the same.
std::vector<KvBlock> kv_blocks(const KvShape& shape, KvLayout layout, std::size_t streams, std::uint64_t seed);
/// Name of block `number` of those: "layer 3 of page 17".
std::string block_name(const KvShape& shape, KvLayout layout, std::size_t number);

/// Whose bytes: those of one transfer of one run.
struct KvKey {
  std::uint64_t nonce = 0, transfer = 0;
};
/// Fills the sender's memory with the bytes of all `blocks`.
void fill_blocks(const std::vector<KvBlock>& blocks, const KvKey& key, std::span<std::byte> memory);

/// Sends the blocks of these numbers, one after the other on their streams in turn, as soon as the receiver asks on
/// each. Returns when all is handed to the kernel. `watch` is called while others work, and its exception ends the
/// transfer. Throws as send_all() does.
void send_blocks(const host::Streams& streams, const std::vector<KvBlock>& blocks,
                 const std::vector<std::size_t>& numbers, const KvKey& key, std::span<const std::byte> memory,
                 const std::function<void()>& watch);

/// Times of a receiver, by its own clock from its request.
struct KvTaken {
  double first_s = 0;               ///< until one block was there whole
  double all_s = 0;                 ///< until all streams had ended
  std::vector<std::uint32_t> seen;  ///< how often each block came
  std::uint64_t strange = 0;        ///< data without a block's head; its bytes are passed over
};
/// Asks for the blocks and takes them in; a repeated one is not kept.
KvTaken receive_blocks(const host::Streams& streams, const std::vector<KvBlock>& blocks, const KvKey& key,
                       std::span<std::byte> memory, const std::function<void()>& watch);

/// Blocks that were lost, doubled or strange, and those of which a byte differs. `title` names the transfer.
Findings check_blocks(const KvShape& shape, KvLayout layout, const std::vector<KvBlock>& blocks, const KvKey& key,
                      const KvTaken& taken, std::span<const std::byte> memory, const std::string& title);

}  // namespace assay::inference
