// check: the kernels. All arithmetic is in pattern.h, where the host's tests run it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "probes/nccl/check.h"

namespace assay::nccl {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kMostBlocks = 4096;  // each thread walks on by the grid; more blocks than this only queue

unsigned blocks_for(std::uint64_t count) {
  const std::uint64_t wanted = (count + kThreads - 1) / kThreads;
  return wanted < kMostBlocks ? static_cast<unsigned>(wanted) : kMostBlocks;
}

__device__ std::uint64_t first_index() { return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::uint64_t stride() { return std::uint64_t{gridDim.x} * blockDim.x; }

template <class Number>
__global__ void fill_kernel(collective::BitsOf<Number>* buffer, std::uint64_t count, collective::Pattern pattern) {
  for (std::uint64_t i = first_index(); i < count; i += stride())
    buffer[i] = collective::bits_of<Number>(pattern, collective::sent(pattern, i));
}

template <class Number>
__global__ void count_kernel(const collective::BitsOf<Number>* buffer, std::uint64_t count, collective::Pattern pattern,
                             unsigned long long* mismatches) {
  unsigned long long wrong = 0;
  for (std::uint64_t i = first_index(); i < count; i += stride()) {
    if (buffer[i] != collective::bits_of<Number>(pattern, collective::received(pattern, i))) ++wrong;
  }
  if (wrong != 0) atomicAdd(mismatches, wrong);
}

/// Calls `work` with a null pointer of the element's type, which carries nothing but the type.
template <class Work>
void with_type(collective::Element element, Work work) {
  switch (element) {
    case collective::Element::fp32:
      return work(static_cast<float*>(nullptr));
    case collective::Element::fp64:
      return work(static_cast<double*>(nullptr));
    case collective::Element::fp16:
      return work(static_cast<__half*>(nullptr));
    case collective::Element::bf16:
      return work(static_cast<__nv_bfloat16*>(nullptr));
  }
}

}  // namespace

void fill(std::byte* buffer, std::uint64_t count, collective::Element element, const collective::Pattern& pattern,
          const cuda::Stream& stream) {
  with_type(element, [&]<class Number>(Number*) {
    fill_kernel<Number><<<blocks_for(count), kThreads, 0, stream.get()>>>(
        reinterpret_cast<collective::BitsOf<Number>*>(buffer), count, pattern);
  });
  cuda::check(cudaGetLastError(), "filling a send buffer");
}

void overwrite(std::byte* buffer, std::size_t bytes, const cuda::Stream& stream) {
  constexpr int kAllOnes = 0xff;
  cuda::check(cudaMemsetAsync(buffer, kAllOnes, bytes, stream.get()), "overwriting a receive buffer");
}

void clear(std::uint64_t* counter, const cuda::Stream& stream) {
  cuda::check(cudaMemsetAsync(counter, 0, sizeof *counter, stream.get()), "clearing a counter");
}

void count_mismatches(const std::byte* buffer, std::uint64_t count, collective::Element element,
                      const collective::Pattern& pattern, std::uint64_t* mismatches, const cuda::Stream& stream) {
  static_assert(sizeof(std::uint64_t) == sizeof(unsigned long long));  // type of atomicAdd
  with_type(element, [&]<class Number>(Number*) {
    count_kernel<Number><<<blocks_for(count), kThreads, 0, stream.get()>>>(
        reinterpret_cast<const collective::BitsOf<Number>*>(buffer), count, pattern,
        reinterpret_cast<unsigned long long*>(mismatches));
  });
  cuda::check(cudaGetLastError(), "checking a receive buffer");
}

}  // namespace assay::nccl
