// pci_way: the tree of PCI functions as directories of sysfs show it.
#include "probes/health/pci_way.h"

#include <algorithm>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

std::string directory_of(const std::string& address) { return "sys/bus/pci/devices/" + address; }

}  // namespace

std::optional<int> pci_numa_node(const MachineTree& tree, const std::string& address) {
  const auto node = tree.number(directory_of(address) + "/numa_node");
  if (!node || *node < 0) return std::nullopt;
  return static_cast<int>(*node);
}

PciWay pci_way(const MachineTree& tree, const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return {};
  const auto from = tree.pci_route(directory_of(a)), to = tree.pci_route(directory_of(b));
  if (from.empty() || to.empty()) return {};
  const auto split = std::ranges::mismatch(from, to);
  const auto shared = static_cast<int>(split.in1 - from.begin());
  // A route is host bridge, bridges, function. Of the bridges that both share only the last one, where the ways meet,
  // is passed.
  const int last = static_cast<int>(from.size() + to.size()) - 2;
  if (shared >= 2) return {.nearness = Nearness::same_switch, .bridges = std::max(0, last - 2 * shared + 1)};
  if (shared == 1) return {.nearness = Nearness::same_root, .bridges = last - 2};
  const auto here = pci_numa_node(tree, a), there = pci_numa_node(tree, b);
  if (!here || !there) return {};
  return {.nearness = here == there ? Nearness::same_numa_node : Nearness::other_numa_node, .bridges = last - 2};
}

}  // namespace assay::health
