// gpu_unit: a unit of load that is a GPU. Compiled for each vendor's runtime (CMakeLists.txt).
#pragma once

#include <string>
#include <vector>

#include "probes/nvml/gpu_watch.h"
#include "probes/power/gpu_load.h"

namespace assay::cuda {

/// What differs between vendors: the watch of the GPU at a PCI bus id, and the conditions of kPartitionConditions.
struct LoadVendor {
  nvml::GpuWatch (*watch)(const std::string& pci_bus_id);
  Values (*partitions)(const std::string& pci_bus_id);
};

/// The GPUs of this runtime as power::gpu_load says.
std::vector<power::LoadedGpu> loaded_gpus(const power::GpuLoad& asked, const LoadVendor& vendor);

}  // namespace assay::cuda
