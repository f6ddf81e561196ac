// cuda_device: the operations of DeviceCore on one GPU: products by cuBLASLt, kernels, memory and events.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "probes/cuda/device.h"
#include "probes/cuda/graph.h"
#include "probes/cuda/progress.h"
#include "workloads/train_gpu/device_memory.h"
#include "workloads/train_gpu/device_rehearsal.h"
#include "workloads/train_gpu/fused_attention.h"
#include "workloads/train_gpu/products.h"
#include "workloads/train_gpu/step_kernels.h"

namespace assay::train_gpu {

/// One rank's GPU, the current one: a stream, events and one memory, which exact steps and those of the job use in
/// turn.
class RankGpu {
 public:
  /// `calls` is the largest number of calls in a step, each of which is marked. Allocates what `need` says.
  /// `fused` may be null where attention is not fused.
  RankGpu(Products& products, FusedAttention* fused, std::size_t calls, const DeviceNeed& need);
  [[nodiscard]] const cuda::Stream& stream() const { return stream_; }

 private:
  template <class Number>
  friend class CudaDevice;
  void mark(const cuda::Event& event) const;
  Products& products_;
  FusedAttention* fused_;
  cuda::Stream stream_;
  cuda::Event begin_;
  std::vector<cuda::Event> marks_;
  cuda::DeviceBuffer memory_, packed_a_, packed_b_, sums_;
  bool records_ = false;  ///< a graph, instead of running anything
};

/// Everything is enqueued in the one stream of `gpu`; see DeviceCore.
template <class Kept>
class CudaDevice {
 public:
  using Number = Kept;
  /// Begins with the whole memory of `gpu`, set to 0, when the work of the device before is done.
  explicit CudaDevice(RankGpu& gpu);

  template <class Kind>
  std::span<Kind> take(std::size_t count) {
    return arena_.take<Kind>(count);
  }
  void copy_in(std::int32_t* to, const std::vector<std::int32_t>& numbers);
  void draw(const std::vector<train::WeightBlock>& blocks, bool exact, float* master, Number* copy) {
    for (const auto& block : blocks) Weights::draw(block, exact, master, copy, stream());
  }
  template <class Kind>
  WeightPrint print(const std::vector<train::WeightBlock>& blocks, const Kind* from) {
    std::uint64_t* const sums = clear_sums();
    for (const auto& block : blocks) kernels::print(block, from, sums + (block.expert ? 2 : 0), stream());
    const auto found = read_sums();  // print and not finite: of everything else, of routed experts
    return {.shared = found[0], .experts = found[2], .not_finite = found[1] + found[3]};
  }
  void tokens(const train::TokenDraw& draw, std::int32_t* to) { kernels::tokens(draw, to, stream()); }
  template <class Kind>
  void clear(Kind* to, std::size_t count) {
    clear_bytes(to, count * sizeof(Kind));
  }
  void fold(float* values, std::size_t count) { kernels::fold(values, count, stream()); }
  /// Only exact steps are folded, and they keep fp32.
  void fold(train::Bf16* values, std::size_t count);
  template <class Result>
  void product(ProductShape shape, const Number* a, const Number* b, Result* c) {
    shape.narrow = sizeof(Result) == sizeof(train::Bf16);
    multiply(shape, a, b, c);
  }

  template <class Result>
  void product(ProductShape shape, const Fp8Factor& a, const Fp8Factor& b, Result* c) {
    shape.narrow = sizeof(Result) == sizeof(train::Bf16);
    gpu_.products_.enqueue(shape, {a.codes, &a.scale->inverse}, {b.codes, &b.scale->inverse}, c, stream());
  }
  void cast(const CastShape& shape, const Number* from, std::uint8_t* plain, std::uint8_t* turned, CastScale* scale) {
    clear(scale, 1);
    kernels::cast(shape, from, plain, turned, scale, stream());
  }

