// cuda_device: calls of the runtime; kernels are in the files of CUDA.
#include "workloads/train_gpu/cuda_device.h"

#include <bit>
#include <concepts>
#include <stdexcept>

#include <cuda_runtime_api.h>

namespace assay::train_gpu {

RankGpu::RankGpu(Products& products, FusedAttention* fused, std::size_t calls, const DeviceNeed& need)
    : products_(products),
      fused_(fused),
      stream_(cuda::make_stream()),
      begin_(cuda::make_event()),
      memory_(Bytes{need.memory}),
      sums_(Bytes{4 * sizeof(std::uint64_t)}) {
  for (std::size_t i = 0; i < calls; ++i) marks_.push_back(cuda::make_event());
  if (need.packed_a == 0) return;
  packed_a_ = cuda::DeviceBuffer(Bytes{need.packed_a});
  packed_b_ = cuda::DeviceBuffer(Bytes{need.packed_b});
}

void RankGpu::mark(const cuda::Event& event) const {
  // An event that is recorded plainly orders the nodes of a graph and keeps no time.
  cuda::check(
      cudaEventRecordWithFlags(event.get(), stream_.get(), records_ ? cudaEventRecordExternal : cudaEventRecordDefault),
      "marking a time");
}

template <class Number>
CudaDevice<Number>::CudaDevice(RankGpu& gpu)
    : gpu_(gpu), arena_(std::span(gpu.memory_.data(), gpu.memory_.size().count)) {
  cuda::wait(stream());
  clear_bytes(gpu.memory_.data(), gpu.memory_.size().count);
}

template <class Number>
void CudaDevice<Number>::copy_in(std::int32_t* to, const std::vector<std::int32_t>& numbers) {
  cuda::check(cudaMemcpyAsync(to, numbers.data(), numbers.size() * sizeof(std::int32_t), cudaMemcpyHostToDevice,
                              stream().get()),
              "copying a table to the GPU");
  cuda::wait(stream());
}

template <class Number>
void CudaDevice<Number>::clear_bytes(void* to, std::size_t size) {
  cuda::check(cudaMemsetAsync(to, 0, size, stream().get()), "clearing memory");
}

template <class Number>
std::uint64_t* CudaDevice<Number>::clear_sums() {
  clear_bytes(gpu_.sums_.data(), gpu_.sums_.size().count);
  return gpu_.sums_.as<std::uint64_t>();
}

template <class Number>
std::array<std::uint64_t, 4> CudaDevice<Number>::read_sums() {
  std::array<std::uint64_t, 4> sums = {};
  cuda::wait(stream());
  cuda::copy_to_host(std::as_writable_bytes(std::span(sums)), gpu_.sums_.data());
  return sums;
}

template <class Number>
AttentionDifference CudaDevice<Number>::differences(const HeadRows& rows, const Number* right, const Number* other,
                                                    const Number* more) {
  Step::differences(rows, right, other, more, clear_sums(), stream());
  const auto sums = read_sums();
  return {.count = sums[0], .largest = double{std::bit_cast<float>(static_cast<std::uint32_t>(sums[1]))}};
}

template <class Number>
void CudaDevice<Number>::fused(const AttentionPlaces<Number>& at, bool forward) {
  if constexpr (std::same_as<Number, train::Bf16>)
    forward ? gpu_.fused_->forward(stream().get(), at) : gpu_.fused_->backward(stream().get(), at);
  else
    throw std::logic_error("fused attention takes BF16");
}

template <class Number>
void CudaDevice<Number>::fold(train::Bf16* /*values*/, std::size_t /*count*/) {
  throw std::logic_error("exact steps keep fp32");
}

template <class Number>
void CudaDevice<Number>::multiply(const ProductShape& shape, const Number* a, const Number* b, void* c) {
  if constexpr (std::same_as<Number, float>) {
    if (gpu_.products_.type() != train::FactorType::tf32) {
      kernels::pack(a_of(shape), a, gpu_.packed_a_.data(), stream());
      kernels::pack(b_of(shape), b, gpu_.packed_b_.data(), stream());
      return gpu_.products_.enqueue(packed(shape), {gpu_.packed_a_.data()}, {gpu_.packed_b_.data()}, c, stream());
    }
  }
  gpu_.products_.enqueue(shape, {a}, {b}, c, stream());
}

template <class Number>
void CudaDevice<Number>::copy_rows(std::size_t rows, std::size_t width, const Number* from, std::size_t from_row,
                                   Number* to, std::size_t to_row) {
  cuda::check(cudaMemcpy2DAsync(to, to_row * sizeof(Number), from, from_row * sizeof(Number), width * sizeof(Number),
                                rows, cudaMemcpyDeviceToDevice, stream().get()),
              "copying keys and values");
}

template class CudaDevice<float>;
template class CudaDevice<train::Bf16>;

}  // namespace assay::train_gpu
