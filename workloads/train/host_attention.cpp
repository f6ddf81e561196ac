// host_attention: products of OpenBLAS and a softmax between them.
#include <algorithm>
#include <cmath>

#include <cblas.h>

#include "workloads/train/host_memory.h"
#include "workloads/train/step_math.h"

namespace assay::train {
namespace {

/// Queries, keys and values of one sequence, side by side in rows of `stride` numbers.
template <class Number>
struct Rows {
  Number *q, *k, *v;
  std::size_t stride;
};

template <class Number>
Rows<Number> rows_of(const HeadShape& shape, Number* qkv, std::size_t sequence, std::size_t head) {
  const std::size_t stride = (shape.heads + 2 * shape.kv_heads) * shape.width;
  Number* const begin = qkv + sequence * shape.seq * stride;
  const std::size_t shared = head / (shape.heads / shape.kv_heads);
  return {.q = begin + head * shape.width,
          .k = begin + (shape.heads + shared) * shape.width,
          .v = begin + (shape.heads + shape.kv_heads + shared) * shape.width,
          .stride = stride};
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
              call.m, call.n, call.k, 1, call.a, call.lda, call.b, call.ldb, call.kept, call.c, call.ldc);
}

void attend(const HeadShape& shape, LayerMemory& memory) {
  const std::size_t d = shape.width, seq = shape.seq, out_stride = shape.heads * d;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const auto in = rows_of<const float>(shape, memory.qkv.data(), sequence, head);
      float* const scores = memory.probabilities.data() + (sequence * shape.heads + head) * seq * seq;
      float* const out = memory.attended.data() + sequence * seq * out_stride + head * d;
      for (std::size_t first = 0; first < seq; first += kQueryBlock) {
        const std::size_t rows = std::min(kQueryBlock, seq - first), seen = first + rows;
        float* const block = scores + first * seq;
        product(false, true, rows, seen, d, in.q + first * in.stride, in.stride, in.k, in.stride, 0, block, seq);
        softmax({.first = first, .rows = rows, .columns = seen, .stride = seq, .exact = shape.exact}, block, scale);
        product(false, false, rows, d, seen, block, seq, in.v, in.stride, 0, out + first * out_stride, out_stride);
      }
    }
  }
  if (shape.exact) fold(memory.attended);
}

void attend_back(const HeadShape& shape, LayerMemory& memory, std::span<const float> above, std::span<float> gradient,
                 std::span<float> scores) {
  const std::size_t d = shape.width, seq = shape.seq, above_stride = shape.heads * d;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  std::ranges::fill(gradient, 0.0F);  // heads that share keys add up
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const auto in = rows_of<const float>(shape, memory.qkv.data(), sequence, head);
      const auto to = rows_of<float>(shape, gradient.data(), sequence, head);
      const float* const kept = memory.probabilities.data() + (sequence * shape.heads + head) * seq * seq;
      const float* const from = above.data() + sequence * seq * above_stride + head * d;
      for (std::size_t first = 0; first < seq; first += kQueryBlock) {
        const std::size_t rows = std::min(kQueryBlock, seq - first), seen = first + rows, n = to.stride;
        const float* const block = kept + first * seq;
        const float* const rows_above = from + first * above_stride;
        product(true, false, seen, d, rows, block, seq, rows_above, above_stride, 1, to.v, n);
        product(false, true, rows, seen, d, rows_above, above_stride, in.v, in.stride, 0, scores.data(), seq);
        softmax_back({.first = first, .rows = rows, .columns = seen, .stride = seq, .exact = shape.exact}, block,
                     scores.data(), scale);
        product(false, false, rows, d, seen, scores.data(), seq, in.k, in.stride, 0, to.q + first * n, n);
        product(true, false, seen, d, rows, scores.data(), seq, in.q + first * in.stride, in.stride, 1, to.k, n);
        if (!shape.exact) continue;
        fold_rows(to.k, seen, d, n);
        fold_rows(to.v, seen, d, n);
      }
    }
  }
  if (shape.exact) fold(gradient);
}

}  // namespace assay::train