  void add(std::size_t count, const Number* a, const Number* b, Number* out, bool exact) {
    Step::add(count, a, b, out, exact, stream());
  }
  void norm(const train::NormShape& shape, const Number* x, const Number* gain, Number* out, float* inverse) {
    Step::norm(shape, x, gain, out, inverse, stream());
  }
  void norm_back(const train::NormShape& shape, const Number* x, const Number* gain, const float* inverse,
                 const Number* above, Number* gradient, float* gain_gradient, float* parts) {
    Step::norm_back(shape, x, gain, inverse, above, gradient, gain_gradient, parts, stream());
  }
  void activate(std::size_t rows, std::size_t width, const Number* both, Number* out, bool exact) {
    Step::activate(rows, width, both, out, exact, stream());
  }
  void activate_back(std::size_t rows, std::size_t width, const Number* both, const Number* above, Number* gradient,
                     bool exact) {
    Step::activate_back(rows, width, both, above, gradient, exact, stream());
  }
  void softmax(const ScoreBatch& batch, Number* scores, float scale) { Step::softmax(batch, scores, scale, stream()); }
  void softmax_back(const ScoreBatch& batch, const Number* kept, Number* above, std::size_t above_stride, float scale) {
    Step::softmax_back(batch, kept, above, above_stride, scale, stream());
  }
  void attend(const train::HeadShape& /*shape*/, const AttentionPlaces<Number>& at) { fused(at, true); }
  void attend_back(const train::HeadShape& /*shape*/, const AttentionPlaces<Number>& at) { fused(at, false); }
  /// Waits.
  AttentionDifference differences(const HeadRows& rows, const Number* right, const Number* other, const Number* more);
  void row_sums(std::size_t rows, std::size_t columns, const Number* logits, float* sums, bool exact) {
    Step::row_sums(rows, columns, logits, sums, exact, stream());
  }
  void loss_back(const LossShape& shape, const float* sums, const std::int32_t* targets, Number* logits) {
    Step::loss_back(shape, sums, targets, logits, stream());
  }
  void embed(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, const std::int32_t* tokens,
             const Number* table, Number* out) {
    Weights::embed(rows, width, first, here, tokens, table, out, stream());
  }
  void embed_back(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, const std::int32_t* tokens,
                  const Number* above, float* gradients) {
    Weights::embed_back(rows, width, first, here, tokens, above, gradients, stream());
  }
  void adam(std::size_t count, const train::AdamState& state, Number* copy, bool exact) {
    Weights::adam(count, state, copy, exact, stream());
  }
  void copy_rows(std::size_t rows, std::size_t width, const Number* from, std::size_t from_row, Number* to,
                 std::size_t to_row);

  void gather_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const Number* from,
                   Number* to) {
    Experts::gather_rows(choice, places, factors, from, to, stream());
  }
  void sum_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const Number* from,
                Number* to) {
    Experts::sum_rows(choice, places, factors, from, to, stream());
  }
  void gates(std::size_t rows, std::size_t each, const std::int32_t* places, const std::int32_t* numbers,
             const Number* logits, float* to, bool exact) {
    Experts::gates(rows, each, places, numbers, logits, to, exact, stream());
  }
  void gates_back(const RowChoice& choice, const std::int32_t* places, const std::int32_t* numbers,
                  const GatePlaces<Number>& at, bool exact) {
    Experts::gates_back(choice, places, numbers, at, exact, stream());
  }

  void begin(std::size_t /*calls*/) { gpu_.mark(gpu_.begin_); }
  void mark(std::size_t call) { gpu_.mark(gpu_.marks_.at(call)); }
  /// Waits for the stream, with the deadline of wait().
  void end() {
    if (!gpu_.records_) cuda::wait(stream());
  }
  [[nodiscard]] double seconds(std::size_t call) const {
    return gpu_.records_ ? 0 : cuda::elapsed(gpu_.begin_, gpu_.marks_[call]).count;
  }
  /// Whether the GPU is past the mark of this call, of the last walk that came to it. From any thread.
  [[nodiscard]] bool has_passed(std::size_t call) const { return cuda::has_passed(gpu_.marks_.at(call)); }
  /// A graph of all that `walk` enqueues, events included, which keep time in each of its launches. Nothing of it runs.
  cuda::Graph recorded(const std::function<void()>& walk) {
    return cuda::capture(stream(), [&] {
      gpu_.records_ = true;
      walk();
      gpu_.records_ = false;
    });
  }

 private:
  using Step = kernels::StepKernels<Number>;
  using Weights = kernels::WeightKernels<Number>;
  using Experts = kernels::ExpertKernels<Number>;
  [[nodiscard]] const cuda::Stream& stream() const { return gpu_.stream_; }
  std::uint64_t* clear_sums();
  std::array<std::uint64_t, 4> read_sums();
  void clear_bytes(void* to, std::size_t size);
  void fused(const AttentionPlaces<Number>& at, bool forward);
  void multiply(const ProductShape& shape, const Number* a, const Number* b, void* c);

  RankGpu& gpu_;
  Arena arena_;
};

}  // namespace assay::train_gpu
