// affinity: the shortest way of all pairs.
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
