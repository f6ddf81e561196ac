// port_choice: rules for "auto", and messages that show the table.
#include "probes/verbs/port_choice.h"

#include <algorithm>
#include <ranges>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/whole_number.h"

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

/// The NUMA node of "numa:1"; nothing for other text.
std::optional<int> node_of(std::string_view wanted) {
  constexpr std::string_view kPrefix = "numa:";
  if (!wanted.starts_with(kPrefix)) return std::nullopt;
  const auto node = whole_number<int>(wanted.substr(kPrefix.size()));
  if (!node || *node < 0)
    throw BadParameter(fmt::format("device: '{}' is not numa: and the number of a NUMA node", wanted));
  return node;
}

std::string listed(const std::vector<PortFacts>& ports) {
  std::vector<std::string> words;
  for (const auto& port : ports) {
    const std::string node = port.numa_node ? fmt::format(" on NUMA node {}", *port.numa_node) : "";
    words.push_back(fmt::format("{} {}{}", port.name(), port.state.empty() ? "without a state" : port.state, node));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string table(const PortFacts& port) {
  std::vector<std::string> words;
  for (const auto& gid : port.gids)
    words.push_back(fmt::format("{} {} {}", gid.index, gid.type.empty() ? "GID" : gid.type, gid_words(gid.value)));
  return words.empty() ? "no entry" : fmt::format("{}", fmt::join(words, ", "));
}

/// Better GIDs have higher ranks.
int rank_of(const Gid& gid) {
  if (gid.type != "RoCE v2") return 0;
  if (holds_ipv4(gid.value)) return 3;
  return is_link_local(gid.value) ? 1 : 2;
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

std::vector<PortFacts> candidate_ports(const std::vector<PortFacts>& ports, std::string_view wanted) {
  if (ports.empty()) throw Skip("no RDMA device under /sys/class/infiniband: no adapter, or its driver is not loaded");
  const auto node = node_of(wanted);
  if (wanted != "auto" && !node) {
    const auto named = std::ranges::find_if(
        ports, [&](const PortFacts& port) { return port.name() == wanted || port.device == wanted; });
    if (named == ports.end())
      throw std::runtime_error(fmt::format("device: '{}' is not here; there is {}", wanted, listed(ports)));
    if (!named->active())
      throw std::runtime_error(fmt::format("device: {} is not active; there is {}", named->name(), listed(ports)));
    return {*named};
  }
  const auto rate = [](const PortFacts& of) { return of.rate ? of.rate->count : 0; };
  std::vector<PortFacts> fastest;
  for (const auto& port : ports) {
    if (!port.active() || (node && port.numa_node != node)) continue;
    if (!fastest.empty() && rate(port) > rate(fastest.front())) fastest.clear();
    if (fastest.empty() || rate(port) == rate(fastest.front())) fastest.push_back(port);
  }
  if (fastest.empty() && node)
    throw std::runtime_error(
        fmt::format("device: no port of NUMA node {} is active; there is {}", *node, listed(ports)));
  if (fastest.empty()) throw Skip(fmt::format("no RDMA port is active; there is {}", listed(ports)));
  return fastest;
}

const Gid& choose_gid(const PortFacts& port, std::string_view wanted) {
  if (wanted != "auto") {
    const auto index = whole_number<int>(wanted);
    if (!index) throw BadParameter(fmt::format("gid_index: '{}' is neither a number nor auto", wanted));
    const auto found = std::ranges::find(port.gids, *index, &Gid::index);
    if (found != port.gids.end()) return *found;
    throw std::runtime_error(
        fmt::format("gid_index: {} of {} holds no GID; its table: {}", *index, port.name(), table(port)));
  }
  if (port.gids.empty())
    throw std::runtime_error(
        fmt::format("{} has an empty GID table: its network interface has no address or is down", port.name()));
  if (port.link_layer != "Ethernet") return port.gids.front();
  return *std::ranges::max_element(port.gids, {}, rank_of);
}

int choose_mtu(int mine, int other, std::string_view wanted) {
  const int both = std::min(mine, other);
  if (wanted == "auto") return both;
  const auto asked = whole_number<int>(wanted);
  if (!asked || *asked > both) {
    throw std::runtime_error(fmt::format(
        "mtu: {} B is more than the ports have, {} and {} B; raise the MTU of their interfaces", wanted, mine, other));
  }
  return *asked;
}

}  // namespace assay::verbs
