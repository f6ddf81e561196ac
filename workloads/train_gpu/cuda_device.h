// cuda_device: the operations of DeviceCore on one GPU: products by cuBLASLt, kernels, memory and events.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "probes/cuda/device.h"
#include "workloads/train_gpu/products.h"
#include "workloads/train_gpu/step_kernels.h"

namespace assay::train_gpu {

/// One rank's GPU, the current one. Everything is enqueued in one stream; see DeviceCore.
class CudaDevice {
 public:
  /// `calls` is the largest number of calls in a step, each of which is marked.
  CudaDevice(Products& products, std::size_t calls);

  /// While true products are settled instead of enqueued, and nothing else of a rehearsal is done. At the end there is
  /// memory for the packed BF16 factors of all of them.
  void rehearse(bool on);
  [[nodiscard]] const cuda::Stream& stream() const { return stream_; }

  std::span<float> take(std::size_t count);
  /// Frees all that was taken, after the work on it is done.
  void release();
  void copy_in(float* to, std::span<const float> values);
  void copy_out(std::span<float> values, const float* from);
  void tokens(const std::vector<std::int32_t>& values);
  void clear(float* to, std::size_t count);
  void fold(float* values, std::size_t count);
  void product(const ProductShape& shape, const float* a, const float* b, float* c);
  void add(std::size_t count, const float* a, const float* b, float* out, bool exact);
  void norm(const train::NormShape& shape, const float* x, const float* gain, float* out, float* inverse);
  void norm_back(const train::NormShape& shape, const float* x, const float* gain, const float* inverse,
                 const float* above, float* gradient, float* gain_gradient);
  void activate(std::size_t rows, std::size_t width, const float* both, float* out, bool exact);
  void activate_back(std::size_t rows, std::size_t width, const float* both, const float* above, float* gradient,
                     bool exact);
  void softmax(const ScoreBatch& batch, float* scores, float scale);
  void softmax_back(const ScoreBatch& batch, const float* kept, float* above, std::size_t above_stride, float scale);
  void row_sums(std::size_t rows, std::size_t columns, const float* logits, float* sums, bool exact);
  void loss_back(const LossShape& shape, const float* sums, std::size_t targets, float* logits);
  void embed(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, std::size_t tokens,
             const float* table, float* out);
  void embed_back(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, std::size_t tokens,
                  const float* above, float* gradients);
  void adam(std::size_t count, const train::AdamState& state, bool exact);
  void copy_rows(std::size_t rows, std::size_t width, const float* from, std::size_t from_row, float* to,
                 std::size_t to_row);

  /// These numbers on the GPU, freed together with the memory taken.
  const std::int32_t* table(const std::vector<std::int32_t>& numbers);
  void gather_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const float* from,
                   float* to);
  void sum_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const float* from,
                float* to);
  void gates(std::size_t rows, std::size_t each, const std::int32_t* places, const std::int32_t* numbers,
             const float* logits, float* to, bool exact);
  void gates_back(const RowChoice& choice, const std::int32_t* places, const std::int32_t* numbers,
                  const GatePlaces& at, bool exact);

  void begin(std::size_t calls);
  void mark(std::size_t call);
  /// Waits for the stream, with the deadline of wait().
  void end();
  [[nodiscard]] double seconds(std::size_t call) const;

 private:
  Products& products_;
  cuda::Stream stream_;
  cuda::Event begin_;
  std::vector<cuda::Event> marks_;
  std::vector<cuda::DeviceBuffer> rooms_;
  cuda::DeviceBuffer tokens_;
  cuda::PinnedBuffer tokens_host_;
  std::int64_t most_a_ = 0, most_b_ = 0;  ///< packed numbers of one factor, of all products that were rehearsed
  cuda::DeviceBuffer packed_a_, packed_b_;
  bool rehearsing_ = false;
};

}  // namespace assay::train_gpu
