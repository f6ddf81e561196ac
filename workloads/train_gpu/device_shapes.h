// device_shapes: sizes of the operations of a device. Plain C++20, which nvcc reads, too.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "workloads/train/engine/step_math.h"

namespace assay::train_gpu {

/// A token's logits and the token that follows.
struct LossShape {
  std::size_t rows = 0,
              columns = 0;  ///< tokens, and this rank's part of the vocabulary
  std::int64_t first = 0;   ///< of that part
  float share = 0;          ///< of one token in the loss of the step
  bool exact = false;
};

/// Factors of a product that are FP8: of the forward pass, of the gradient of an input, or of a weight. Gradients of
/// outputs are E5M2, everything else E4M3.
enum class Fp8 : std::uint8_t { none, forward, input, weight };

/// The shape of one product, or of `batch` alike: c = a b + kept c, row by row, transposed as stated. Strides
/// are from one of the batch to the next, in numbers.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  bool a_turned = false, b_turned = false;
  float kept = 0;
  std::int64_t batch = 1, a_stride = 0, b_stride = 0, c_stride = 0;
  bool narrow = false;  ///< c is kept as BF16
  Fp8 fp8 = Fp8::none;
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

/// One factor of a product, or as many as it has: rows of `columns` numbers, `leading` numbers from one to the next.
struct FactorShape {
  std::int64_t rows = 0, columns = 0, leading = 0, batch = 1, stride = 0;
  friend auto operator<=>(const FactorShape&, const FactorShape&) = default;
  /// Numbers from the first to the end of the last.
  [[nodiscard]] std::int64_t extent() const { return (batch - 1) * stride + rows * leading; }
};
FactorShape a_of(const ProductShape& shape);
FactorShape b_of(const ProductShape& shape);

/// As a matrix of its own, one of the batch after the other. Rows begin at whole groups of eight numbers: 16 B of BF16.
FactorShape packed(const FactorShape& kept);
/// The product of both factors when they are packed.
ProductShape packed(const ProductShape& kept);

/// Rows of scores of several heads.
struct ScoreBatch {
  train::ScoreRows rows;
  std::size_t heads = 1;
  std::size_t stride = 0;  ///< from one head to the next
};

/// Rows of one head of one token: `heads` of `width` numbers side by side in each of `tokens` rows of `stride`.
struct HeadRows {
  std::size_t tokens = 0, heads = 0, width = 0, stride = 0;
  std::size_t more_stride = 0;  ///< of the rows whose RMS is added
  float tolerance = 0;          ///< of a number, in RMS of its row
};
/// How far two results of attention are from each other.
struct AttentionDifference {
  std::uint64_t count = 0;  ///< numbers that are further than the tolerance, or not finite
  double largest = 0;       ///< of all finite, over the tolerance
};

/// Rows that are chosen, or `each` of them added up to one row.
struct RowChoice {
  std::size_t rows = 0, width = 0, each = 1;
  bool onto = false;  ///< added to the present sum
};

/// The inputs of the gates' gradients: the experts' results and the gates of all copies, the gradient of each
/// token, and where the gradients of the router's numbers go.
template <class Number>
struct GatePlaces {
  const Number *returned = nullptr, *above = nullptr;
  const float* gates = nullptr;
  Number* logits = nullptr;
};

/// Sums over weights or gradients: RankPrint, and how many numbers are not finite.
struct WeightPrint {
  std::uint64_t shared = 0, experts = 0, not_finite = 0;
};

}  // namespace assay::train_gpu
