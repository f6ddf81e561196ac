// memory_kernels: the kernels of probes/cuda/memory_kernels.cuh, the gate's and those that check collectives, launched
// by the HIP runtime. They are compiled here too, but only for the types of their parameters: they run as the node's
// compiler makes them.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "probes/amd/current.h"
#include "probes/amd/gate_kernel.cuh"
#include "probes/amd/hip.h"
#include "probes/cuda/gate.h"
#include "probes/cuda/memory_kernels.cuh"
#include "probes/cuda/memory_kernels.h"
#include "probes/nccl/check_kernels.cuh"

namespace assay::cuda {
namespace {

/// The names by which the compiled text has the kernels.
const char* name_of(const void* kernel) {
  const auto address = [](auto* function) { return reinterpret_cast<const void*>(function); };
  static const std::pair<const void*, const char*> kNames[] = {
      {address(kernels::assay_copy), "assay_copy"},
      {address(kernels::assay_scale), "assay_scale"},
      {address(kernels::assay_add), "assay_add"},
      {address(kernels::assay_dot), "assay_dot"},
      {address(kernels::assay_sum), "assay_sum"},
      {address(kernels::assay_right_dot), "assay_right_dot"},
      {address(kernels::assay_fill), "assay_fill"},
      {address(kernels::assay_right_sum), "assay_right_sum"},
      {address(kernels::assay_walk), "assay_walk"},
      {address(kernels::assay_start), "assay_start"},
      {address(kernels::assay_check), "assay_check"},
      {address(kernels::assay_chase), "assay_chase"},
      {address(kernels::assay_hold), "assay_hold"},
      {address(nccl::kernels::assay_send), "assay_send"},
      {address(nccl::kernels::assay_compare), "assay_compare"}};
  const auto* const found = std::ranges::find(kNames, kernel, &std::pair<const void*, const char*>::first);
  if (found == std::end(kNames)) throw std::logic_error("a kernel without a name");
  return found->second;
}

template <class... Parameters>
void launch(unsigned blocks, unsigned threads, const Stream& stream, void (*kernel)(Parameters...),
            Parameters... arguments) {
  std::array<void*, sizeof...(Parameters)> places = {&arguments...};
  check(amd::hip().launch(amd::kernel(name_of(reinterpret_cast<const void*>(kernel))), blocks, 1, 1, threads, 1, 1, 0,
                          stream.get(), places.data(), nullptr),
        "launching a kernel");
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
