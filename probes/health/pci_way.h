// pci_way: how near PCI functions are to each other.
#pragma once

#include <optional>
#include <string>

#include "probes/core/words.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// How near two PCI functions are, nearest first. same_switch: below one root port, so that packets between them need
/// not pass the processor (nvidia-smi's PIX and PXB); same_root: below one host bridge (PHB); same_numa_node,
/// other_numa_node: on unlike host bridges (NODE, SYS); unknown: the kernel does not report enough.
enum class Nearness { same_switch, same_root, same_numa_node, other_numa_node, unknown };

constexpr auto words_of(Nearness) { return names_as_words<Nearness>(); }

/// The way between two PCI functions.
struct PciWay {
  Nearness nearness = Nearness::unknown;
  int bridges = 0;  ///< PCI bridges on it, as the kernel shows them; host bridges are not counted

  auto operator<=>(const PciWay&) const = default;
};

/// The way between the functions at addresses `a` and `b` under sys/bus/pci/devices, from the places of
/// their directories and from their numa_node.
PciWay pci_way(const MachineTree& tree, const std::string& a, const std::string& b);

/// The NUMA node of the function at `address`; nothing if the kernel does not know it.
std::optional<int> pci_numa_node(const MachineTree& tree, const std::string& address);

}  // namespace assay::health
