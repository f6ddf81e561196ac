// amd_kernels: the kernels of AMD GPUs by their names, run on the host: by fibres where threads wait for each other.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "probes/amd/gate_kernel.cuh"
#include "probes/cuda/gemm_kernels.cuh"
#include "probes/cuda/memory_kernels.cuh"
#include "probes/nccl/check_kernels.cuh"
#include "tests/fakes/host_block.h"

namespace assay::fakes {

namespace kernels = assay::cuda::kernels;

/// A kernel that waits for nobody: every thread in turn.
template <class Call>
void each_thread(unsigned blocks, unsigned threads, const Call& call) {
  auto& place = assay::cuda::words::host_place;
  for (place.block = 0; place.block < blocks; ++place.block)
    for (place.thread = 0; place.thread < threads; ++place.thread) call();
}

/// A launch of `kernel` with the arguments at `places`; with barriers its threads are fibres.
template <class... Parameters>
std::function<void(unsigned, unsigned)> bound(void (*kernel)(Parameters...), void** places, bool barriers) {
  std::tuple<Parameters...> arguments;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((std::get<i>(arguments) = *static_cast<Parameters*>(places[i])), ...);
  }
  (std::index_sequence_for<Parameters...>{});
  return [=](unsigned blocks, unsigned threads) {
    const auto call = [&] { std::apply(kernel, arguments); };
    if (barriers) return assay::host_block::run(blocks, threads, call);
    each_thread(blocks, threads, call);
  };
}

using Bind = std::function<std::function<void(unsigned, unsigned)>(void**)>;
template <class Kernel>
std::pair<const std::string, Bind> entry(const char* name, Kernel* kernel, bool barriers = false) {
  return {name, [=](void** places) { return bound(kernel, places, barriers); }};
}
#define KERNEL(name) entry(#name, kernels::name)
#define KERNEL_OF_FIBRES(name) entry(#name, kernels::name, true)
inline const std::map<std::string, Bind>& table() {
  static const std::map<std::string, Bind> kTable = {KERNEL(assay_copy),
                                                     KERNEL(assay_scale),
                                                     KERNEL(assay_add),
                                                     KERNEL(assay_fill),
                                                     KERNEL(assay_walk),
                                                     KERNEL(assay_start),
                                                     KERNEL(assay_chase),
                                                     KERNEL(assay_hold),
                                                     KERNEL_OF_FIBRES(assay_dot),
                                                     KERNEL_OF_FIBRES(assay_right_dot),
                                                     KERNEL_OF_FIBRES(assay_sum),
                                                     KERNEL_OF_FIBRES(assay_right_sum),
                                                     KERNEL_OF_FIBRES(assay_check),
                                                     KERNEL(assay_gemm_fill),
                                                     KERNEL_OF_FIBRES(assay_gemm_sum),
                                                     KERNEL(assay_whole_fill),
                                                     KERNEL(assay_whole_halves),
                                                     KERNEL(assay_whole_terms),
                                                     KERNEL(assay_whole_check),
                                                     entry("assay_send", assay::nccl::kernels::assay_send),
                                                     entry("assay_compare", assay::nccl::kernels::assay_compare)};
  return kTable;
}

}  // namespace assay::fakes
