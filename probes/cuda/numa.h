// numa: the processors and the memory next to a device, and how to stay there.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>

namespace assay::cuda {

/// The NUMA node that the PCI function is attached to, from bus/pci/devices/<pci_bus_id>/numa_node under `sys`. Nothing
/// when the kernel does not know it (-1) or has no such file. `pci_bus_id` is written as Device has it.
std::optional<int> numa_node_of(std::string_view pci_bus_id, const std::string& sys = "/sys");

/// The CPUs of `node`, ascending, from devices/system/node/node<N>/cpulist under `sys`; empty when the node has none or
/// is not there.
std::vector<int> cpus_of_node(int node, const std::string& sys = "/sys");

/// Keeps the calling thread on some CPUs for as long as it lives, then lets it go where it could go before. CPUs that
/// the process may not use are left out.
class CpuBinding {
 public:
  /// Does nothing when `cpus` has none that may be used.
  explicit CpuBinding(const std::vector<int>& cpus);
  ~CpuBinding();
  CpuBinding(const CpuBinding&) = delete;
  CpuBinding& operator=(const CpuBinding&) = delete;
  /// Whether the thread is bound.
  [[nodiscard]] bool bound() const { return bound_; }

 private:
  cpu_set_t before_{};
  bool bound_ = false;
};

/// Asks the kernel to take the pages of `memory`, not touched yet and starting on a page, from `node`. False when it
/// refuses, as containers without CAP_SYS_NICE make it do; first touch from the node's CPUs then decides.
bool bind_memory(std::span<std::byte> memory, int node);

/// Share, 0..1, of pages of `memory` that lie on `node`, from up to 512 pages spread over it. Nothing when the kernel
/// does not report.
std::optional<double> share_on_node(std::span<const std::byte> memory, int node);

}  // namespace assay::cuda
