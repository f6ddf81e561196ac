// host_attention: attention as products of OpenBLAS with a softmax between them, in blocks of rows.
#include <algorithm>
#include <cmath>

#include <cblas.h>

#include "workloads/train/engine/head_layout.h"
#include "workloads/train/engine/host_memory.h"
#include "workloads/train/engine/step_math.h"

namespace assay::train {
namespace {

/// A block of queries of one head.
struct Block {
  std::size_t sequence, head, row, place, rows;
  [[nodiscard]] std::size_t seen() const { return place + rows; }
};
/// Calls `work` with every block of every head.
template <class Work>
void for_blocks(const HeadShape& shape, const Work& work) {
  const Pieces pieces = pieces_of(shape);
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      for (std::size_t i = 0; i < pieces.count; ++i) {
        const Piece& piece = pieces.all[i];
        for (std::size_t first = 0; first < piece.count; first += kQueryBlock)
          work(Block{.sequence = sequence,
                     .head = head,
                     .row = piece.row + first,
                     .place = piece.place + first,
                     .rows = std::min(kQueryBlock, piece.count - first)});
      }
    }
  }
}

int number(std::size_t size) { return static_cast<int>(size); }

/// c (m x n) = a b + kept c; whole rows of memory have lda, ldb, ldc numbers.
void product(bool a_turned, bool b_turned, std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t lda,
             const float* b, std::size_t ldb, float kept, float* c, std::size_t ldc) {
  multiply({.a = a,
            .b = b,
            .c = c,
            .m = number(m),
            .n = number(n),
            .k = number(k),
            .lda = number(lda),
            .ldb = number(ldb),
            .ldc = number(ldc),
            .a_turned = a_turned,
            .b_turned = b_turned,
            .kept = kept});
}

void fold_rows(float* begin, std::size_t rows, std::size_t width, std::size_t stride) {
  for (std::size_t row = 0; row < rows; ++row) fold({begin + row * stride, width});
}

}  // namespace

void multiply(const Call& call) {
  cblas_sgemm(CblasRowMajor, call.a_turned ? CblasTrans : CblasNoTrans, call.b_turned ? CblasTrans : CblasNoTrans,
              call.m, call.n, call.k, 1, call.a, call.lda, call.b, call.ldb, call.kept,
              call.c != nullptr ? call.c : call.gradient, call.ldc);
}

void attend(const HeadShape& shape, LayerMemory& memory, std::span<const float> keys) {
  const std::size_t d = shape.width, seq = shape.seq, n = row_of_all(shape), out_stride = shape.heads * d;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  const float* const qkv = memory.qkv.data();
  for_blocks(shape, [&](const Block& at) {
    const std::size_t token = at.sequence * shape.own() + at.row;
    const float* const q = qkv + token * n + at.head * d;
    float* const scores =
        memory.probabilities.data() + ((at.sequence * shape.heads + at.head) * shape.own() + at.row) * seq;
    float* const out = memory.attended.data() + token * out_stride + at.head * d;
    for (std::size_t i = 0; i < chunks_of(shape); ++i) {
      const auto in = chunk_of(shape, qkv, keys.data(), at.sequence, at.head, i);
      if (in.place >= at.seen()) break;
      product(false, true, at.rows, std::min(in.count, at.seen() - in.place), d, q, n, in.k, in.stride, 0,
              scores + in.place, seq);
    }
    softmax({.first = at.place, .rows = at.rows, .columns = at.seen(), .stride = seq, .exact = shape.exact}, scores,
            scale);
    for (std::size_t i = 0; i < chunks_of(shape); ++i) {
      const auto in = chunk_of(shape, qkv, keys.data(), at.sequence, at.head, i);
      if (in.place >= at.seen()) break;
      product(false, false, at.rows, d, std::min(in.count, at.seen() - in.place), scores + in.place, seq, in.v,
              in.stride, i == 0 ? 0.0F : 1.0F, out, out_stride);
    }
  });
  if (shape.exact) fold(memory.attended);
}

void attend_back(const HeadShape& shape, LayerMemory& memory, std::span<const float> keys, const HeadGradients& to) {
  const std::size_t d = shape.width, seq = shape.seq, n = row_of_all(shape), above_stride = shape.heads * d;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  const float* const qkv = memory.qkv.data();
  std::ranges::fill(to.qkv, 0.0F);  // heads that share keys add up
  std::ranges::fill(to.keys, 0.0F);
  for_blocks(shape, [&](const Block& at) {
    const std::size_t token = at.sequence * shape.own() + at.row;
    const float* const q = qkv + token * n + at.head * d;
    float* const q_gradient = to.qkv.data() + token * n + at.head * d;
    const float* const kept =
        memory.probabilities.data() + ((at.sequence * shape.heads + at.head) * shape.own() + at.row) * seq;
    const float* const above = to.above.data() + token * above_stride + at.head * d;
    const auto each_chunk = [&](const auto& work) {
      for (std::size_t i = 0; i < chunks_of(shape); ++i) {
        const auto in = chunk_of(shape, qkv, keys.data(), at.sequence, at.head, i);
        if (in.place >= at.seen()) break;
        work(i, std::min(in.count, at.seen() - in.place), in,
             chunk_of(shape, to.qkv.data(), to.keys.data(), at.sequence, at.head, i));
      }
    };
    each_chunk([&](std::size_t, std::size_t seen, const auto& in, const auto& gradient) {
      product(true, false, seen, d, at.rows, kept + in.place, seq, above, above_stride, 1, gradient.v, gradient.stride);
      product(false, true, at.rows, seen, d, above, above_stride, in.v, in.stride, 0, to.scores.data() + in.place, seq);
    });
    softmax_back({.first = at.place, .rows = at.rows, .columns = at.seen(), .stride = seq, .exact = shape.exact}, kept,
                 to.scores.data(), scale);
    each_chunk([&](std::size_t i, std::size_t seen, const auto& in, const auto& gradient) {
      const float* const scores = to.scores.data() + in.place;
      product(false, false, at.rows, d, seen, scores, seq, in.k, in.stride, i == 0 ? 0.0F : 1.0F, q_gradient, n);
      product(true, false, seen, d, at.rows, scores, seq, q, n, 1, gradient.k, gradient.stride);
      if (!shape.exact) return;
      fold_rows(gradient.k, seen, d, gradient.stride);
      fold_rows(gradient.v, seen, d, gradient.stride);
    });
  });
  if (shape.exact) fold(to.qkv);
}

void lend_keys(const HeadShape& shape, std::span<const float> qkv, std::span<float> keys) {
  const std::size_t n = row_of_all(shape), width = 2 * shape.kv_heads * shape.width,
                    tokens = shape.sequences * shape.own();
  const float* from = qkv.data() + shape.heads * shape.width;
  float* to = keys.data() + shape.cp_rank * tokens * width;
  for (std::size_t i = 0; i < tokens; ++i, from += n, to += width) std::copy_n(from, width, to);
}

void take_keys(const HeadShape& shape, std::span<const float> keys, std::span<float> qkv) {
  const std::size_t n = row_of_all(shape), width = 2 * shape.kv_heads * shape.width,
                    tokens = shape.sequences * shape.own();
  const float* from = keys.data() + shape.cp_rank * tokens * width;
  float* to = qkv.data() + shape.heads * shape.width;
  for (std::size_t i = 0; i < tokens; ++i, from += width, to += n) {
    std::copy_n(from, width, to);
    if (shape.exact) fold({to, width});
  }
}

}  // namespace assay::train
