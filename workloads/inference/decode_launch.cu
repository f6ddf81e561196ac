// decode_launch: the grids of a step, put into a stream; and the one instruction that only a GPU has.
#include <cuda_runtime.h>

#include "workloads/inference/decode_launch.h"

namespace assay::inference::kernels {

/// sums += 16 rows x 16 columns, times 16 columns x 8 sequences, BF16 (PTX ISA, mma.m16n8k16, from sm_80 on).
__device__ inline void multiply_add(float (&sums)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                    unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace assay::inference::kernels

#include "workloads/inference/decode_grids.cuh"  // after multiply_add, which its kernels use

namespace assay::inference {
namespace {

/// Enqueues every block.
struct InStream {
  const cuda::Stream& stream;

  template <class... Parameters, class... Arguments>
  void operator()(const Grid& grid, void (*kernel)(Parameters...), const Arguments&... arguments) const {
    kernel<<<dim3(grid.x, grid.y, grid.z), kernels::kThreads, 0, stream.get()>>>(arguments...);
    cuda::check(cudaGetLastError(), "launching a kernel of a step (cudaLaunchKernel)");
  }
};

unsigned long long* counter(std::uint64_t* word) { return reinterpret_cast<unsigned long long*>(word); }

}  // namespace

void enqueue_step(const DecodeSizes& sizes, const DecodePointers& at, const Multiply& multiply,
                  const cuda::Stream& stream) {
  step_grids(sizes, at, InStream{stream}, multiply);
}

void enqueue_draw(const DecodeSizes& sizes, const DecodePointers& at, std::uint64_t seed, const cuda::Stream& stream) {
  drawing_grids(sizes, at, seed, nullptr, InStream{stream});
}

void enqueue_drawn_check(const DecodeSizes& sizes, const DecodePointers& at, std::uint64_t seed, std::uint64_t* wrong,
                         const cuda::Stream& stream) {
  drawing_grids(sizes, at, seed, counter(wrong), InStream{stream});
}

void enqueue_whole_check(const DecodeSizes& sizes, const DecodePointers& at, std::uint64_t seed, const float* input,
                         std::uint64_t* wrong, const cuda::Stream& stream) {
  whole_grids(sizes, at, seed, input, counter(wrong), InStream{stream});
}

void enqueue_print(const DecodeSizes& sizes, const DecodePointers& at, std::uint64_t* print,
                   const cuda::Stream& stream) {
  print_grids(sizes, at, counter(print), InStream{stream});
}

}  // namespace assay::inference
