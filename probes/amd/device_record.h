// device_record: conditions of every probe that loads an AMD GPU about the device measured.
#pragma once

#include "probes/core/probe.h"
#include "probes/cuda/choice.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::amd {

/// The conditions that record_device writes.
inline constexpr ConditionSpec kDeviceConditions[] = {
    {.name = "device_name", .meaning = "Name of the GPU."},
    {.name = "pci_bus_id", .meaning = "PCI bus id of the GPU, as under /sys/bus/pci/devices."},
    {.name = "architecture", .meaning = "Architecture of the GPU by the runtime: 9.4 is gfx942, 9.5 is gfx950."},
    {.name = "compute_units", .meaning = "Compute units that the runtime shows."},
    {.name = "memory_bytes", .meaning = "Memory of the GPU that the runtime shows, in B."},
    {.name = "last_cache_bytes",
     .meaning = "Largest cache before the memory, as AMD SMI reports it, in B; else 256 MiB, which no cache exceeds."},
    if_reported("memory_clock_hz", "Highest clock of the memory, where the runtime reports it, in Hz."),
    if_reported("memory_bus_bits", "Width of the memory bus, where the runtime reports it, in bit."),
    if_reported("ecc", "Whether ECC is on, where the runtime reports it."),
    if_reported("driver_version", "Version of the driver amdgpu, where AMD SMI reports it."),
    if_reported("compute_partition",
                "Whether the GPU is one device (SPX) or several (DPX, QPX, CPX), where AMD SMI reports it."),
    if_reported("memory_partition", "In how many parts its memory is (NPS1, NPS4), where AMD SMI reports it."),
    {.name = "hip_version", .meaning = "Version of the HIP runtime."},
};

/// Records kDeviceConditions, with the GPU as their subject.
void record_device(Recorder& record, const cuda::Device& device);

}  // namespace assay::amd
