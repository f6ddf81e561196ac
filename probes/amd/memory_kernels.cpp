// memory_kernels: the kernels of probes/cuda/memory_kernels.cuh, the gate's and those that check collectives, launched
// by the HIP runtime. They are compiled here too, but only for the types of their parameters: they run as the node's
// compiler makes them.
#include "probes/cuda/memory_kernels.cuh"
#include "probes/amd/current.h"
#include "probes/amd/gate_kernel.cuh"
#include "probes/amd/launch.h"
#include "probes/cuda/gate.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/nccl/check_kernels.cuh"

namespace assay::cuda {
namespace {

template <class... Parameters>
void launch(unsigned blocks, unsigned threads, const Stream& stream, void (*kernel)(Parameters...),
            Parameters... arguments) {
  static const amd::Named kNames[] = {amd::named(kernels::assay_copy, "assay_copy"),
                                      amd::named(kernels::assay_scale, "assay_scale"),
                                      amd::named(kernels::assay_add, "assay_add"),
                                      amd::named(kernels::assay_dot, "assay_dot"),
                                      amd::named(kernels::assay_sum, "assay_sum"),
                                      amd::named(kernels::assay_right_dot, "assay_right_dot"),
                                      amd::named(kernels::assay_fill, "assay_fill"),
                                      amd::named(kernels::assay_right_sum, "assay_right_sum"),
                                      amd::named(kernels::assay_walk, "assay_walk"),
                                      amd::named(kernels::assay_start, "assay_start"),
                                      amd::named(kernels::assay_check, "assay_check"),
                                      amd::named(kernels::assay_chase, "assay_chase"),
                                      amd::named(kernels::assay_hold, "assay_hold"),
                                      amd::named(nccl::kernels::assay_send, "assay_send"),
                                      amd::named(nccl::kernels::assay_compare, "assay_compare")};
  amd::launch(kNames, blocks, threads, stream, kernel, arguments...);
}

template <class... Parameters, class... Arguments>
void launch_over(std::uint64_t pieces, const Stream& stream, void (*kernel)(Parameters...), Arguments... arguments) {
  launch<Parameters...>(blocks_for(pieces), kSumThreads, stream, kernel, static_cast<Parameters>(arguments)...);
}
template <class... Parameters, class... Arguments>
void launch_one(const Stream& stream, void (*kernel)(Parameters...), Arguments... arguments) {
  launch<Parameters...>(1, 1, stream, kernel, static_cast<Parameters>(arguments)...);
}

}  // namespace

void enqueue_hold(const std::uint64_t* opened, std::uint64_t* ran_out, std::uint64_t round, Seconds limit,
                  const Stream& stream) {
  constexpr int kUsualKhz = 100'000, kLeastKhz = 1'000, kMostKhz = 10'000'000;  // 100 MHz on every CDNA GPU
  int khz = 0;
  if (amd::hip().attribute(&khz, amd::hip_api::kWallClockKhz, amd::current_device()) != amd::hip_api::kSuccess ||
      khz < kLeastKhz || khz > kMostKhz)
    khz = kUsualKhz;
  launch_one(stream, kernels::assay_hold, reinterpret_cast<const words::Word*>(opened),
             reinterpret_cast<words::Word*>(ran_out), words::Word{round},
             static_cast<words::Word>(limit.count * khz * 1e3));
}

}  // namespace assay::cuda

#include "probes/cuda/memory_launches.cuh"  // after how they are launched
#include "probes/nccl/check_launches.cuh"
