// verbs_port: every RDMA port of a node: link, addresses, counters.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/verbs/counters.h"
#include "probes/verbs/port_facts.h"

namespace assay::verbs {
namespace {

constexpr Parameter kParameters[] = {
    parameter("root", "", "/", "where /sys of the machine is; for tests"),
};
constexpr Metric kMetrics[] = {
    higher("ports_total", "1", "RDMA ports"),
    higher("ports_active", "1", "RDMA ports that are active"),
    higher("port_rate", "B/s", "signalling rate of one direction of an active port, where it reports it",
           Recorded::if_reported),
    higher("port_width", "1", "lanes of an active port, where it reports it", Recorded::if_reported),
    neither("counter", "1", "a counter of a port since it was reset, where it has any", Recorded::if_present),
};
constexpr ConditionSpec kConditions[] = {
    if_reported("port_state", "state of a port, where it reports it"),
    if_reported("physical_state", "physical state of a port, where it reports it"),
    if_reported("link_layer", "Ethernet or InfiniBand, where the port reports it"),
    if_reported("port_speed", "speed of a lane in InfiniBand's words, where the port reports it"),
    if_reported("firmware", "of the device, where it reports it"),
    if_reported("board", "board id of the device, where it reports it"),
    if_reported("node_guid", "of the device, where it reports it"),
    if_present("interface", "network interface of a port, where it has one"),
    if_present("pci_address", "of the device, where it is on PCI"),
    if_reported("numa_node", "of the device, where the kernel reports it"),
    if_present("lid", "of a port, where it has one"),
    if_present("gids", "GID table of a port as index, type and address, where it has entries"),
};
constexpr ProbeSpec kSpec{
    .name = "verbs_port",
    .measures = "Link state, rate, addresses and error counters of every RDMA port of a node.",
    .method =
        "Everything is read from /sys/class/infiniband; driver counters of a port's network interface are asked by "
        "ETHTOOL_GSTATS. A counter that a port does not have is not recorded. Counters count since the device was "
        "reset: what a measurement added is recorded by the probe that measures.",
    .source = "Linux, Documentation/ABI/stable/sysfs-class-infiniband and drivers' own lists of counters.",
    .needs = "an RDMA adapter with its driver",
    .typical = {1},
    .deadline = {60},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0}};

void record_words(Recorder& record, const Subject& port, std::string_view name, const std::string& value) {
  if (!value.empty()) record.condition(name, value, port);
}

void record_port(Recorder& record, const MachineTree& tree, const PortFacts& port) {
  const Subject subject{.kind = "nic", .id = port.name()};
  if (port.active() && port.rate) record.measurement("port_rate", port.rate->count, subject);
  if (port.active() && port.width) record.measurement("port_width", *port.width, subject);
  for (const auto& [name, value] : read_counters(tree, port))
    record.measurement("counter", static_cast<double>(value), subject, {{"counter", name}});
  record_words(record, subject, "port_state", port.state);
  record_words(record, subject, "physical_state", port.physical_state);
  record_words(record, subject, "link_layer", port.link_layer);
  record_words(record, subject, "port_speed", port.speed);
  record_words(record, subject, "firmware", port.firmware);
  record_words(record, subject, "board", port.board);
  record_words(record, subject, "node_guid", port.node_guid);
  record_words(record, subject, "interface", port.interface);
  record_words(record, subject, "pci_address", port.pci_address);
  if (port.numa_node) record.condition("numa_node", std::int64_t{*port.numa_node}, subject);
  if (port.lid) record.condition("lid", std::int64_t{*port.lid}, subject);
  std::vector<std::string> gids;
  for (const auto& gid : port.gids)
    gids.push_back(fmt::format("{} {} {}", gid.index, gid.type.empty() ? "GID" : gid.type, gid_words(gid.value)));
  record_words(record, subject, "gids", fmt::format("{}", fmt::join(gids, ", ")));
}

void measure(const Parameters& given, Recorder& record) {
  const MachineTree tree(given.text("root"));
  const auto ports = read_ports(tree);
  if (ports.empty()) throw Skip("no RDMA device under /sys/class/infiniband: no adapter, or its driver is not loaded");
  record.measurement("ports_total", static_cast<double>(ports.size()));
  record.measurement("ports_active", static_cast<double>(std::ranges::count_if(ports, &PortFacts::active)));
  for (const auto& port : ports) record_port(record, tree, port);
}

}  // namespace
}  // namespace assay::verbs

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::verbs::kSpec, assay::verbs::measure); }
