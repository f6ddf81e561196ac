// choice: which of the GPUs of a node a probe measures, by names that stay the same. Needs no CUDA.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/parameters.h"
#include "probes/core/record.h"
#include "probes/core/units.h"

namespace assay::cuda {

/// One GPU as the CUDA runtime shows it.
struct Device {
  int ordinal = 0;         ///< the runtime's number, for cudaSetDevice only; never recorded
  std::string uuid;        ///< "GPU-8f2…", the id of its subject; "MIG-8f2…" of an instance of a partitioned GPU
  std::string pci_bus_id;  ///< "0000:1b:00.0", lower case, as under /sys/bus/pci/devices
  std::string name;        ///< "NVIDIA H200"
  int sm_count = 0;        ///< streaming multiprocessors
  Bytes memory;            ///< global memory
  Bytes l2;                ///< second-level cache
  int compute_major = 0;
  int compute_minor = 0;

  /// Whether it is an instance of a partitioned GPU (MIG).
  [[nodiscard]] bool is_mig() const { return uuid.starts_with("MIG-"); }
  /// "9.0".
  [[nodiscard]] std::string compute_capability() const;
  /// Its results' subject.
  [[nodiscard]] Subject subject() const { return {.kind = "gpu", .id = uuid}; }
};

/// The parameter `device` that every GPU probe has.
inline constexpr Parameter kDeviceParameter = parameter(
    "device", "", "all", "GPUs to measure: all, a UUID, a PCI bus id, or an index in the order of PCI bus ids");

/// The parameter `schedule` of probes that measure GPUs one by one or all at once.
inline constexpr Parameter kScheduleParameter =
    choice("schedule", "one_by_one", "one_by_one together", "the chosen GPUs one after the other, or all at once");

/// "GPU-" and the 16 bytes in groups of 4, 2, 2, 2 and 6, as nvidia-smi prints them; "MIG-" for an instance of a
/// partitioned GPU.
std::string uuid_text(std::span<const std::byte, 16> bytes, bool mig = false);

/// A PCI bus id in lower case with a domain of four digits: "00000000:1B:00.0" becomes "0000:1b:00.0".
std::string pci_bus_id_text(std::string_view text);

/// Those of `all` that `wanted` names (see kDeviceParameter), ordered by PCI bus id. Throws Skip with the GPUs there
/// are when none is named so.
std::vector<Device> choose_devices(std::vector<Device> all, std::string_view wanted);

/// Notes that `device` is the current one of this thread, for the words of errors.
void note_current(const Device& device);
/// " of GPU-8f2…", the current one; empty before there is one.
std::string of_current();

}  // namespace assay::cuda
