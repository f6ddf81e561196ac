// port_choice: rules for "auto", and messages that show the table.
#include "probes/verbs/port_choice.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/probe.h"

namespace assay {
namespace {

std::optional<int> whole(std::string_view text) {
  int value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string listed(const std::vector<PortFacts>& ports) {
  std::vector<std::string> words;
  for (const auto& port : ports) words.push_back(fmt::format("{} {}", port.name(), port.state.empty() ? "without a state" : port.state));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string table(const PortFacts& port) {
  std::vector<std::string> words;
  for (const auto& gid : port.gids) words.push_back(fmt::format("{} {} {}", gid.index, gid.type.empty() ? "GID" : gid.type, gid_words(gid.value)));
  return words.empty() ? "no entry" : fmt::format("{}", fmt::join(words, ", "));
}

/// Better GIDs have higher ranks.
int rank_of(const Gid& gid) {
  if (gid.type != "RoCE v2") return 0;
  if (holds_ipv4(gid.value)) return 3;
  return is_link_local(gid.value) ? 1 : 2;
}

}  // namespace

const PortFacts& choose_port(const std::vector<PortFacts>& ports, std::string_view wanted) {
  if (ports.empty()) throw Skip("no RDMA device under /sys/class/infiniband: no adapter, or its driver is not loaded");
  if (wanted != "auto") {
    const auto named = std::ranges::find_if(ports, [&](const PortFacts& port) { return port.name() == wanted || port.device == wanted; });
    if (named == ports.end()) throw std::runtime_error(fmt::format("device: '{}' is not here; there is {}", wanted, listed(ports)));
    if (!named->active()) throw std::runtime_error(fmt::format("device: {} is not active; there is {}", named->name(), listed(ports)));
    return *named;
  }
  const PortFacts* best = nullptr;
  for (const auto& port : ports) {
    const auto rate = [](const PortFacts& of) { return of.rate ? of.rate->count : 0; };
    if (port.active() && (best == nullptr || rate(port) > rate(*best))) best = &port;
  }
  if (best == nullptr) throw Skip(fmt::format("no RDMA port is active; there is {}", listed(ports)));
  return *best;
}

const Gid& choose_gid(const PortFacts& port, std::string_view wanted) {
  if (wanted != "auto") {
    const auto index = whole(wanted);
    if (!index) throw BadParameter(fmt::format("gid_index: '{}' is neither a number nor auto", wanted));
    const auto found = std::ranges::find(port.gids, *index, &Gid::index);
    if (found != port.gids.end()) return *found;
    throw std::runtime_error(fmt::format("gid_index: {} of {} holds no GID; its table: {}", *index, port.name(), table(port)));
  }
  if (port.gids.empty()) throw std::runtime_error(fmt::format("{} has an empty GID table: its network interface has no address or is down", port.name()));
  if (port.link_layer != "Ethernet") return port.gids.front();
  return *std::ranges::max_element(port.gids, {}, rank_of);
}

int choose_mtu(int mine, int other, std::string_view wanted) {
  const int both = std::min(mine, other);
  if (wanted == "auto") return both;
  const auto asked = whole(wanted);
  if (!asked || *asked > both) {
    throw std::runtime_error(fmt::format("mtu: {} B is more than the ports have, {} and {} B; raise the MTU of their interfaces", wanted, mine, other));
  }
  return *asked;
}

}  // namespace assay
