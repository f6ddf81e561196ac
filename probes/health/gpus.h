// gpus: facts of each GPU from the NVIDIA driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/probe.h"
#include "probes/nvml/nvml_gpu.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// One GPU; values that the driver does not report are absent.
struct Gpu {
  Subject subject = {};  ///< its UUID; "index-5" when it does not answer; an AMD GPU's PCI address
  std::optional<std::string> model = {}, serial = {}, part = {}, vbios = {}, inforom = {}, firmware = {},
                             pci_address = {}, fabric_state = {}, fabric_health = {};
  std::optional<std::uint64_t> memory = {};  ///< bytes
  std::optional<bool> mig_mode = {};         ///< whether it is partitioned
  std::optional<unsigned> instances = {};    ///< that it is divided into
};

/// The conditions that record_gpu records, for the spec of a probe that does.
inline constexpr ConditionSpec kGpuConditions[] = {
    if_reported("model", "product name of a gpu, where the driver reports it"),
    if_reported("serial", "serial number of a gpu, where the driver reports it"),
    if_reported("part", "board part number of a gpu, where the driver reports it"),
    if_reported("vbios", "version of a gpu's video BIOS, where the driver reports it"),
    if_reported("inforom", "version of a gpu's InfoROM image, where the driver reports it"),
    if_present("firmware", "version of a gpu's GSP firmware, where it runs"),
    if_reported("pci_address", "PCI function of a gpu, where the driver reports it"),
    if_present("fabric_state",
               "whether a gpu has joined its NVLink fabric (not_supported, not_started, in_progress, completed, "
               "failed), if there is a fabric manager to join"),
    if_reported("fabric_health", "healthy, or the faults of a gpu's NVLink fabric, where the driver reports it"),
};

/// Queries the identity of `gpu`.
Gpu read_gpu(const nvml::NvmlGpu& gpu);

/// AMD's accelerators, by their addresses, as the driver amdgpu describes them in sysfs (docs.kernel.org,
/// gpu/amdgpu/driver-misc). Graphics within a processor, which have no product name, are none.
std::vector<Gpu> read_amd_gpus(const MachineTree& tree);

/// Records all of it but the memory as conditions of its subject.
void record_gpu(const Gpu& gpu, Recorder& record);

/// State of a GPU in its fabric in one word.
std::string fabric_state_word(const nvml_api::FabricInfo& fabric);

/// The faults of a completed fabric by its health bits, or by a bad summary without a bad bit; nothing if the driver
/// reports neither.
std::optional<std::vector<std::string>> fabric_ailments(const nvml_api::FabricInfo& fabric);

/// "healthy", or those faults with one space between; nothing if the driver reports none of them.
std::optional<std::string> fabric_health_words(const nvml_api::FabricInfo& fabric);

/// Whether the fabric has taken the GPU in, or refused it (state completed).
bool is_completed(const nvml_api::FabricInfo& fabric);

/// "9c6f5af3-53bf-49b5-a436-b66766c413c3": the cluster of nodes that share the fabric. Empty for all zeros, as a node
/// with NVSwitches of its own has.
std::string fabric_uuid(const nvml_api::FabricInfo& fabric);

}  // namespace assay::health
