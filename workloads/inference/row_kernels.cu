// row_kernels: the launches. All arithmetic is in exchange_rows.h, where the host's tests run it.
#include <algorithm>

#include <cuda_runtime.h>

#include "workloads/inference/row_kernels.h"

namespace assay::inference {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint64_t kMostBlocks = 1 << 16;  // each block walks on by the grid; more than this only queue

struct Count {
  __device__ void operator()(std::uint32_t& number) const { atomicAdd(&number, 1U); }
  __device__ void operator()(std::uint64_t& number) const {
    atomicAdd(reinterpret_cast<unsigned long long*>(&number), 1ULL);
  }
};
struct Raise {
  __device__ void operator()(std::uint64_t& number, std::uint64_t to) const {
    atomicMax(reinterpret_cast<unsigned long long*>(&number), static_cast<unsigned long long>(to));
  }
};
static_assert(sizeof(std::uint64_t) == sizeof(unsigned long long));  // type of the atomic functions

template <RowWork work>
__global__ void row_kernel(RowView view, std::uint64_t rows) {
  __shared__ unsigned faults;
  for (std::uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    if constexpr (!is_check(work)) {
      (void)run_row<work>(view, row, threadIdx.x, blockDim.x, Count());
    } else {
      if (threadIdx.x == 0) faults = 0;
      __syncthreads();
      const unsigned own = run_row<work>(view, row, threadIdx.x, blockDim.x, Count());
      if (own != 0) atomicOr(&faults, own);
      __syncthreads();
      if (threadIdx.x == 0 && faults != 0) report_row(work, view, row, faults, Count(), Raise());
      __syncthreads();
    }
  }
}

}  // namespace

void enqueue_rows(RowWork work, const RowView& view, std::uint64_t rows, const cuda::Stream& stream) {
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>(std::min(rows, kMostBlocks));
  with_row_work(work, [&]<RowWork kind>() { row_kernel<kind><<<blocks, kThreads, 0, stream.get()>>>(view, rows); });
  cuda::check(cudaGetLastError(), "working on rows of an exchange");
}

}  // namespace assay::inference
