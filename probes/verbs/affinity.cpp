// affinity: the tree of PCI functions as directories of sysfs show it.
#include "probes/verbs/affinity.h"

#include <algorithm>
#include <ranges>
#include <tuple>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/verbs/port_choice.h"

namespace assay::verbs {
namespace {

std::string directory_of(const std::string& address) { return "sys/bus/pci/devices/" + address; }

/// The part of `wanted` that is for `rank`.
std::string_view for_rank(std::string_view wanted, int rank) {
  std::vector<std::string_view> parts;
  for (const auto part : wanted | std::views::split(',')) parts.emplace_back(part.begin(), part.end());
  if (parts.empty() || parts.size() > 2) {
    throw BadParameter(fmt::format("gpu: '{}' is neither one GPU nor one for each of two ranks", wanted));
  }
  return parts[std::min(static_cast<std::size_t>(rank), parts.size() - 1)];
}

}  // namespace

std::string_view to_string(Nearness nearness) {
  switch (nearness) {
    case Nearness::same_switch:
      return "same_switch";
    case Nearness::same_root:
      return "same_root";
    case Nearness::same_numa_node:
      return "same_numa_node";
    case Nearness::other_numa_node:
      return "other_numa_node";
    case Nearness::unknown:
      return "unknown";
  }
  return "unknown";
}

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

PortAndGpu choose_port_and_gpu(const MachineTree& tree, const std::vector<PortFacts>& ports, std::string_view device,
                               const std::vector<cuda::DriverGpu>& gpus, std::string_view gpu, int rank) {
  const std::string_view wanted = for_rank(gpu, rank);
  const auto candidates = candidate_ports(ports, device);
  const auto choice = wanted == "affine" ? gpus : std::vector<cuda::DriverGpu>{cuda::gpu_named(gpus, wanted)};
  std::optional<PortAndGpu> best;
  const auto order = [](const PortAndGpu& one) {
    return std::make_tuple(one.way, one.port.name(), one.gpu->pci_bus_id);
  };
  for (const auto& port : candidates) {
    for (const auto& each : choice) {
      PortAndGpu one{.port = port, .gpu = each, .way = pci_way(tree, port.pci_address, each.pci_bus_id)};
      if (!best || order(one) < order(*best)) best = std::move(one);
    }
  }
  return *best;  // there is a candidate and a GPU, or a call above threw
}

}  // namespace assay::verbs
