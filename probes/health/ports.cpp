// health_ports: connections of a node's network ports: link, rate, addresses, and the switch that LLDP reports.
#include <map>
#include <memory>

#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "probes/core/child.h"
#include "probes/core/link_modes.h"
#include "probes/core/lldp.h"
#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/health/nics.h"

namespace assay::health {
namespace {

constexpr double kBitsPerByte = 8;
constexpr std::int64_t kUnknownSpeed = UINT32_MAX;  // unknown, of some drivers; others write -1
constexpr Seconds kLldpDeadline = {10};             // a daemon on this machine answers at once
constexpr std::size_t kMostLldp = 8 << 20;          // B; a neighbour has about 2 kB

constexpr Parameter kParameters[] = {
    parameter("interface", "", "all", "ports to look at, in a row with commas; all: every one but the loopback"),
    parameter("lldp", "", "lldpctl", "lldpd's client, by name or path; empty: LLDP is not asked"),
    parameter("root", "", "/", "where /sys of the machine is; for tests"),
};
constexpr Metric kMetrics[] = {
    higher("link_up", "1", "1 when the port has a carrier, 0 when it has none or is not there"),
    higher("link_rate", "B/s",
           "signalling rate of one direction in bytes (bits over 8), where the link is up and the driver reports it",
           Recorded::if_reported),
    higher("link_rate_max", "B/s",
           "the same of the fastest mode that port and driver support, where the driver lists its modes",
           Recorded::if_reported),
};
constexpr ConditionSpec kConditions[] = {
    if_present("address", "first address of the port that is not link-local, IPv4 before IPv6, if it has one"),
    if_present("addresses", "all of those, if it has one"),
    if_reported("mtu", "largest packet in B, where the kernel reports it"),
    if_present("mac_address", "hardware address, if there is one"),
    if_present("switch", "name of the system that LLDP reports at the port, where lldpd runs; several with commas"),
    if_reported("switch_port", "port of that system, where lldpd runs and it says"),
    {.name = "lldp", .meaning = "program that reported the neighbours, or \"absent: \" and the reason"},
};
constexpr ProbeSpec kSpec{
    .name = "health_ports",
    .measures = "Link, rate, addresses and LLDP neighbour of the network ports of a node.",
    .method =
        "Reads /sys/class/net and the kernel's list of addresses, and asks lldpd's client for the neighbours; nothing "
        "is changed. A named port that is not there has a link_up of 0. Unreported values are absent.",
    .source = "Linux Documentation/ABI/testing/sysfs-class-net; getifaddrs(3); IEEE 802.1AB; lldpctl(8) of lldpd.",
    .needs = "Linux; lldpd for the neighbours",
    .typical = {1},
    .deadline = {60},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0}};

std::vector<std::string> ports_in(const std::string& wanted, const MachineTree& tree) {
  if (wanted == "all") {
    std::vector<std::string> names;
    for (const auto& name : tree.names("sys/class/net")) {
      if (name != "lo" && tree.exists("sys/class/net/" + name + "/mtu")) names.push_back(name);
    }
    return names;
  }
  return port_names(wanted);
}

/// Addresses by port: IPv4 first, none that is link-local.
std::map<std::string, std::vector<std::string>> addresses_of_machine() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) throw std::system_error(errno, std::generic_category(), "the addresses cannot be listed");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::map<std::string, std::vector<std::string>> addresses;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
      char host[NI_MAXHOST] = {};
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (getnameinfo(one->ifa_addr, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
        continue;  // it has no numeric form
      const std::string text = host;
      if (!text.starts_with("fe80:") && !text.starts_with("169.254.")) addresses[one->ifa_name].push_back(text);
    }
  }
  return addresses;
}

struct LldpAnswer {
  std::vector<Neighbour> neighbours;
  std::string from;  ///< the program, or why there are no neighbours
};

LldpAnswer ask_lldp(const std::string& client) {
  if (client.empty()) return {.neighbours = {}, .from = "absent: not asked"};
  const auto program = client.starts_with('/') ? std::optional(client) : find_program(client);
  if (!program) return {.neighbours = {}, .from = fmt::format("absent: there is no {}", client)};
  const ChildOutcome ended =
      run_child(*program, {"-f", "json"}, kLldpDeadline, {.max_output = kMostLldp, .stop = stop_requested});
  if (ended.end != ChildEnd::exited || ended.code != 0)
    return {.neighbours = {}, .from = fmt::format("absent: {} ended with exit code {}", *program, ended.code)};
  auto neighbours = read_lldp(ended.output, *program);
  if (!neighbours) return {.neighbours = {}, .from = "absent: " + neighbours.error().text()};
  return {.neighbours = std::move(*neighbours), .from = *program};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

void record_link(const MachineTree& tree, const Subject& nic, Recorder& record) {
  const std::string directory = "sys/class/net/" + nic.id;
  const bool up = tree.number(directory + "/carrier") == 1;
  record.measurement("link_up", up ? 1 : 0, nic);
  const auto speed = tree.number(directory + "/speed");
  if (up && speed && *speed > 0 && *speed < kUnknownSpeed)
    record.measurement("link_rate", static_cast<double>(*speed) * 1e6 / kBitsPerByte, nic);
  if (const auto most = tree.is_this_machine() ? fastest_mode_of(nic.id) : std::nullopt)
    record.measurement("link_rate_max", most->count, nic);
  if (const auto mtu = tree.number(directory + "/mtu")) record.condition("mtu", *mtu, nic);
  if (const auto mac = tree.text(directory + "/address")) record.condition("mac_address", *mac, nic);
}

void record_neighbours(const std::vector<Neighbour>& all, const Subject& nic, Recorder& record) {
  std::vector<std::string> systems, ports;
  for (const auto& one : all) {
    if (one.interface != nic.id || one.system.empty()) continue;
    systems.push_back(one.system);
    if (!one.system_port.empty()) ports.push_back(one.system_port);
  }
  if (!systems.empty()) record.condition("switch", joined(systems), nic);
  if (!ports.empty()) record.condition("switch_port", joined(ports), nic);
}

void measure(const Parameters& given, Recorder& record) {
  const MachineTree tree(given.text("root"));
  const auto names = ports_in(given.text("interface"), tree);
  if (names.empty()) throw Skip("the machine has no network port but the loopback");
  const auto addresses =
      tree.is_this_machine() ? addresses_of_machine() : std::map<std::string, std::vector<std::string>>{};
  const LldpAnswer answer = ask_lldp(given.text("lldp"));
  record.condition("lldp", answer.from);
  for (const auto& name : names) {
    const Subject nic{.kind = "nic", .id = name};
    record_link(tree, nic, record);
    if (const auto own = addresses.find(name); own != addresses.end()) {
      record.condition("address", own->second.front(), nic);
      record.condition("addresses", joined(own->second), nic);
    }
    record_neighbours(answer.neighbours, nic, record);
  }
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
