// device_attention: causal attention by products of several heads at once, on any device that multiplies.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "workloads/train/engine/head_layout.h"
#include "workloads/train_gpu/device_shapes.h"

namespace assay::train_gpu {

/// Memory of one attention.
template <class Number>
struct AttentionPlaces {
  Number *qkv = nullptr, *keys = nullptr, *probabilities = nullptr, *attended = nullptr;
  Number *above = nullptr, *qkv_gradient = nullptr, *keys_gradient = nullptr, *scores_gradient = nullptr;
  float* statistics = nullptr;  ///< of fused attention, in the place of probabilities
  std::byte* room = nullptr;    ///< of fused attention
  std::size_t attended_count = 0, qkv_count = 0, keys_count = 0;
};

/// Attention of one rank. Heads that share keys are done one after the other, those that do not in one product.
template <class Device>
class DeviceAttention {
 public:
  using Number = typename Device::Number;
  using Places = AttentionPlaces<Number>;
  using Chunk = train::Chunk<Number>;

  /// `block` rows of queries are done together; the later ones see more keys.
  DeviceAttention(const train::HeadShape& shape, std::size_t block, Device& device)
      : s_(shape),
        block_(block),
        device_(device),
        row_(train::row_of_all(shape)),
        out_row_(shape.heads * shape.width) {}

  /// Numbers of `scores_gradient`.
  [[nodiscard]] static std::size_t scratch(const train::HeadShape& shape, std::size_t block) {
    return shape.kv_heads * block * shape.seq;
  }

  void forward(const Places& at) {
    for_blocks([&](std::size_t sequence, std::size_t sharer, const train::Piece& block) {
      const std::size_t token = sequence * s_.own() + block.row, seen = block.place + block.count;
      Number* const q = at.qkv + token * row_ + sharer * s_.width;
      Number* const scores = scores_of(at.probabilities, sequence, sharer, block.row);
      Number* const out = at.attended + token * out_row_ + sharer * s_.width;
      for_chunks(at.qkv, at.keys, sequence, seen, [&](std::size_t, const Chunk& in, std::size_t count) {
        device_.product(of({.m = whole(block.count),
                            .n = whole(count),
                            .k = whole(s_.width),
                            .lda = whole(row_),
                            .ldb = whole(in.stride),
                            .ldc = whole(s_.seq),
                            .b_turned = true},
                           between_queries(), s_.width, between_scores()),
                        q, in.k, scores + in.place);
      });
      device_.softmax({.rows = rows_of(block), .heads = s_.kv_heads, .stride = between_scores()}, scores, scale());
      for_chunks(at.qkv, at.keys, sequence, seen, [&](std::size_t index, const Chunk& in, std::size_t count) {
        device_.product(of({.m = whole(block.count),
                            .n = whole(s_.width),
                            .k = whole(count),
                            .lda = whole(s_.seq),
                            .ldb = whole(in.stride),
                            .ldc = whole(out_row_),
                            .kept = index == 0 ? 0.0F : 1.0F},
                           between_scores(), s_.width, between_queries()),
                        scores + in.place, in.v, out);
      });
    });
    if (s_.exact) device_.fold(at.attended, at.attended_count);
  }

  void backward(const Places& at) {
    device_.clear(at.qkv_gradient,
                  at.qkv_count);  // heads that share keys add up
    if (at.keys_count > 0) device_.clear(at.keys_gradient, at.keys_count);
    for_blocks([&](std::size_t sequence, std::size_t sharer, const train::Piece& block) {
      gradients_of_block(at, sequence, sharer, block);
    });
    if (!s_.exact) return;
    device_.fold(at.qkv_gradient, at.qkv_count);
    if (at.keys_count > 0) device_.fold(at.keys_gradient, at.keys_count);
  }

 private:
  static std::int64_t whole(std::size_t size) { return static_cast<std::int64_t>(size); }
  [[nodiscard]] std::size_t sharers() const { return s_.heads / s_.kv_heads; }
  [[nodiscard]] std::size_t between_queries() const { return sharers() * s_.width; }
  [[nodiscard]] std::size_t between_scores() const { return sharers() * s_.own() * s_.seq; }
  [[nodiscard]] float scale() const { return 1 / std::sqrt(static_cast<float>(s_.width)); }
  [[nodiscard]] ProductShape of(ProductShape shape, std::size_t a, std::size_t b, std::size_t c) const {
    shape.batch = whole(s_.kv_heads);
    shape.a_stride = whole(a);
    shape.b_stride = whole(b);
    shape.c_stride = whole(c);
    return shape;
  }
  [[nodiscard]] Number* scores_of(Number* all, std::size_t sequence, std::size_t head, std::size_t row) const {
    return all + ((sequence * s_.heads + head) * s_.own() + row) * s_.seq;
  }
  [[nodiscard]] train::ScoreRows rows_of(const train::Piece& block) const {
    return {.first = block.place,
            .rows = block.count,
            .columns = block.place + block.count,
            .stride = s_.seq,
            .exact = s_.exact};
  }

