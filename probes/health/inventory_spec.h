// inventory_spec: the metrics and conditions of health_inventory.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>

#include "probes/core/probe.h"
#include "probes/health/gpus.h"

namespace assay::health {

/// What is counted, without its course.
inline constexpr Metric kInventoryCounts[] = {
    {.name = "cpus_total", .unit = "1", .meaning = "logical CPUs present"},
    {.name = "cpus_online", .unit = "1", .meaning = "logical CPUs in use"},
    {.name = "cpus_offline",
     .unit = "1",
     .better = Better::lower,
     .meaning = "logical CPUs present that are not in use, where the second threads of cores are not switched off",
     .recorded = Recorded::if_reported},
    {.name = "cores_total",
     .unit = "1",
     .meaning = "physical cores with an online CPU, where the kernel shows topology",
     .recorded = Recorded::if_reported},
    {.name = "sockets_total", .unit = "1", .meaning = "processor packages with an online CPU"},
    {.name = "memory_total", .unit = "B", .meaning = "memory that the kernel manages (MemTotal)"},
    {.name = "dimms_total",
     .unit = "1",
     .meaning = "memory modules in their slots, where SMBIOS is readable (root)",
     .recorded = Recorded::if_reported},
    {.name = "dimm_slots_empty",
     .unit = "1",
     .better = Better::neither,
     .meaning = "memory slots without a module, where SMBIOS is readable",
     .recorded = Recorded::if_reported},
    {.name = "dimm_size",
     .unit = "B",
     .meaning = "capacity of one module, where SMBIOS reports it",
     .recorded = Recorded::if_reported},
    {.name = "dimm_rate",
     .unit = "1/s",
     .meaning = "configured transfers a second of one module, where SMBIOS reports it",
     .recorded = Recorded::if_reported},
    {.name = "dimm_rate_rated",
     .unit = "1/s",
     .meaning = "transfers a second one module is made for, where SMBIOS reports it",
     .recorded = Recorded::if_reported},
    {.name = "dimms_unlike",
     .unit = "1",
     .better = Better::lower,
     .meaning = "modules whose capacity or configured rate is not that of most, where SMBIOS reports it of all",
     .recorded = Recorded::if_reported},
    {.name = "dimms_slow",
     .unit = "1",
     .better = Better::lower,
     .meaning =
         "modules that run at less than they are made for, where SMBIOS reports both of all; a processor may not "
         "support what its modules are made for",
     .recorded = Recorded::if_reported},
    {.name = "memory_fitted",
     .unit = "B",
     .meaning = "summed capacity of the modules, where SMBIOS reports it of all",
     .recorded = Recorded::if_reported},
    {.name = "memory_rate",
     .unit = "B/s",
     .meaning = "configured transfers a second times 8 bytes, summed over the channels, where SMBIOS reports it of all "
                "modules; modules whose slots differ in their last digits alone share a channel, so that it is never "
                "too much",
     .recorded = Recorded::if_reported},
    {.name = "drives_total", .unit = "1", .meaning = "block devices with hardware behind them"},
    {.name = "drive_size",
     .unit = "B",
     .meaning = "capacity of one drive, where it has a medium",
     .recorded = Recorded::if_present},
    {.name = "nics_total", .unit = "1", .meaning = "network ports with hardware behind them"},
    {.name = "nics_up", .unit = "1", .meaning = "those of them with a link"},
    {.name = "link_rate",
     .unit = "B/s",
     .meaning = "signalling rate of one port in one direction, in bytes (bits over 8), where its link is up and its "
                "driver reports it",
     .recorded = Recorded::if_reported},
    {.name = "link_rate_max",
     .unit = "B/s",
     .meaning = "the same of the fastest mode that port and driver support, where the driver lists its modes",
     .recorded = Recorded::if_reported},
    {.name = "accelerators_total",
     .unit = "1",
     .meaning = "PCI functions of class 3D controller or processing accelerator, where there is a PCI bus",
     .recorded = Recorded::if_present},
    {.name = "gpus_total",
     .unit = "1",
     .meaning = "GPUs that the NVIDIA driver lists, where there is one",
     .recorded = Recorded::if_present},
    {.name = "gpu_memory",
     .unit = "B",
     .meaning = "memory of one GPU, where the driver reports it",
     .recorded = Recorded::if_reported},
    {.name = "pcie_rate",
     .unit = "1/s",
     .meaning = "negotiated transfers a second of one lane (Gen5: 3.2e10), where sysfs reports it",
     .recorded = Recorded::if_reported},
    {.name = "pcie_rate_max",
     .unit = "1/s",
     .meaning = "transfers a second of one lane the device is made for, where sysfs reports it",
     .recorded = Recorded::if_reported},
    {.name = "pcie_width",
     .unit = "1",
     .meaning = "negotiated lanes, where sysfs reports them",
     .recorded = Recorded::if_reported},
    {.name = "pcie_width_max",
     .unit = "1",
     .meaning = "lanes the device is made for, where sysfs reports them",
     .recorded = Recorded::if_reported},
    {.name = "pcie_links_total",
     .unit = "1",
     .meaning = "devices whose link was compared, where there is one",
     .recorded = Recorded::if_reported},
    {.name = "pcie_narrow_links",
     .unit = "1",
     .better = Better::lower,
     .meaning = "devices whose link has fewer lanes than they are made for, where a width was compared and the machine "
                "is no guest, whose hypervisor may make them up",
     .recorded = Recorded::if_reported},
    {.name = "pcie_degraded_links",
     .unit = "1",
     .better = Better::lower,
     .meaning = "devices whose link is slower or narrower than they are made for, where a link was compared; an idle "
                "device may lower its rate to save power",
     .recorded = Recorded::if_reported},
};

/// An inventory has no noise: what it counts stays as it is.
inline constexpr auto kInventoryMetrics = [] {
  auto all = std::to_array(kInventoryCounts);
  for (Metric& metric : all) metric.course = Course::fixed;
  return all;
}();
/// The conditions of the inventory itself.
inline constexpr ConditionSpec kInventoryOwnConditions[] = {
    {.name = "kernel", .meaning = "release of the running kernel"},
    {.name = "operating_system",
     .meaning = "name of the distribution, where /etc/os-release reports it",
     .recorded = Recorded::if_reported},
    {.name = "system_vendor",
     .meaning = "maker of the machine, where SMBIOS is shown",
     .recorded = Recorded::if_reported},
    {.name = "product", .meaning = "model of the machine, where SMBIOS is shown", .recorded = Recorded::if_reported},
    {.name = "product_serial",
     .meaning = "serial number of the machine, where SMBIOS is shown and readable (root)",
     .recorded = Recorded::if_reported},
    {.name = "board", .meaning = "model of the main board, where SMBIOS is shown", .recorded = Recorded::if_reported},
    {.name = "bios_vendor",
     .meaning = "maker of the firmware, where SMBIOS is shown",
     .recorded = Recorded::if_reported},
    {.name = "bios_version",
     .meaning = "version of the firmware, where SMBIOS is shown",
     .recorded = Recorded::if_reported},
    {.name = "bios_date", .meaning = "date of the firmware, where SMBIOS is shown", .recorded = Recorded::if_reported},
    {.name = "model", .meaning = "model of a cpu, gpu or drive, where it is known", .recorded = Recorded::if_reported},
    {.name = "microcode",
     .meaning = "microcode revision of a cpu, where the kernel shows it",
     .recorded = Recorded::if_reported},
    {.name = "memory_type",
     .meaning = "kind of a dimm (DDR5), where SMBIOS reports it",
     .recorded = Recorded::if_reported},
    {.name = "manufacturer", .meaning = "maker of a dimm, where SMBIOS reports it", .recorded = Recorded::if_reported},
    {.name = "part",
     .meaning = "part number of a dimm or of a gpu's board, where it is known",
     .recorded = Recorded::if_reported},
    {.name = "serial",
     .meaning = "serial number of a dimm, gpu or drive, where it is known",
     .recorded = Recorded::if_reported},
    {.name = "rotational",
     .meaning = "whether the kernel treats a drive as a spinning one, where it has a queue",
     .recorded = Recorded::if_present},
    {.name = "firmware",
     .meaning = "firmware version of a drive, nic or gpu (its GSP), where it is known",
     .recorded = Recorded::if_reported},
    {.name = "driver",
     .meaning = "kernel driver of a nic or gpu, where one is bound",
     .recorded = Recorded::if_present},
    {.name = "link",
     .meaning = "up or down: whether a nic has a link, where there is a nic",
     .recorded = Recorded::if_present},
    {.name = "mac_address",
     .meaning = "hardware address of a nic, where it has a network interface",
     .recorded = Recorded::if_present},
    {.name = "rdma_device", .meaning = "RDMA device of a nic, where it has one", .recorded = Recorded::if_present},
    {.name = "pci_address",
     .meaning = "PCI function of a drive, nic or gpu, where it sits on PCI",
     .recorded = Recorded::if_present},
    {.name = "pci_id",
     .meaning = "PCI vendor and device id of a gpu, nic or drive, where it sits on PCI",
     .recorded = Recorded::if_present},
    {.name = "numa_node",
     .meaning = "memory node next to a gpu, nic or drive, where the firmware reports it",
     .recorded = Recorded::if_reported},
    {.name = "nvml_library",
     .meaning = "path of the NVML that named the gpus, or \"absent: \" and why there is none, where it "
                "was asked",
     .recorded = Recorded::if_asked},
    {.name = "driver_version",
     .meaning = "version of the NVIDIA driver, where there is one",
     .recorded = Recorded::if_present},
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
