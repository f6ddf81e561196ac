// health_links: early signs of bad links: errors, losses of carrier, error correction, and light of modules.
#include <algorithm>
#include <chrono>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/health/ethtool_netlink.h"
#include "probes/health/link_counters.h"
#include "probes/health/nics.h"
#include "probes/health/optics.h"
#include "probes/health/pcie.h"

namespace assay::health {
namespace {

constexpr Parameter kParameters[] = {
    parameter("interface", "", "all", "ports to look at, in a row with commas; all: every one with hardware behind it"),
    parameter("duration", "s", "10s", "time over which corrections are counted", "2s"),
    parameter("root", "", "/",
              "where /sys of the machine is; for tests, which have saved counters and modules in its /saved"),
};

/// A counter since the driver was loaded.
constexpr Metric counted(std::string_view name, std::string_view meaning, Recorded recorded,
                         MetricKind kind = MetricKind::figure) {
  return {.name = name,
          .unit = "1",
          .better = Better::lower,
          .meaning = meaning,
          .kind = kind,
          .course = Course::since_boot,
          .recorded = recorded};
}

constexpr Metric kMetrics[] = {
    counted("carrier_losses", "times that the port lost its carrier, where the kernel counts them",
            Recorded::if_reported),
    counted("crc_errors", "packets received with a bad checksum, where the driver counts them", Recorded::if_reported),
    counted("pcs_symbol_errors", "symbol errors that were not corrected, where the driver counts them",
            Recorded::if_reported),
    counted("fec_uncorrectable", "blocks that error correction could not repair, where the driver counts them",
            Recorded::if_reported, MetricKind::fault),
    counted("symbol_errors", "symbol errors of the RDMA port, if it counts them", Recorded::if_reported),
    counted("link_recoveries", "times that the RDMA port trained its link again, if it counts them",
            Recorded::if_reported),
    counted("link_downed", "times that this failed and the link went down, where the RDMA port counts them",
            Recorded::if_reported, MetricKind::fault),
    counted("receive_errors", "packets with an error that the RDMA port received, if it counts them",
            Recorded::if_reported),
    counted("link_integrity_errors", "times that the RDMA port exceeded its limit of local errors, if it counts them",
            Recorded::if_reported, MetricKind::fault),
    counted("buffer_overruns", "times that the RDMA port's buffers overran in a row, if it counts them",
            Recorded::if_reported, MetricKind::fault),
    counted("rnr_retries", "times that it gave up on a receiver that was not ready, where the RDMA port counts them",
            Recorded::if_occurred, MetricKind::fault),
    lower("corrected_rate", "1/s",
          "bits, or blocks, that error correction repaired a second, where the driver counts them",
          Recorded::if_reported),
    lower("lane_corrected_rate", "1/s", "the same of one lane, where the driver counts it", Recorded::if_reported),
    higher("rx_power", "W", "light that a lane receives, where an optical module with light reports it",
           Recorded::if_reported),
    higher("tx_power", "W", "light that a lane sends, where an optical module with light reports it",
           Recorded::if_reported),
    lower("tx_bias", "1",
          "laser current of a lane over the module's alarm threshold, where an optical module reports it",
          Recorded::if_reported),
    with_course(
        Course::fixed,
        lower("lanes_near_alarm", "1",
              "lanes whose light is within 1 dB of the module's alarm threshold or beyond, where an optical module "
              "reports it",
              Recorded::if_reported)),
    fault("optics_alarms", "alarms that an optical module raises while the link is up, if there is one",
          Recorded::if_present),
    counted("pcie_errors_corrected", "corrected errors of its PCIe link, where the kernel reports them (AER)",
            Recorded::if_reported),
    counted("pcie_errors_uncorrected", "uncorrected errors of its PCIe link, where the kernel reports them (AER)",
            Recorded::if_reported),
    counted("pcie_errors_nonfatal", "those of them that left the link usable", Recorded::if_reported),
    counted("pcie_errors_fatal", "those of them that needed a reset of the link", Recorded::if_reported),
};

constexpr ConditionSpec kConditions[] = {
    if_present("link", "up or down, of a port if it is a network interface"),
    if_reported("corrected_unit", "unit of corrected_rate, bits or blocks, where the driver counts either"),
    if_occurred("error_correction", "\"absent: \" and why corrections are not counted, if they are not"),
    if_present("module", "form, vendor and part of the module, if there is one, else \"absent: \" and why"),
    if_reported("module_serial", "serial number of the module, if reported"),
    if_reported("module_temperature_c", "temperature of the module, if reported"),
    if_occurred("module_alarms", "which alarms it raises, if it does"),
    if_present("pci_address", "PCI function of a port, if it is on PCI"),
};

constexpr ProbeSpec kSpec{
    .name = "health_links",
    .revision = 2,
    .measures = "Errors, losses of carrier, corrections and light of the network and RDMA ports of a node.",
    .method =
        "Reads the ports' counters, which run since the driver was loaded, and twice those of forward error "
        "correction, for their rate while nothing else is sent. Asks a module that is plugged in for its memory, as "
        "`ethtool -m` does; reading clears the module's latched flags, which it raises again while their cause lasts. "
        "Light below -30 dBm is dark and left out. Links that are down have counters and no light. Nothing is sent.",
    .source =
        "InfiniBand Architecture 1.4, PortCounters; Linux Documentation/ABI/testing/sysfs-class-net, "
        "stable/sysfs-class-infiniband, networking/ethtool-netlink.rst and the drivers mlx5 and bnxt; SFF-8636 2.11; "
        "CMIS 5.2.",
    .needs = "network or RDMA ports with hardware; root for modules",
    .typical = {15},
    .deadline = {300},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0}};

/// Where counters and modules are asked.
struct Sources {
  std::function<std::vector<std::pair<std::string, std::int64_t>>(const std::string&)> counters;
  std::function<FecStatistics(const std::string&)> fec;
  ModuleReader module;
};

/// Files of a test: "eth0.counters" with a name and a number a line, "eth0.module-lower", "eth0.module-00", ….
Sources saved_sources(const MachineTree& tree) {
  return {.counters =
              [&tree](const std::string& port) {
                std::istringstream lines(tree.text(fmt::format("saved/{}.counters", port)).value_or(""));
                std::vector<std::pair<std::string, std::int64_t>> all;
                std::int64_t value = 0;
                for (std::string name; lines >> name >> value;) all.emplace_back(name, value);
                return all;
              },
          .fec = [](const std::string&) { return FecStatistics{.absence = "it was not saved"}; },
          .module =
              [&tree](const std::string& port, ModulePlace place) {
                constexpr std::size_t kMost = 128;
                const std::string which = place.upper ? fmt::format("{:02x}", place.page) : "lower";
                const auto bytes = tree.bytes(fmt::format("saved/{}.module-{}", port, which), kMost);
                return ModuleAnswer{.bytes = bytes.value_or(""), .absence = bytes ? "" : "it was not saved"};
              }};
}

/// A network port as it is read.
struct Port {
  Subject subject;
  bool up = false;
  FecStatistics fec;
  LinkCounters counters;
  std::chrono::steady_clock::time_point taken;
};

std::vector<std::string> ports_of(const std::string& wanted, const MachineTree& tree) {
  if (wanted != "all") return port_names(wanted);
  std::vector<std::string> names;
  for (const Nic& nic : read_nics(tree)) {
    if (tree.exists("sys/class/net/" + nic.name)) names.push_back(nic.name);
  }
  return names;
}

LinkCounters counters_of(const MachineTree& tree, const Sources& sources, const std::string& name,
                         const FecStatistics& fec) {
  const auto named = sources.counters(name);
  return read_link_counters(tree, name, named, fec);
}

void record_totals(const LinkCounters& counters, const Subject& subject, Recorder& record) {
  for (const auto& [name, value] : counters.totals) record.measurement(name, value, subject);
}

/// Corrections a second between two readings; a counter that was reset meanwhile has none.
void record_rates(const Port& first, const Port& port, Recorder& record) {
  const auto& before = first.counters;
  const auto& after = port.counters;
  const double seconds = std::chrono::duration<double>(port.taken - first.taken).count();
  if (!port.fec.absence.empty() && !after.corrected)
    record.condition("error_correction", "absent: " + port.fec.absence, port.subject);
  if (!port.up || !after.corrected || !before.corrected || *after.corrected < *before.corrected) return;
  record.condition("corrected_unit", std::string(after.corrects_bits ? "bits" : "blocks"), port.subject);
  record.measurement("corrected_rate", (*after.corrected - *before.corrected) / seconds, port.subject);
  for (std::size_t i = 0; i < std::min(after.corrected_by_lane.size(), before.corrected_by_lane.size()); ++i) {
    const double more = after.corrected_by_lane[i] - before.corrected_by_lane[i];
    if (more >= 0)
      record.measurement("lane_corrected_rate", more / seconds, port.subject, {{"lane", static_cast<std::int64_t>(i)}});
  }
}

void record_optics(const Optics& optics, const Subject& subject, Recorder& record) {
  if (!optics.absence.empty()) {
    record.condition("module", "absent: " + optics.absence, subject);
    return;
  }
  record.condition("module", fmt::format("{} {} {}", optics.form, optics.vendor, optics.part), subject);
  if (!optics.serial.empty()) record.condition("module_serial", optics.serial, subject);
  if (optics.temperature_c) record.condition("module_temperature_c", *optics.temperature_c, subject);
  if (!optics.alarm_names.empty()) record.condition("module_alarms", optics.alarm_names, subject);
  if (!optics.optical) return;
  record.measurement("optics_alarms", optics.alarms, subject);
  record.measurement("lanes_near_alarm",
                     static_cast<double>(std::ranges::count_if(optics.lanes, &OpticalLane::near_alarm)), subject);
  for (const OpticalLane& lane : optics.lanes) {
    const Values at = {{"lane", std::int64_t{lane.number}}};
    if (lane.rx_power_w) record.measurement("rx_power", *lane.rx_power_w, subject, at);
    if (lane.tx_power_w) record.measurement("tx_power", *lane.tx_power_w, subject, at);
    if (lane.tx_bias_share) record.measurement("tx_bias", *lane.tx_bias_share, subject, at);
  }
}

void record_pcie(const MachineTree& tree, const std::string& device, const Subject& subject, Recorder& record) {
  const auto address = tree.pci_address(device);
  if (!address) return;
  record.condition("pci_address", *address, subject);
  const PcieErrors errors = read_pcie_errors(tree, *address);
  const auto put = [&](std::string_view name, const std::optional<std::int64_t>& count) {
    if (count) record.measurement(name, static_cast<double>(*count), subject);
  };
  put("pcie_errors_corrected", errors.corrected);
  put("pcie_errors_uncorrected", errors.uncorrected());
  put("pcie_errors_nonfatal", errors.nonfatal);
  put("pcie_errors_fatal", errors.fatal);
}

std::vector<Port> read_ports(const MachineTree& tree, const Sources& sources, const std::vector<std::string>& names) {
  std::vector<Port> ports;
  for (const auto& name : names) {
    if (!tree.exists("sys/class/net/" + name)) throw Skip(fmt::format("there is no network port {}", name));
    Port port{.subject = {.kind = "nic", .id = name},
              .up = tree.number(fmt::format("sys/class/net/{}/carrier", name)) == 1,
              .fec = sources.fec(name),
              .counters = {}};
    port.counters = counters_of(tree, sources, name, port.fec);
    port.taken = std::chrono::steady_clock::now();
    ports.push_back(std::move(port));
  }
  return ports;
}

void measure(const Parameters& given, Recorder& record) {
  const MachineTree tree(given.text("root"));
  const Sources sources = tree.is_this_machine()
                              ? Sources{.counters = ethtool_counters, .fec = fec_statistics, .module = module_memory}
                              : saved_sources(tree);
  const auto names = ports_of(given.text("interface"), tree);
  const auto rdma = read_rdma_counters(tree);
  if (names.empty() && rdma.empty()) throw Skip("the machine has no network or RDMA port with hardware behind it");
  const auto before = read_ports(tree, sources, names);
  const bool corrects =
      std::ranges::any_of(before, [](const Port& port) { return port.counters.corrected && port.up; });
  if (corrects) sleep_until_stopped(std::chrono::duration<double>(given.seconds("duration").count));
  const auto after = corrects ? read_ports(tree, sources, names) : before;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Port& port = after[i];
    record.condition("link", std::string(port.up ? "up" : "down"), port.subject);
    record_totals(port.counters, port.subject, record);
    record_rates(before[i], port, record);
    if (port.up) record_optics(read_optics(sources.module, port.subject.id), port.subject, record);
    record_pcie(tree, fmt::format("sys/class/net/{}/device", port.subject.id), port.subject, record);
  }
  for (const auto& [name, counters] : rdma) record_totals(counters, {.kind = "nic", .id = name}, record);
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
