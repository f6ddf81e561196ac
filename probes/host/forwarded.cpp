// forwarded: layout of linux/if_link.h; the kernel's commits 69ae6ad2ff37 (counters of the slow path and of
// all packets) and 370bad0f9a52 (the same of the ports of virtual functions); ovs-vswitchd(8), dpctl/dump-flows;
// tc/tc_util.c and tc/f_flower.c of iproute2 6.1 (2026-11-28), print_tcstats_basic_hw.
#include "probes/host/forwarded.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <nlohmann/json.hpp>

#include "probes/core/child.h"
#include "probes/core/json_io.h"
#include "probes/core/machine_tree.h"
#include "probes/core/netlink.h"

namespace assay::host {
namespace {

constexpr Seconds kAnswersWithin = {20};  // the main thread of Open vSwitch answers, which may forward as well
constexpr std::size_t kMostDatapaths = 16;
constexpr std::size_t kMostPlaces = 1024;  // representors of some hundred virtual functions, and room

using Parts = std::map<std::string, Forwarded>;

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

Parts read_ports() {
  const Descriptor socket = netlink_socket(NETLINK_ROUTE);
  if (!socket) return {};
  if_stats_msg head = {};
  head.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64) | IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_OFFLOAD_XSTATS);
  const auto bodies =
      dump(socket, RTM_GETSTATS, {reinterpret_cast<const char*>(&head), sizeof head}, sizeof(if_stats_msg));
  return bodies ? port_counters(*bodies) : Parts{};
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

/// The output of a program; nothing if it fails.
std::optional<std::string> ask(const std::string& program, const std::vector<std::string>& words) {
  const auto outcome = run_child(program, words, kAnswersWithin);
  if (outcome.end != ChildEnd::exited || outcome.code != 0) return std::nullopt;
  return outcome.output;
}

/// Empty if Open vSwitch does not run or cannot be understood.
std::optional<Parts> read_flows() {
  const char* const place = std::getenv("OVS_RUNDIR");
  if (!MachineTree("/").exists(std::string(place == nullptr ? "/var/run/openvswitch" : place) + "/ovs-vswitchd.pid"))
    return std::nullopt;
  const auto program = find_program("ovs-appctl");
  if (!program) return std::nullopt;
  const auto datapaths = ask(*program, {"dpctl/dump-dps"});
  if (!datapaths) return std::nullopt;
  Parts all;
  const auto names = lines_in(*datapaths);
  if (names.size() > kMostDatapaths) return std::nullopt;
  for (const auto& name : names) {
    const auto text = ask(*program, {"dpctl/dump-flows", "-m", std::string(name)});
    const auto flows = text ? flow_counters(*text, name) : std::nullopt;
    if (!flows) return std::nullopt;
    all.insert(flows->begin(), flows->end());
  }
  return all;
}

/// Empty if there is no filter of flower, or tc cannot be understood.
std::optional<Parts> read_filters() {
  const auto program = find_program("tc");
  const auto qdiscs = program ? ask(*program, {"-j", "qdisc", "show"}) : std::nullopt;
  const auto places = filter_places(qdiscs.value_or(""));
  if (places.size() > kMostPlaces) return std::nullopt;
  Parts all;
  for (const auto& place : places) {
    std::vector<std::string> words = {"-j", "-s"};
    words.insert(words.end(), place.begin(), place.end());
    const auto text = ask(*program, words);
    const auto filters = text ? filter_counters(*text, fmt::format("{}", fmt::join(place, " "))) : std::nullopt;
    if (!filters) return std::nullopt;
    all.insert(filters->begin(), filters->end());
  }
  return all.empty() ? std::nullopt : std::optional(std::move(all));
}

/// The whole number in a field; 0 if it has none.
std::uint64_t count_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

/// The counters of the options of one filter; nothing if they do not say whose its packets are.
std::optional<Forwarded> forwarded_by(const nlohmann::json& options) {
  const auto actions = options.find("actions");
  if (actions == options.end() || !actions->is_array() || actions->empty() || !actions->front().contains("stats"))
    return Forwarded{};  // nothing counts at a filter without an action
  const auto& stats = actions->front().at("stats");
  const Load all{.bytes = count_in(stats, "bytes"), .packets = count_in(stats, "packets")};
  const Load hardware{.bytes = count_in(stats, "hw_bytes"), .packets = count_in(stats, "hw_packets")};
  if (options.value("skip_sw", false)) return Forwarded{.hardware = all, .software = {}};
  if (!stats.contains("hw_packets") && options.value("in_hw", false) && all.packets > 0) return std::nullopt;
  if (hardware.bytes > all.bytes || hardware.packets > all.packets) return Forwarded{.hardware = {}, .software = all};
  return Forwarded{.hardware = hardware,
                   .software = {.bytes = all.bytes - hardware.bytes, .packets = all.packets - hardware.packets}};
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

Parts port_counters(std::span<const std::string> bodies) {
  Parts ports;
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

std::optional<Parts> flow_counters(std::string_view text, std::string_view prefix) {
  constexpr std::string_view kPackets = ", packets:", kActions = ", actions:";
  Parts flows;
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

std::optional<Parts> filter_counters(std::string_view text, std::string_view prefix) {
  const auto filters = parse_json(text, "tc filter show");
  if (!filters || !filters->is_array()) return std::nullopt;
  Parts parts;
  for (const auto& filter : *filters) {
    if (!filter.is_object() || filter.value("kind", "") != "flower") continue;
    const auto options = filter.find("options");
    if (options == filter.end() || !options->contains("handle")) continue;  // a heading of its priority
    const auto forwarded = forwarded_by(*options);
    if (!forwarded) return std::nullopt;
    parts[fmt::format("{} {} {} {}", prefix, count_in(filter, "chain"), count_in(filter, "pref"),
                      count_in(*options, "handle"))] = *forwarded;
  }
  return parts;
}

std::vector<std::vector<std::string>> filter_places(std::string_view qdiscs) {
  const auto all = parse_json(qdiscs, "tc qdisc show");
  std::vector<std::vector<std::string>> places;
  if (!all || !all->is_array()) return places;
  const auto add_place = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"filter", "show"});
    if (std::ranges::find(places, words) == places.end()) places.push_back(std::move(words));
  };
  for (const auto& one : *all) {
    const std::string kind = one.value("kind", ""), device = one.value("dev", "");
    if (kind != "clsact" && kind != "ingress") continue;
    for (const char* const end : {"ingress", "egress"}) {
      const auto block = count_in(one, fmt::format("{}_block", end).c_str());
      if (block > 0) add_place({"block", std::to_string(block)});
      if (block == 0 && (kind == "clsact" || end == std::string_view("ingress"))) add_place({"dev", device, end});
    }
  }
  return places;
}

ForwardCounters read_forwarding(std::string_view wanted) {
  if (wanted == "auto" || wanted == "ports") {
    if (auto ports = read_ports(); !ports.empty()) return {.source = "ports", .parts = std::move(ports)};
  }
  if (wanted == "auto" || wanted == "ovs") {
    if (auto flows = read_flows()) return {.source = "ovs", .parts = std::move(*flows)};
  }
  if (wanted == "auto" || wanted == "tc") {
    if (auto filters = read_filters()) return {.source = "tc", .parts = std::move(*filters)};
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
