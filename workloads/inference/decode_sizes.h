// decode_sizes: one model, batch and context as kernels on a GPU take them, and where their numbers are. Plain
// constexpr arithmetic of 64 bits, which hosts test.
#pragma once

#include <cstdint>

#include "workloads/inference/decode_numbers.h"

namespace assay::inference {

/// Tokens of one page of the cache on a GPU; contexts are whole pages.
inline constexpr std::int64_t kPageTokens = 16;
/// Tokens of the cache that one block of attention takes: a page for each of its eight warps.
inline constexpr std::int64_t kChunkTokens = 8 * kPageTokens;
/// Numbers of one load of a thread: rows of matrices and heads are whole loads.
inline constexpr std::int64_t kVector = 8;
/// Columns of matrices that a warp takes at a time: rows are whole ones.
inline constexpr std::int64_t kWarpColumns = 32;
/// Sequences of one batch at most, and numbers of a head.
inline constexpr std::int64_t kMostDeviceBatch = 64, kMostHeadDim = 256;

/// The matrices of a model.
enum class Matrix { qkv, out, gate_up, down, head };

/// Sizes of one step.
struct DecodeSizes {
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
  std::int64_t batch = 1, context = 1;  ///< sequences, and tokens of each, the one being made included
  DecodeNumbers numbers = DecodeNumbers::gaussian;

  [[nodiscard]] constexpr std::int64_t q() const { return heads * head_dim; }
  [[nodiscard]] constexpr std::int64_t kv() const { return kv_heads * head_dim; }
  [[nodiscard]] constexpr std::int64_t qkv() const { return q() + 2 * kv(); }
  /// Query heads of one head of keys and values.
  [[nodiscard]] constexpr std::int64_t group() const { return heads / kv_heads; }
  [[nodiscard]] constexpr std::int64_t chunks() const { return (context + kChunkTokens - 1) / kChunkTokens; }
  /// Pages of one sequence, and of all.
  [[nodiscard]] constexpr std::int64_t sequence_pages() const { return context / kPageTokens; }
  [[nodiscard]] constexpr std::int64_t pages() const { return batch * sequence_pages(); }
  /// Tasks of attention times the query heads of each.
  [[nodiscard]] constexpr std::int64_t parts() const { return batch * heads * chunks(); }
  [[nodiscard]] constexpr bool ring() const { return numbers == DecodeNumbers::ring; }

  [[nodiscard]] constexpr std::int64_t layer_weights() const {
    return qkv() * hidden + hidden * q() + 3 * ffn * hidden;
  }
  [[nodiscard]] constexpr std::int64_t weights() const { return layers * layer_weights() + vocab * hidden; }
  [[nodiscard]] constexpr std::int64_t cache() const { return layers * batch * context * 2 * kv(); }
};

/// Where a matrix begins among the weights, in numbers; a row for each output.
struct MatrixPlace {
  std::int64_t begin = 0, rows = 0, columns = 0;
};

/// In the order of layer_weights() of decode_model: qkv, out, gate_up, down of each layer, then the head.
constexpr MatrixPlace matrix_place(const DecodeSizes& s, Matrix matrix, std::int64_t layer) {
  const std::int64_t first = layer * s.layer_weights(), out = first + s.qkv() * s.hidden,
                     gate_up = out + s.hidden * s.q();
  switch (matrix) {
    case Matrix::qkv:
      return {.begin = first, .rows = s.qkv(), .columns = s.hidden};
    case Matrix::out:
      return {.begin = out, .rows = s.hidden, .columns = s.q()};
    case Matrix::gate_up:
      return {.begin = gate_up, .rows = 2 * s.ffn, .columns = s.hidden};
    case Matrix::down:
      return {.begin = gate_up + 2 * s.ffn * s.hidden, .rows = s.hidden, .columns = s.ffn};
    case Matrix::head:
      break;
  }
  return {.begin = s.layers * s.layer_weights(), .rows = s.vocab, .columns = s.hidden};
}

/// A key or value of the cache.
struct CachePlace {
  std::int64_t layer = 0, sequence = 0, kv_head = 0;
  bool values = false;
  std::int64_t token = 0;
};

/// Its number among all, without pages: as cache_of() of decode_model has them, and as they are drawn.
constexpr std::int64_t drawn_place(const DecodeSizes& s, const CachePlace& at) {
  const std::int64_t part = ((at.layer * s.batch + at.sequence) * s.kv_heads + at.kv_head) * 2 + (at.values ? 1 : 0);
  return (part * s.context + at.token) * s.head_dim;
}
/// The place that has this number; the rest is that of a token's head.
constexpr CachePlace place_drawn(const DecodeSizes& s, std::int64_t number) {
  const std::int64_t token = number / s.head_dim, part = token / s.context, head = part / 2,
                     sequence = head / s.kv_heads;
  return {.layer = sequence / s.batch,
          .sequence = sequence % s.batch,
          .kv_head = head % s.kv_heads,
          .values = part % 2 == 1,
          .token = token % s.context};
}
/// Its place in memory: page `page` of its layer, each of which holds keys, then values, head by head.
constexpr std::int64_t paged_place(const DecodeSizes& s, const CachePlace& at, std::int64_t page) {
  const std::int64_t part = ((at.layer * s.pages() + page) * s.kv_heads + at.kv_head) * 2 + (at.values ? 1 : 0);
  return (part * kPageTokens + at.token % kPageTokens) * s.head_dim;
}
/// The entry of the page table for it.
constexpr std::int64_t table_entry(const DecodeSizes& s, const CachePlace& at) {
  return at.sequence * s.sequence_pages() + at.token / kPageTokens;
}
/// The place of a task's result for the first query head of its group; the others follow, and then the next chunk.
constexpr std::int64_t part_place(const DecodeSizes& s, std::int64_t sequence, std::int64_t kv_head,
                                  std::int64_t chunk) {
  return ((sequence * s.kv_heads + kv_head) * s.chunks() + chunk) * s.group();
}

/// The residue of a whole number modulo 7 from -3 to 3.
constexpr int residue(std::int64_t value) { return static_cast<int>(((value + 3) % 7 + 7) % 7) - 3; }

/// Tiles of 8 sequences that a product on a GPU has for a batch: 1, 2, 4 or 8.
constexpr std::int64_t sequence_tiles(std::int64_t batch) {
  std::int64_t tiles = 1;
  while (tiles * 8 < batch) tiles *= 2;
  return tiles;
}
static_assert(sequence_tiles(1) == 1 && sequence_tiles(8) == 1 && sequence_tiles(9) == 2 && sequence_tiles(64) == 8);

/// One step: the operations in their order, each asked of `device`: norm(), product(matrix, layer), attend(layer),
/// join(), activate(). The products `out` and `down` are added to the input of the next norm.
template <class Device>
void take_step(const DecodeSizes& s, Device& device) {
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    device.norm();
    device.product(Matrix::qkv, layer);
    device.attend(layer);
    device.join();
    device.product(Matrix::out, layer);
    device.norm();
    device.product(Matrix::gate_up, layer);
    device.activate();
    device.product(Matrix::down, layer);
  }
  device.norm();
  device.product(Matrix::head, 0);
}

}  // namespace assay::inference
