// step_kernels: the element-wise work of a training step on a GPU. Each is enqueued in `stream` and does on
// memory of the device the work of the function of this name in step_math.h; sums are added in one order, so that two
// runs give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probes/cuda/device.h"
#include "workloads/train_gpu/device_shapes.h"

namespace assay::train_gpu::kernels {

/// What `from` has at `from_shape` goes to `to` at packed(from_shape), rounded to the nearest BF16; the rest of a group
/// of eight is 0. Rows that begin at whole 16 B are read faster.
void pack(const FactorShape& from_shape, const float* from, void* to, const cuda::Stream& stream);
void fold(float* values, std::size_t count, const cuda::Stream& stream);
void add(std::size_t count, const float* a, const float* b, float* out, bool exact, const cuda::Stream& stream);
void norm(const train::NormShape& shape, const float* x, const float* gain, float* out, float* inverse,
          const cuda::Stream& stream);
void norm_back(const train::NormShape& shape, const float* x, const float* gain, const float* inverse,
               const float* above, float* gradient, float* gain_gradient, const cuda::Stream& stream);
void activate(std::size_t rows, std::size_t width, const float* both, float* out, bool exact,
              const cuda::Stream& stream);
void activate_back(std::size_t rows, std::size_t width, const float* both, const float* above, float* gradient,
                   bool exact, const cuda::Stream& stream);
void softmax(const ScoreBatch& batch, float* scores, float scale, const cuda::Stream& stream);
void softmax_back(const ScoreBatch& batch, const float* kept, float* above, std::size_t above_stride, float scale,
                  const cuda::Stream& stream);
void row_sums(std::size_t rows, std::size_t columns, const float* logits, float* sums, bool exact,
              const cuda::Stream& stream);
/// `targets` and `tokens` are numbers of the vocabulary, of which this rank has the rows from `first` on.
void loss_back(const LossShape& shape, const float* sums, const std::int32_t* targets, float* logits,
               const cuda::Stream& stream);
void embed(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, const std::int32_t* tokens,
           const float* table, float* out, const cuda::Stream& stream);
void embed_back(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, const std::int32_t* tokens,
                const float* above, float* gradients, const cuda::Stream& stream);
void adam(std::size_t count, const train::AdamState& state, bool exact, const cuda::Stream& stream);

/// to[i] = from[places[i]], row by row, times factors[i] unless they are null.
void gather_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const float* from,
                 float* to, const cuda::Stream& stream);
/// to[i] is the sum of from[p], times factors[p] unless they are null, over the `each` places p of row i, in their
/// order.
void sum_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const float* from, float* to,
              const cuda::Stream& stream);
/// Of each of `rows` tokens its `each` copies p get the softmax of logits[numbers[p]]; exact: these numbers themselves.
void gates(std::size_t rows, std::size_t each, const std::int32_t* places, const std::int32_t* numbers,
           const float* logits, float* to, bool exact, const cuda::Stream& stream);
/// Gradients of those numbers; of all others nothing is written.
void gates_back(const RowChoice& choice, const std::int32_t* places, const std::int32_t* numbers, const GatePlaces& at,
                bool exact, const cuda::Stream& stream);

}  // namespace assay::train_gpu::kernels
