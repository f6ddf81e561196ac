// forwarded: layout of linux/if_link.h; the kernel's commits 69ae6ad2ff37 (counters of the slow path and of
// all packets) and 370bad0f9a52 (the same of the ports of virtual functions); ovs-vswitchd(8), dpctl/dump-flows.
#include "probes/host/forwarded.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "probes/core/child.h"
#include "probes/core/machine_tree.h"
#include "probes/core/netlink.h"

namespace assay::host {
namespace {

constexpr Seconds kOvsWithin = {20};  // its main thread answers, which a switch in software forwards with
constexpr std::size_t kMostDatapaths = 16;

/// The head of rtnl_link_stats64, which every kernel has.
struct LinkStats {
  std::uint64_t packets_in, packets_out, bytes_in, bytes_out;
};

std::optional<Load> load_in(std::optional<std::string_view> stats) {
  LinkStats words = {};
  if (!stats || stats->size() < sizeof words) return std::nullopt;
  std::memcpy(&words, stats->data(), sizeof words);
  return Load{.bytes = words.bytes_in + words.bytes_out, .packets = words.packets_in + words.packets_out};
}

std::map<std::string, Forwarded> read_ports() {
  const Descriptor socket = netlink_socket(NETLINK_ROUTE);
  if (!socket) return {};
  if_stats_msg head = {};
  head.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64) | IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_OFFLOAD_XSTATS);
  const auto bodies =
      dump(socket, RTM_GETSTATS, {reinterpret_cast<const char*>(&head), sizeof head}, sizeof(if_stats_msg));
  return bodies ? port_counters(*bodies) : std::map<std::string, Forwarded>{};
}

std::vector<std::string_view> lines_in(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The output of ovs-appctl; nothing if it fails.
std::optional<std::string> ask_ovs(const std::string& program, const std::vector<std::string>& words) {
  const auto outcome = run_child(program, words, kOvsWithin);
  if (outcome.end != ChildEnd::exited || outcome.code != 0) return std::nullopt;
  return outcome.output;
}

/// Empty if Open vSwitch does not run or cannot be understood.
std::optional<std::map<std::string, Forwarded>> read_flows() {
  const char* const place = std::getenv("OVS_RUNDIR");
  if (!MachineTree("/").exists(std::string(place == nullptr ? "/var/run/openvswitch" : place) + "/ovs-vswitchd.pid"))
    return std::nullopt;
  const auto program = find_program("ovs-appctl");
  if (!program) return std::nullopt;
  const auto datapaths = ask_ovs(*program, {"dpctl/dump-dps"});
  if (!datapaths) return std::nullopt;
  std::map<std::string, Forwarded> all;
  const auto names = lines_in(*datapaths);
  if (names.size() > kMostDatapaths) return std::nullopt;
  for (const auto& name : names) {
    const auto text = ask_ovs(*program, {"dpctl/dump-flows", "-m", std::string(name)});
    const auto flows = text ? flow_counters(*text, name) : std::nullopt;
    if (!flows) return std::nullopt;
    all.insert(flows->begin(), flows->end());
  }
  return all;
}

/// The number after `word` in `line`.
std::optional<std::uint64_t> number_after(std::string_view line, std::string_view word) {
  const auto at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto* const begin = line.data() + at + word.size();
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), number);
  if (error != std::errc{} || end == line.data() + line.size() || *end != ',') return std::nullopt;
  return number;
}

/// The growth of a counter; all of it if the part is new, or began again.
Load added(const Load& before, const Load& after) {
  if (after.bytes < before.bytes || after.packets < before.packets) return after;
  return {.bytes = after.bytes - before.bytes, .packets = after.packets - before.packets};
}

void add(Load& sum, const Load& one) {
  sum.bytes += one.bytes;
  sum.packets += one.packets;
}

}  // namespace

std::map<std::string, Forwarded> port_counters(std::span<const std::string> bodies) {
  std::map<std::string, Forwarded> ports;
  for (const auto& body : bodies) {
    if_stats_msg head = {};
    if (body.size() < sizeof head) continue;
    std::memcpy(&head, body.data(), sizeof head);
    const auto attributes = std::string_view(body).substr(sizeof head);
    const auto offload = find_attribute(attributes, IFLA_STATS_LINK_OFFLOAD_XSTATS);
    const auto all = load_in(find_attribute(attributes, IFLA_STATS_LINK_64));
    const auto software = offload ? load_in(find_attribute(*offload, IFLA_OFFLOAD_XSTATS_CPU_HIT)) : std::nullopt;
    if (!all || !software) continue;
    Forwarded port{.hardware = {}, .software = *software};
    if (software->bytes <= all->bytes && software->packets <= all->packets)
      port.hardware = {.bytes = all->bytes - software->bytes, .packets = all->packets - software->packets};
    ports[std::to_string(head.ifindex)] = port;
  }
  return ports;
}

std::optional<std::map<std::string, Forwarded>> flow_counters(std::string_view text, std::string_view prefix) {
  constexpr std::string_view kPackets = ", packets:", kActions = ", actions:";
  std::map<std::string, Forwarded> flows;
  for (const auto line : lines_in(text)) {
    const auto at = line.find(kPackets);
    if (at == std::string_view::npos) continue;  // a heading
    const auto state = line.substr(at, line.find(kActions, at) - at);
    const auto packets = number_after(state, kPackets), bytes = number_after(state, ", bytes:");
    if (!packets || !bytes) return std::nullopt;
    Forwarded& flow = flows[std::string(prefix) + " " + std::string(line.substr(0, at))];
    const bool whole = state.find(", offloaded:yes") != std::string_view::npos;
    add(whole ? flow.hardware : flow.software, {.bytes = *bytes, .packets = *packets});
  }
  return flows;
}

ForwardCounters read_forwarding(std::string_view wanted) {
  if (wanted == "auto" || wanted == "ports") {
    if (auto ports = read_ports(); !ports.empty()) return {.source = "ports", .parts = std::move(ports)};
  }
  if (wanted == "auto" || wanted == "ovs") {
    if (auto flows = read_flows()) return {.source = "ovs", .parts = std::move(*flows)};
  }
  return {};
}

std::optional<double> offloaded_share(const ForwardCounters& before, const ForwardCounters& after,
                                      std::uint64_t payload) {
  if (after.source.empty() || before.source != after.source) return std::nullopt;
  Forwarded sum;
  for (const auto& [name, part] : after.parts) {
    const auto known = before.parts.find(name);
    const Forwarded earlier = known == before.parts.end() ? Forwarded{} : known->second;
    add(sum.hardware, added(earlier.hardware, part.hardware));
    add(sum.software, added(earlier.software, part.software));
  }
  const std::uint64_t bytes = sum.hardware.bytes + sum.software.bytes;
  const std::uint64_t packets = sum.hardware.packets + sum.software.packets;
  if (bytes == 0 || packets == 0 || bytes < payload) return std::nullopt;
  return std::min(static_cast<double>(sum.hardware.bytes) / static_cast<double>(bytes),
                  static_cast<double>(sum.hardware.packets) / static_cast<double>(packets));
}

}  // namespace assay::host
