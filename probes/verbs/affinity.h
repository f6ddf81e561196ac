// affinity: how near ports, GPUs and NUMA nodes are to each other, and which of them belong together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/cuda/driver.h"
#include "probes/verbs/port_facts.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::verbs {

/// How near two PCI functions are, nearest first. same_switch: below one root port, so that packets between them need
/// not pass the processor (nvidia-smi's PIX and PXB); same_root: below one host bridge (PHB); same_numa_node,
/// other_numa_node: on unlike host bridges (NODE, SYS); unknown: the kernel does not report enough.
enum class Nearness { same_switch, same_root, same_numa_node, other_numa_node, unknown };

/// "same_switch", "same_root", "same_numa_node", "other_numa_node" or "unknown".
std::string_view to_string(Nearness nearness);

/// The way between two PCI functions.
struct PciWay {
  Nearness nearness = Nearness::unknown;
  int bridges = 0;  ///< PCI bridges on it, as the kernel shows them; host bridges are not counted

  auto operator<=>(const PciWay&) const = default;
};

/// The way between the functions at addresses `a` and `b` under sys/bus/pci/devices, from where their directories lie
/// and from their numa_node.
PciWay pci_way(const MachineTree& tree, const std::string& a, const std::string& b);

/// The NUMA node of the function at `address`; nothing if the kernel does not know it.
std::optional<int> pci_numa_node(const MachineTree& tree, const std::string& address);

/// A port, and if the payload is in a GPU's memory, that GPU.
struct PortAndGpu {
  PortFacts port;
  std::optional<cuda::DriverGpu> gpu = {};
  PciWay way = {};  ///< between the two
};

/// The port that `device` names (see candidate_ports()) and the GPU that `gpu` names: "affine", a UUID, a PCI bus id,
/// or two of these for rank 0 and rank 1, separated by a comma. Where either leaves a choice it is the fastest ports,
/// of these the pair with the shortest way (by nearness, then by bridges), and among equals the first port and then the
/// first GPU by name. `gpus` is not empty. Throws as candidate_ports() and gpu_named(), and BadParameter for more than
/// two GPUs.
PortAndGpu choose_port_and_gpu(const MachineTree& tree, const std::vector<PortFacts>& ports, std::string_view device,
                               const std::vector<cuda::DriverGpu>& gpus, std::string_view gpu, int rank);

}  // namespace assay::verbs