  template <class Work>
  void for_blocks(const Work& work) {
    const train::Pieces pieces = train::pieces_of(s_);
    for (std::size_t sequence = 0; sequence < s_.sequences; ++sequence) {
      for (std::size_t sharer = 0; sharer < sharers(); ++sharer) {
        for (std::size_t i = 0; i < pieces.count; ++i) {
          const train::Piece& piece = pieces.all[i];
          for (std::size_t first = 0; first < piece.count; first += block_)
            work(sequence, sharer,
                 train::Piece{.row = piece.row + first,
                              .place = piece.place + first,
                              .count = std::min(block_, piece.count - first)});
        }
      }
    }
  }
  /// Chunks of keys that queries up to `seen` see, and how many of each.
  template <class Work>
  void for_chunks(Number* qkv, Number* keys, std::size_t sequence, std::size_t seen, const Work& work) {
    for (std::size_t i = 0; i < train::chunks_of(s_); ++i) {
      const Chunk in = train::chunk_of(s_, qkv, keys, sequence, 0, i);
      if (in.place >= seen) return;
      work(i, in, std::min(in.count, seen - in.place));
    }
  }

  void gradients_of_block(const Places& at, std::size_t sequence, std::size_t sharer, const train::Piece& block) {
    const std::size_t token = sequence * s_.own() + block.row, seen = block.place + block.count, d = s_.width;
    const std::size_t between = block_ * s_.seq;  // scores of one head and the next
    const std::int64_t rows = whole(block.count), row = whole(row_), seq = whole(s_.seq), out = whole(out_row_);
    Number *const q = at.qkv + token * row_ + sharer * d, *const dq = at.qkv_gradient + token * row_ + sharer * d;
    Number* const kept = scores_of(at.probabilities, sequence, sharer, block.row);
    Number *const above = at.above + token * out_row_ + sharer * d, *const scores = at.scores_gradient;
    const auto gradient_of = [&](std::size_t index) {
      return train::chunk_of(s_, at.qkv_gradient, at.keys_gradient, sequence, 0, index);
    };
    for_chunks(at.qkv, at.keys, sequence, seen, [&](std::size_t index, const Chunk& in, std::size_t size) {
      const std::int64_t count = whole(size), width = whole(d), stride = whole(in.stride);
      device_.product(
          of({.m = count, .n = width, .k = rows, .lda = seq, .ldb = out, .ldc = stride, .a_turned = true, .kept = 1},
             between_scores(), between_queries(), d),
          kept + in.place, above, gradient_of(index).v);
      device_.product(of({.m = rows, .n = count, .k = width, .lda = out, .ldb = stride, .ldc = seq, .b_turned = true},
                         between_queries(), d, between),
                      above, in.v, scores + in.place);
    });
    device_.softmax_back({.rows = rows_of(block), .heads = s_.kv_heads, .stride = between_scores()}, kept, scores,
                         between, scale());
    for_chunks(at.qkv, at.keys, sequence, seen, [&](std::size_t index, const Chunk& in, std::size_t size) {
      const std::int64_t count = whole(size), width = whole(d), stride = whole(in.stride);
      device_.product(of({.m = rows,
                          .n = width,
                          .k = count,
                          .lda = seq,
                          .ldb = stride,
                          .ldc = row,
                          .kept = index == 0 ? 0.0F : 1.0F},
                         between, d, between_queries()),
                      scores + in.place, in.k, dq);
      device_.product(
          of({.m = count, .n = width, .k = rows, .lda = seq, .ldb = row, .ldc = stride, .a_turned = true, .kept = 1},
             between, between_queries(), d),
          scores + in.place, q, gradient_of(index).k);
    });
  }

  train::HeadShape s_;
  std::size_t block_;
  Device& device_;
  std::size_t row_, out_row_;
};

}  // namespace assay::train_gpu
