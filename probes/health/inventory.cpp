// health_inventory: the parts of this node, as firmware and kernel report them; a later run is compared with it.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/memory_nodes.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/health/drives.h"
#include "probes/health/gpus.h"
#include "probes/health/inventory_spec.h"
#include "probes/health/nics.h"
#include "probes/health/pcie.h"
#include "probes/health/processors.h"
#include "probes/health/smbios.h"

namespace assay::health {
namespace {

constexpr Parameter kParameters[] = {
    parameter("root", "", "/", "directory that holds the proc, sys and etc to read"),
    parameter("nvml_library", "", "auto",
              "file name or path of NVML; auto: libnvidia-ml.so.1, and none if root is not this machine"),
};
constexpr ProbeSpec kSpec{
    .name = "health_inventory",
    .revision = 4,
    .measures = "Counts, capacities, link rates, models, serial numbers and firmware of the node's parts.",
    .method =
        "Reads /proc, /sys and the SMBIOS table once and asks NVML about NVIDIA's GPUs; nothing is changed. Values "
        "that the machine does not report are absent. Counted are parts with hardware behind them: no loop, ram, "
        "device-mapper or md drives, no bridges, bonds or virtual functions, no removable drive without a medium. A "
        "PCIe link is compared with the device's own maximum, so a device in a slower slot counts as degraded.",
    .source =
        "DMTF DSP0134 (SMBIOS) sections 7.18 and 7.38; Linux Documentation/ABI/testing/sysfs-bus-pci, sysfs-class-net "
        "and stable/sysfs-block, gpu/amdgpu/driver-misc; PCI Code and ID Assignment Specification 1.16; NVIDIA NVML "
        "API Reference Guide.",
    .typical = {1},
    .deadline = {60},
    .parameters = kParameters,
    .metrics = kInventoryMetrics,
    .conditions = kInventoryConditions,
    .between_runs = {.least = 0}};

template <class T>
void tell(Recorder& record, std::string_view name, const std::optional<T>& value, const Subject& subject = {}) {
  if (value) record.condition(name, *value, subject);
}

void count(Recorder& record, std::string_view metric, std::optional<std::int64_t> value, const Subject& subject = {}) {
  if (value) record.measurement(metric, static_cast<double>(*value), subject);
}

void amount(Recorder& record, std::string_view metric, std::optional<double> value, const Subject& subject) {
  if (value) record.measurement(metric, *value, subject);
}

std::optional<double> number_of(const std::optional<Bytes>& size) {
  return size ? std::optional(static_cast<double>(size->count)) : std::nullopt;
}

std::int64_t size_of(const auto& list) { return static_cast<std::int64_t>(list.size()); }

/// MemTotal of /proc/meminfo in bytes.
std::optional<double> memory_total(const MachineTree& tree) {
  const std::string text = "\n" + tree.text("proc/meminfo").value_or("");
  constexpr std::string_view kKey = "\nMemTotal:";
  const auto found = text.find(kKey);
  if (found == std::string::npos) return std::nullopt;
  const auto line =
      told(std::string_view(text).substr(found + kKey.size(), text.find('\n', found + 1) - found - kKey.size()));
  if (!line || !line->ends_with(" kB")) return std::nullopt;
  const auto size = parse_bytes(line->substr(0, line->size() - 2) + "KiB");  // the kernel's kB is 1024 bytes
  return number_of(size);
}

/// PRETTY_NAME of /etc/os-release, without its quotes.
std::optional<std::string> operating_system(const MachineTree& tree) {
  const std::string text = "\n" + tree.text("etc/os-release").value_or("");
  constexpr std::string_view kKey = "\nPRETTY_NAME=";
  const auto found = text.find(kKey);
  if (found == std::string::npos) return std::nullopt;
  auto name = text.substr(found + kKey.size(), text.find('\n', found + 1) - found - kKey.size());
  std::erase(name, '"');
  return told(name);
}

void record_node(const MachineTree& tree, Recorder& record) {
  tell(record, "kernel", tree.text("proc/sys/kernel/osrelease"));
  tell(record, "operating_system", operating_system(tree));
  constexpr std::pair<const char*, const char*> kFirmware[] = {
      {"system_vendor", "sys_vendor"}, {"product", "product_name"},    {"product_serial", "product_serial"},
      {"board", "board_name"},         {"bios_vendor", "bios_vendor"}, {"bios_version", "bios_version"},
      {"bios_date", "bios_date"}};
  for (const auto& [name, file] : kFirmware) tell(record, name, tree.text(std::string("sys/class/dmi/id/") + file));
  amount(record, "memory_total", memory_total(tree), {});
}

void record_processors(const Processors& processors, Recorder& record) {
  count(record, "cpus_total", processors.cpus);
  count(record, "cpus_online", processors.cpus_online);
  count(record, "cpus_offline", processors.cpus_offline());
  count(record, "cores_total", processors.cores);
  if (!processors.packages.empty()) count(record, "sockets_total", size_of(processors.packages));
  for (const auto& [name, package] : processors.packages) {
    const Subject cpu{.kind = "cpu", .id = name};
    tell(record, "model", package.model, cpu);
    tell(record, "microcode", package.microcode, cpu);
  }
}

void record_memory(const MemorySlots& slots, Recorder& record) {
  count(record, "dimms_total", size_of(slots.dimms));
  count(record, "dimm_slots_empty", slots.empty);
  count(record, "dimms_unlike", dimms_unlike(slots));
  count(record, "dimms_slow", dimms_slow(slots));
  amount(record, "memory_fitted", memory_fitted(slots), {});
  amount(record, "memory_rate", memory_rate(slots), {});
  for (const Dimm& dimm : slots.dimms) {
    const Subject subject{.kind = "dimm", .id = dimm.slot};
    amount(record, "dimm_size", number_of(dimm.size), subject);
    amount(record, "dimm_rate", dimm.transfers_per_s, subject);
    amount(record, "dimm_rate_rated", dimm.transfers_per_s_rated, subject);
    tell(record, "memory_type", dimm.memory_type, subject);
    tell(record, "manufacturer", dimm.manufacturer, subject);
    tell(record, "part", dimm.part, subject);
    tell(record, "serial", dimm.serial, subject);
  }
}

void record_drives(const std::vector<Drive>& drives, Recorder& record) {
  count(record, "drives_total", size_of(drives));
  for (const Drive& drive : drives) {
    const Subject subject{.kind = "drive", .id = drive.name};
    amount(record, "drive_size", number_of(drive.size), subject);
    tell(record, "model", drive.model, subject);
    tell(record, "serial", drive.serial, subject);
    tell(record, "firmware", drive.firmware, subject);
    tell(record, "rotational", drive.rotational, subject);
    tell(record, "pci_address", drive.pci_address, subject);
  }
}

void record_nics(const std::vector<Nic>& nics, Recorder& record) {
  count(record, "nics_total", size_of(nics));
  count(record, "nics_up", std::ranges::count_if(nics, &Nic::up));
  for (const Nic& nic : nics) {
    const Subject subject{.kind = "nic", .id = nic.name};
    record.condition("link", std::string(nic.up ? "up" : "down"), subject);
    if (nic.link_rate) record.measurement("link_rate", nic.link_rate->count, subject);
    if (nic.link_rate_max) record.measurement("link_rate_max", nic.link_rate_max->count, subject);
    tell(record, "driver", nic.driver, subject);
    tell(record, "firmware", nic.firmware, subject);
    tell(record, "mac_address", nic.mac_address, subject);
    tell(record, "rdma_device", nic.rdma_device, subject);
    tell(record, "guid", nic.guid, subject);
    tell(record, "pci_address", nic.pci_address, subject);
  }
}

/// The GPUs that the NVIDIA driver lists; nothing if it was not asked or is not there.
std::optional<std::vector<Gpu>> nvidia_gpus(const std::string& library, bool is_this_machine, Recorder& record) {
  const bool automatic = library == "auto";
  if (automatic && !is_this_machine) return std::nullopt;
  try {
    const nvml::Nvml nvml(automatic ? nvml_api::kLibrary : library);
    std::vector<Gpu> gpus;
    std::ranges::transform(nvml.gpus(), std::back_inserter(gpus), read_gpu);
    record.condition("nvml_library", nvml.path());
    record.condition("driver_version", nvml.driver_version());
    return gpus;
  } catch (const Skip& skip) {
    record.condition("nvml_library",
                     nvml::absent_because(skip.what()));  // a node without such GPUs has an inventory too
    return std::nullopt;
  }
}

/// The GPUs of the node, recorded.
std::vector<Gpu> record_gpus(const MachineTree& tree, const std::string& library, Recorder& record) {
  const auto nvidia = nvidia_gpus(library, tree.is_this_machine(), record);
  const auto amd = read_amd_gpus(tree);
  for (const Gpu& gpu : amd) {
    const std::string folder = "sys/bus/pci/devices/" + gpu.subject.id;
    tell(record, "compute_partition", tree.text(folder + "/current_compute_partition"), gpu.subject);
    tell(record, "memory_partition", tree.text(folder + "/current_memory_partition"), gpu.subject);
  }
  if (!amd.empty()) tell(record, "amdgpu_version", tree.text("sys/module/amdgpu/version"));
  std::vector<Gpu> gpus = nvidia.value_or(std::vector<Gpu>());
  gpus.insert(gpus.end(), amd.begin(), amd.end());
  if (nvidia || !amd.empty()) count(record, "gpus_total", size_of(gpus));
  std::optional<std::int64_t> instances;
  for (const Gpu& gpu : gpus) {
    record_gpu(gpu, record);
    tell(record, "mig_mode", gpu.mig_mode, gpu.subject);
    if (gpu.instances) instances = instances.value_or(0) + *gpu.instances;
    if (gpu.memory) record.measurement("gpu_memory", static_cast<double>(*gpu.memory), gpu.subject);
  }
  count(record, "gpu_instances", instances);
  return gpus;
}

/// Device on each PCI function; the first in order if there are several.
std::map<std::string, Subject> names_by_address(const std::vector<Drive>& drives, const std::vector<Nic>& nics,
                                                const std::vector<Gpu>& gpus) {
  std::map<std::string, Subject> names;
  for (const Gpu& gpu : gpus) {
    if (gpu.pci_address) names.emplace(*gpu.pci_address, gpu.subject);
  }
  for (const Drive& drive : drives) {
    if (drive.pci_address) names.emplace(*drive.pci_address, Subject{.kind = "drive", .id = drive.name});
  }
  for (const Nic& nic : nics) {
    if (nic.pci_address) names.emplace(*nic.pci_address, Subject{.kind = "nic", .id = nic.name});
  }
  return names;
}

/// Devices with fewer lanes than they are made for; nothing if no width can be compared.
std::optional<std::int64_t> narrow_links(const std::vector<PcieDevice>& devices) {
  std::optional<std::int64_t> narrow;
  for (const PcieDevice& device : devices) {
    if (!device.current.width || !device.maximum.width) continue;
    narrow = narrow.value_or(0) + (*device.current.width < *device.maximum.width ? 1 : 0);
  }
  return narrow;
}

void record_pcie(const std::vector<PcieDevice>& devices, bool guest, Recorder& record) {
  count(record, "accelerators_total", std::ranges::count_if(devices, &PcieDevice::accelerator));
  std::int64_t compared = 0;
  std::int64_t degraded = 0;
  for (const PcieDevice& device : devices) {
    amount(record, "pcie_rate", device.current.transfers_per_s, device.subject);
    amount(record, "pcie_rate_max", device.maximum.transfers_per_s, device.subject);
    count(record, "pcie_width", device.current.width, device.subject);
    count(record, "pcie_width_max", device.maximum.width, device.subject);
    tell(record, "pci_id", device.pci_id, device.subject);
    tell(record, "numa_node", device.numa_node, device.subject);
    // A nic or drive known by its name has its driver recorded there.
    if (device.subject.id == device.address || device.subject.kind == "gpu")
      tell(record, "driver", device.driver, device.subject);
    if (!device.degraded()) continue;
    ++compared;
    if (*device.degraded()) ++degraded;
  }
  if (!guest) count(record, "pcie_narrow_links", narrow_links(devices));
  if (compared == 0) return;
  count(record, "pcie_links_total", compared);
  count(record, "pcie_degraded_links", degraded);
}

void measure(const Parameters& given, Recorder& record) {
  constexpr std::size_t kTableLimit = 1 << 20;  // 2,048 modules of 100 bytes with their strings stay under 400 kB
  const MachineTree tree(given.text("root"));
  if (!tree.exists("proc/meminfo") && !tree.exists("sys/devices")) {
    throw std::runtime_error(
        fmt::format("root: '{}' holds neither proc/meminfo nor sys/devices\nhint: name the directory that proc and sys "
                    "are in; / is this machine",
                    given.text("root")));
  }
  record_node(tree, record);
  record_processors(read_processors(tree), record);
  if (const auto table = tree.bytes("sys/firmware/dmi/tables/DMI", kTableLimit)) {
    if (const auto slots = read_memory_slots(*table)) record_memory(*slots, record);
  }
  const auto drives = read_drives(tree);
  const auto nics = read_nics(tree);
  const auto gpus = record_gpus(tree, given.text("nvml_library"), record);
  if (tree.exists("sys/block")) record_drives(drives, record);
  if (tree.exists("sys/class/net")) record_nics(nics, record);
  if (tree.exists("sys/bus/pci/devices")) {
    record_pcie(read_pcie_devices(tree, names_by_address(drives, nics, gpus)), is_guest(tree), record);
  }
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
