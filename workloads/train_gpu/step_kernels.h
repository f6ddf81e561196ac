// step_kernels: the element-wise work of a training step on a GPU. Each is enqueued in `stream` and does on memory of
// the device the work of the function of this name in step_math.h; sums are added in one order, so that two runs give
// the same bits. Numbers are kept as float or train::Bf16 and calculated in fp32; gradients of weights, and sums over
// tokens, are fp32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probes/cuda/device.h"
#include "workloads/train_gpu/device_shapes.h"
#include "workloads/train_gpu/fp8_cast.h"

namespace assay::train_gpu::kernels {

/// What `from` has at `from_shape` goes to `to` at packed(from_shape), rounded to the nearest BF16; the rest of a group
/// of eight is 0. Rows that begin at whole 16 B are read faster.
void pack(const FactorShape& from_shape, const float* from, void* to, const cuda::Stream& stream);
void fold(float* values, std::size_t count, const cuda::Stream& stream);
/// All of `from`, scaled by the largest of its magnitudes, goes to `plain` and, transposed, to `turned` as FP8; *scale,
/// which is 0 before, is that of both.
template <class Number>
void cast(const CastShape& shape, const Number* from, std::uint8_t* plain, std::uint8_t* turned, CastScale* scale,
          const cuda::Stream& stream);
/// The tokens of a step: see TokenDraw.
void tokens(const train::TokenDraw& draw, std::int32_t* to, const cuda::Stream& stream);
/// Adds the block's print to sums[0], and how many of its numbers are not finite to sums[1].
template <class Kind>
void print(const train::WeightBlock& block, const Kind* from, std::uint64_t* sums, const cuda::Stream& stream);

/// Kernels of weights, which products read as Number.
template <class Number>
struct WeightKernels {
  /// First weights from their places, exact ones as those of a host; normal ones by the device's own logarithm. `copy`
  /// is null if products read `master`.
  static void draw(const train::WeightBlock& block, bool exact, float* master, Number* copy,
                   const cuda::Stream& stream);
  /// `copy` as that of draw().
  static void adam(std::size_t count, const train::AdamState& state, Number* copy, bool exact,
                   const cuda::Stream& stream);
  /// `tokens` are numbers of the vocabulary, of which this rank has the rows from `first` on.
  static void embed(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here,
                    const std::int32_t* tokens, const Number* table, Number* out, const cuda::Stream& stream);
  static void embed_back(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here,
                         const std::int32_t* tokens, const Number* above, float* gradients, const cuda::Stream& stream);
};

/// Kernels of activations.
template <class Number>
struct StepKernels {
  static void add(std::size_t count, const Number* a, const Number* b, Number* out, bool exact,
                  const cuda::Stream& stream);
  static void norm(const train::NormShape& shape, const Number* x, const Number* gain, Number* out, float* inverse,
                   const cuda::Stream& stream);
  /// `parts`: room for gain_groups(shape.rows) x shape.columns numbers.
  static void norm_back(const train::NormShape& shape, const Number* x, const Number* gain, const float* inverse,
                        const Number* above, Number* gradient, float* gain_gradient, float* parts,
                        const cuda::Stream& stream);
  static void activate(std::size_t rows, std::size_t width, const Number* both, Number* out, bool exact,
                       const cuda::Stream& stream);
  static void activate_back(std::size_t rows, std::size_t width, const Number* both, const Number* above,
                            Number* gradient, bool exact, const cuda::Stream& stream);
  static void softmax(const ScoreBatch& batch, Number* scores, float scale, const cuda::Stream& stream);
  static void softmax_back(const ScoreBatch& batch, const Number* kept, Number* above, std::size_t above_stride,
                           float scale, const cuda::Stream& stream);
  /// Adds how many numbers of `other` are further from `right` than the tolerance times the RMS of their row, and of
  /// the same row of `more` unless that is null, to sums[0]; the largest distance over that goes to sums[1], as the
  /// bits of an fp32 number. With tolerance 0 every other number counts.
  static void differences(const HeadRows& rows, const Number* right, const Number* other, const Number* more,
                          std::uint64_t* sums, const cuda::Stream& stream);
  static void row_sums(std::size_t rows, std::size_t columns, const Number* logits, float* sums, bool exact,
                       const cuda::Stream& stream);
  /// `targets` are numbers of the vocabulary, of which this rank has those from shape.first on.
  static void loss_back(const LossShape& shape, const float* sums, const std::int32_t* targets, Number* logits,
                        const cuda::Stream& stream);
};

/// Kernels of routed experts.
template <class Number>
struct ExpertKernels {
  /// to[i] = from[places[i]], row by row, times factors[i] unless they are null.
  static void gather_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const Number* from,
                          Number* to, const cuda::Stream& stream);
  /// to[i] is the sum of from[p], times factors[p] unless they are null, over the `each` places p of row i, in their
  /// order.
  static void sum_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const Number* from,
                       Number* to, const cuda::Stream& stream);
  /// Of each of `rows` tokens its `each` copies p get the softmax of logits[numbers[p]]; exact: these numbers
  /// themselves.
  static void gates(std::size_t rows, std::size_t each, const std::int32_t* places, const std::int32_t* numbers,
                    const Number* logits, float* to, bool exact, const cuda::Stream& stream);
  /// Gradients of those numbers; of all others nothing is written.
  static void gates_back(const RowChoice& choice, const std::int32_t* places, const std::int32_t* numbers,
                         const GatePlaces<Number>& at, bool exact, const cuda::Stream& stream);
};

}  // namespace assay::train_gpu::kernels
