// amd_load: GPUs of AMD by HIP and hipBLASLt.
#include "probes/amd/gpu_watch.h"
#include "probes/amd/hip.h"
#include "probes/power/gpu_unit.h"

namespace assay::power {
namespace {

Values partitions_of(const std::string& address) {
  const amd::AmdSmi* smi = amd::smi_beside();
  const auto gpu = smi == nullptr ? std::nullopt : smi->gpu_at(address);
  Values modes;
  if (!gpu) return modes;
  if (const auto mode = gpu->compute_partition().value) modes.emplace("compute_partition", *mode);
  if (const auto mode = gpu->memory_partition().value) modes.emplace("memory_partition", *mode);
  return modes;
}

}  // namespace

std::vector<LoadedGpu> amd_load(const GpuLoad& asked) {
  return cuda::loaded_gpus(
      asked, {.watch = [](const std::string& address) -> nvml::GpuWatch { return amd::GpuWatch(address); },
              .partitions = partitions_of});
}

}  // namespace assay::power
