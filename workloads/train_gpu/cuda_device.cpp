// cuda_device: calls of the runtime; every kernel is in step_kernels.cu.
#include "workloads/train_gpu/cuda_device.h"

#include <algorithm>
#include <cstring>

#include <cuda_runtime_api.h>

namespace assay::train_gpu {

CudaDevice::CudaDevice(Products& products, std::size_t calls)
    : products_(products), stream_(cuda::make_stream()), begin_(cuda::make_event()) {
  for (std::size_t i = 0; i < calls; ++i) marks_.push_back(cuda::make_event());
}

std::span<float> CudaDevice::take(std::size_t count) {
  if (count == 0) return {};
  cuda::DeviceBuffer& room = rooms_.emplace_back(Bytes{count * sizeof(float)});
  cuda::check(cudaMemsetAsync(room.data(), 0, count * sizeof(float), stream_.get()), "clearing memory");
  return {room.as<float>(), count};
}

void CudaDevice::release() {
  cuda::wait(stream_);
  rooms_.clear();
}

void CudaDevice::copy_in(float* to, std::span<const float> values) {
  cuda::check(cudaMemcpyAsync(to, values.data(), values.size_bytes(), cudaMemcpyHostToDevice, stream_.get()),
              "copying weights to the GPU");
  cuda::wait(stream_);
}

void CudaDevice::copy_out(std::span<float> values, const float* from) {
  cuda::wait(stream_);
  cuda::copy_to_host(std::as_writable_bytes(values), reinterpret_cast<const std::byte*>(from));
}

void CudaDevice::tokens(const std::vector<std::int32_t>& values) {
  const Bytes size{values.size() * sizeof(std::int32_t)};
  if (tokens_.size().count < size.count) {  // at the first step
    tokens_ = cuda::DeviceBuffer(size);
    tokens_host_ = cuda::PinnedBuffer(size);
  }
  cuda::wait(stream_);  // of the step before, whose tokens are still there
  std::memcpy(tokens_host_.data(), values.data(), size.count);
  cuda::check(cudaMemcpyAsync(tokens_.data(), tokens_host_.data(), size.count, cudaMemcpyHostToDevice, stream_.get()),
              "copying tokens to the GPU");
}

void CudaDevice::clear(float* to, std::size_t count) {
  if (!rehearsing_) cuda::check(cudaMemsetAsync(to, 0, count * sizeof(float), stream_.get()), "clearing memory");
}

void CudaDevice::rehearse(bool on) {
  rehearsing_ = on;
  if (on || most_a_ == 0) return;
  packed_a_ = cuda::DeviceBuffer(Bytes{static_cast<std::uint64_t>(most_a_) * sizeof(std::uint16_t)});
  packed_b_ = cuda::DeviceBuffer(Bytes{static_cast<std::uint64_t>(most_b_) * sizeof(std::uint16_t)});
}

void CudaDevice::product(const ProductShape& shape, const float* a, const float* b, float* c) {
  if (products_.type() == train::FactorType::tf32)
    return rehearsing_ ? products_.settle(shape) : products_.enqueue(shape, a, b, c, stream_);
  if (rehearsing_) {
    most_a_ = std::max(most_a_, packed(a_of(shape)).extent());
    most_b_ = std::max(most_b_, packed(b_of(shape)).extent());
    return products_.settle(packed(shape));
  }
  kernels::pack(a_of(shape), a, packed_a_.data(), stream_);
  kernels::pack(b_of(shape), b, packed_b_.data(), stream_);
  products_.enqueue(packed(shape), packed_a_.data(), packed_b_.data(), c, stream_);
}

void CudaDevice::fold(float* values, std::size_t count) {
  if (!rehearsing_) kernels::fold(values, count, stream_);
}
void CudaDevice::add(std::size_t count, const float* a, const float* b, float* out, bool exact) {
  kernels::add(count, a, b, out, exact, stream_);
}
void CudaDevice::norm(const train::NormShape& shape, const float* x, const float* gain, float* out, float* inverse) {
  kernels::norm(shape, x, gain, out, inverse, stream_);
}
void CudaDevice::norm_back(const train::NormShape& shape, const float* x, const float* gain, const float* inverse,
                           const float* above, float* gradient, float* gain_gradient) {
  kernels::norm_back(shape, x, gain, inverse, above, gradient, gain_gradient, stream_);
}
void CudaDevice::activate(std::size_t rows, std::size_t width, const float* both, float* out, bool exact) {
  kernels::activate(rows, width, both, out, exact, stream_);
}
void CudaDevice::activate_back(std::size_t rows, std::size_t width, const float* both, const float* above,
                               float* gradient, bool exact) {
  kernels::activate_back(rows, width, both, above, gradient, exact, stream_);
}
void CudaDevice::softmax(const ScoreBatch& batch, float* scores, float scale) {
  if (!rehearsing_) kernels::softmax(batch, scores, scale, stream_);
}
void CudaDevice::softmax_back(const ScoreBatch& batch, const float* kept, float* above, std::size_t above_stride,
                              float scale) {
  if (!rehearsing_) kernels::softmax_back(batch, kept, above, above_stride, scale, stream_);
}
void CudaDevice::row_sums(std::size_t rows, std::size_t columns, const float* logits, float* sums, bool exact) {
  kernels::row_sums(rows, columns, logits, sums, exact, stream_);
}
void CudaDevice::loss_back(const LossShape& shape, const float* sums, std::size_t targets, float* logits) {
  kernels::loss_back(shape, sums, tokens_.as<std::int32_t>() + targets, logits, stream_);
}
void CudaDevice::embed(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, std::size_t tokens,
                       const float* table, float* out) {
  kernels::embed(rows, width, first, here, tokens_.as<std::int32_t>() + tokens, table, out, stream_);
}
void CudaDevice::embed_back(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here,
                            std::size_t tokens, const float* above, float* gradients) {
  kernels::embed_back(rows, width, first, here, tokens_.as<std::int32_t>() + tokens, above, gradients, stream_);
}
void CudaDevice::adam(std::size_t count, const train::AdamState& state, bool exact) {
  kernels::adam(count, state, exact, stream_);
}
void CudaDevice::copy_rows(std::size_t rows, std::size_t width, const float* from, std::size_t from_row, float* to,
                           std::size_t to_row) {
  cuda::check(cudaMemcpy2DAsync(to, to_row * sizeof(float), from, from_row * sizeof(float), width * sizeof(float), rows,
                                cudaMemcpyDeviceToDevice, stream_.get()),
              "copying keys and values");
}

const std::int32_t* CudaDevice::table(const std::vector<std::int32_t>& numbers) {
  if (numbers.empty()) return nullptr;
  cuda::DeviceBuffer& room = rooms_.emplace_back(Bytes{numbers.size() * sizeof(std::int32_t)});
  cuda::check(cudaMemcpyAsync(room.data(), numbers.data(), room.size().count, cudaMemcpyHostToDevice, stream_.get()),
              "copying a table to the GPU");
  cuda::wait(stream_);
  return room.as<std::int32_t>();
}
void CudaDevice::gather_rows(const RowChoice& choice, const std::int32_t* places, const float* factors,
                             const float* from, float* to) {
  if (!rehearsing_) kernels::gather_rows(choice, places, factors, from, to, stream_);
}
void CudaDevice::sum_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const float* from,
                          float* to) {
  if (!rehearsing_) kernels::sum_rows(choice, places, factors, from, to, stream_);
}
void CudaDevice::gates(std::size_t rows, std::size_t each, const std::int32_t* places, const std::int32_t* numbers,
                       const float* logits, float* to, bool exact) {
  if (!rehearsing_) kernels::gates(rows, each, places, numbers, logits, to, exact, stream_);
}
void CudaDevice::gates_back(const RowChoice& choice, const std::int32_t* places, const std::int32_t* numbers,
                            const GatePlaces& at, bool exact) {
  if (!rehearsing_) kernels::gates_back(choice, places, numbers, at, exact, stream_);
}

void CudaDevice::begin(std::size_t /*calls*/) { assay::cuda::mark(begin_, stream_); }
void CudaDevice::mark(std::size_t call) { assay::cuda::mark(marks_.at(call), stream_); }
void CudaDevice::end() { cuda::wait(stream_); }
double CudaDevice::seconds(std::size_t call) const { return cuda::elapsed(begin_, marks_[call]).count; }

}  // namespace assay::train_gpu
