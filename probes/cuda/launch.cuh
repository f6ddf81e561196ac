// launch: how the CUDA runtime launches the kernels of memory_launches.cuh and its kin.
#pragma once

#include <cuda_runtime.h>

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
