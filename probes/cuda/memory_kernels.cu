// memory_kernels: the kernels of memory_kernels.cuh, launched by the CUDA runtime.
#include <cuda_runtime.h>

#include "probes/cuda/memory_kernels.cuh"
#include "probes/cuda/memory_kernels.h"

namespace assay::cuda {

template <class... Parameters, class... Arguments>
void launch_over(std::uint64_t pieces, const Stream& stream, void (*kernel)(Parameters...), Arguments... arguments) {
  kernel<<<blocks_for(pieces), kSumThreads, 0, stream.get()>>>(arguments...);
  check(cudaGetLastError(), "launching a kernel");
}

template <class... Parameters, class... Arguments>
void launch_one(const Stream& stream, void (*kernel)(Parameters...), Arguments... arguments) {
  kernel<<<1, 1, 0, stream.get()>>>(arguments...);
  check(cudaGetLastError(), "launching a kernel of one thread");
}

}  // namespace assay::cuda

#include "probes/cuda/memory_launches.cuh"  // after how they are launched
