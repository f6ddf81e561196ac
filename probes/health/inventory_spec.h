// inventory_spec: the metrics and conditions of health_inventory.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>

#include "probes/core/probe.h"
#include "probes/health/gpus.h"

namespace assay::health {

/// A count, without its course.
inline constexpr Metric kInventoryCounts[] = {
    higher("cpus_total", "1", "logical CPUs present"),
    higher("cpus_online", "1", "logical CPUs in use"),
    lower("cpus_offline", "1",
          "logical CPUs present that are not in use, where the second threads of cores are not switched off",
          Recorded::if_reported),
    higher("cores_total", "1", "physical cores with an online CPU, where the kernel shows topology",
           Recorded::if_reported),
    higher("sockets_total", "1", "processor packages with an online CPU"),
    higher("memory_total", "B", "memory that the kernel manages (MemTotal)"),
    higher("dimms_total", "1", "memory modules in their slots, where SMBIOS is readable (root)", Recorded::if_reported),
    neither("dimm_slots_empty", "1", "memory slots without a module, where SMBIOS is readable", Recorded::if_reported),
    higher("dimm_size", "B", "capacity of one module, where SMBIOS reports it", Recorded::if_reported),
    higher("dimm_rate", "1/s", "configured transfers a second of one module, where SMBIOS reports it",
           Recorded::if_reported),
    higher("dimm_rate_rated", "1/s", "transfers a second one module is made for, where SMBIOS reports it",
           Recorded::if_reported),
    lower("dimms_unlike", "1",
          "modules whose capacity or configured rate is not that of most, where SMBIOS reports it of all",
          Recorded::if_reported),
    lower("dimms_slow", "1",
          "modules that run at less than they are made for, where SMBIOS reports both of all; a processor may not "
          "support the rated speed of its modules",
          Recorded::if_reported),
    higher("memory_fitted", "B", "summed capacity of the modules, where SMBIOS reports it of all",
           Recorded::if_reported),
    higher(
        "memory_rate", "B/s",
        "configured transfers a second times 8 bytes, summed over the channels that have modules, where SMBIOS states "
        "rate and channel of all modules",
        Recorded::if_reported),
    higher("drives_total", "1", "block devices with hardware behind them"),
    higher("drive_size", "B", "capacity of one drive, if it has a medium", Recorded::if_present),
    higher("nics_total", "1", "network ports with hardware behind them"),
    higher("nics_up", "1", "those of them with a link"),
    higher("link_rate", "B/s",
           "signalling rate of one port in one direction, in bytes (bits over 8), where its link is up and its driver "
           "reports it",
           Recorded::if_reported),
    higher("link_rate_max", "B/s",
           "the same of the fastest mode that port and driver support, where the driver lists its modes",
           Recorded::if_reported),
    higher("accelerators_total", "1",
           "PCI functions of class 3D controller or processing accelerator, if there is a PCI bus",
           Recorded::if_present),
    higher("gpus_total", "1",
           "GPUs that the NVIDIA driver lists, and AMD's accelerators that amdgpu drives, if there is such a driver",
           Recorded::if_present),
    neither("gpu_instances", "1", "instances (MIG) of all NVIDIA GPUs, where one can be divided",
            Recorded::if_reported),
    higher("gpu_memory", "B", "memory of one GPU, where the driver reports it", Recorded::if_reported),
    higher("pcie_rate", "1/s", "negotiated transfers a second of one lane (Gen5: 3.2e10), where sysfs reports it",
           Recorded::if_reported),
    higher("pcie_rate_max", "1/s", "transfers a second of one lane the device is made for, where sysfs reports it",
           Recorded::if_reported),
    higher("pcie_width", "1", "negotiated lanes, where sysfs reports them", Recorded::if_reported),
    higher("pcie_width_max", "1", "lanes the device is made for, where sysfs reports them", Recorded::if_reported),
    higher("pcie_links_total", "1", "devices whose link was compared, if there is one", Recorded::if_reported),
    lower("pcie_narrow_links", "1",
          "devices whose link has fewer lanes than they are made for, where a width was compared and the machine is no "
          "guest, whose hypervisor may make them up",
          Recorded::if_reported),
    lower("pcie_degraded_links", "1",
          "devices whose link is slower or narrower than they are made for, where a link was compared; an idle device "
          "may lower its rate to save power",
          Recorded::if_reported),
};

/// An inventory has no noise: its counts do not change.
inline constexpr auto kInventoryMetrics = [] {
  auto all = std::to_array(kInventoryCounts);
  for (Metric& metric : all) metric.course = Course::fixed;
  return all;
}();
/// The conditions of the inventory itself.
inline constexpr ConditionSpec kInventoryOwnConditions[] = {
    {.name = "kernel", .meaning = "release of the running kernel"},
    if_reported("operating_system", "name of the distribution, where /etc/os-release reports it"),
    if_reported("system_vendor", "maker of the machine, where SMBIOS is shown"),
    if_reported("product", "model of the machine, where SMBIOS is shown"),
    if_reported("product_serial", "serial number of the machine, where SMBIOS is shown and readable (root)"),
    if_reported("board", "model of the main board, where SMBIOS is shown"),
    if_reported("bios_vendor", "maker of the firmware, where SMBIOS is shown"),
    if_reported("bios_version", "version of the firmware, where SMBIOS is shown"),
    if_reported("bios_date", "date of the firmware, where SMBIOS is shown"),
    if_reported("model", "model of a cpu, gpu or drive, if known"),
    if_reported("microcode", "microcode revision of a cpu, where the kernel shows it"),
    if_reported("memory_type", "kind of a dimm (DDR5), where SMBIOS reports it"),
    if_reported("manufacturer", "maker of a dimm, where SMBIOS reports it"),
    if_reported("part", "part number of a dimm or of a gpu's board, if known"),
    if_reported("serial", "serial number of a dimm, gpu or drive, if known"),
    if_present("rotational", "whether the kernel treats a drive as a spinning one, if it has a queue"),
    if_reported("firmware", "firmware version of a drive, nic or gpu (its GSP), if known"),
    if_present("driver", "kernel driver of a nic or gpu, where one is bound"),
    if_present("link", "up or down: whether a nic has a link, if there is a nic"),
    if_present("mac_address", "hardware address of a nic, if it has a network interface"),
    if_present("rdma_device", "RDMA device of a nic, if it has one"),
    if_reported("guid", "node GUID of a nic's RDMA device, if it has one"),
    if_reported("mig_mode", "whether a gpu is partitioned (MIG), if it can be"),
    if_present("pci_address", "PCI function of a drive, nic or gpu, if on PCI"),
    if_present("pci_id", "PCI vendor and device id of a gpu, nic or drive, if on PCI"),
    if_reported("numa_node", "memory node next to a gpu, nic or drive, where the firmware reports it"),
    if_asked("nvml_library",
             "path of the NVML that named the gpus, or \"absent: \" and why there is none, if NVML was queried"),
    if_present("driver_version", "version of the NVIDIA driver, if there is one"),
    if_reported("amdgpu_version", "version of the driver amdgpu, where it has one apart from the kernel's"),
    if_reported("compute_partition", "whether an AMD gpu is one device (SPX) or several, where amdgpu reports it"),
    if_reported("memory_partition", "in how many parts an AMD gpu's memory is, where amdgpu reports it"),
};

/// kInventoryOwnConditions, and those of kGpuConditions that are not among them.
inline constexpr auto kInventoryConditions = [] {
  constexpr auto is_new = [](const ConditionSpec& condition) {
    return std::ranges::find(kInventoryOwnConditions, condition.name, &ConditionSpec::name) ==
           std::end(kInventoryOwnConditions);
  };
  std::array<ConditionSpec, std::size(kInventoryOwnConditions) + std::ranges::count_if(kGpuConditions, is_new)> all =
      {};
  std::ranges::copy_if(kGpuConditions, std::ranges::copy(kInventoryOwnConditions, all.begin()).out, is_new);
  return all;
}();

}  // namespace assay::health
