// gate_kernel: the kernel that spins until the gate opens, by the GPU's clock of constant rate.
#pragma once

#include "probes/cuda/kernel_words.h"

namespace assay::cuda::kernels {

extern "C" __global__ void assay_hold(const words::Word* opened, words::Word* ran_out, words::Word round,
                                      words::Word limit_ticks) {
  const words::Word begin = words::ticks();
  while (words::load_again(opened) < round) {
    if (words::ticks() - begin <= limit_ticks) continue;
    (void)words::add_for_host(ran_out, 1);
    return;
  }
}

}  // namespace assay::cuda::kernels
