// device_record: conditions of every GPU probe about the device measured.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "probes/core/probe.h"
#include "probes/cuda/choice.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::cuda {

/// The conditions that record_device writes.
inline constexpr ConditionSpec kDeviceConditions[] = {
    {.name = "device_name", .meaning = "Name of the GPU."},
    {.name = "pci_bus_id", .meaning = "PCI bus id of the GPU, as under /sys/bus/pci/devices."},
    {.name = "mig",
     .meaning = "Whether it is an instance of a partitioned GPU (MIG); NVML then reports on the whole GPU."},
    {.name = "compute_capability", .meaning = "Compute capability of the GPU."},
    {.name = "sm_count", .meaning = "Streaming multiprocessors that the runtime shows."},
    {.name = "memory_bytes", .meaning = "Memory of the GPU that the runtime shows, in B."},
    {.name = "l2_bytes", .meaning = "Second-level cache of the GPU, in B."},
    if_reported("memory_clock_hz", "Highest clock of the memory, where the runtime reports it, in Hz."),
    {.name = "memory_bus_bits", .meaning = "Width of the memory bus, in bit."},
    {.name = "ecc", .meaning = "Whether ECC is on."},
    if_reported("driver_version", "Version of the NVIDIA kernel driver, where /sys reports it."),
    {.name = "cuda_driver_version",
     .meaning = "Newest CUDA version that the driver supports; not the driver's own version."},
    {.name = "cuda_runtime_version", .meaning = "Version of the CUDA runtime in this probe."},
};

/// Records kDeviceConditions, with the GPU as their subject. The device need not be current.
void record_device(Recorder& record, const Device& device);

/// Conditions of a probe, joined: those of its parts and its own, in order.
template <std::size_t... N>
constexpr auto join_conditions(const ConditionSpec (&... lists)[N]) {
  std::array<ConditionSpec, (N + ...)> joined;
  auto* to = joined.data();
  const auto append = [&to](std::span<const ConditionSpec> list) {
    for (const auto& condition : list) *to++ = condition;
  };
  (append(lists), ...);
  return joined;
}

}  // namespace assay::cuda
