// health_dpu: mode, firmware and closed doors of the adapters with processors of their own.
#include <optional>
#include <string>

#include <fmt/format.h>

#include "probes/core/child.h"
#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/health/dpus.h"
#include "probes/health/nics.h"

namespace assay::health {
namespace {

constexpr Seconds kToolWithin = {20};  // it asks the firmware through a mailbox

constexpr Parameter kParameters[] = {
    parameter("root", "", "/", "directory that holds sys, for a tree saved from another machine"),
};
constexpr Metric kMetrics[] = {
    with_course(Course::fixed, neither("dpus", "1", "BlueField adapters of the node")),
    with_course(Course::fixed,
                lower("rshim_open", "1",
                      "those whose own processors the node can reach through a function on its PCI bus (RShim)",
                      Recorded::if_asked)),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "side", .meaning = "Whether the node is the host of such adapters, or is one itself: host or dpu."},
    if_present("model", "Generation of a nic."),
    if_reported("firmware", "Firmware of a nic, as its driver reports it."),
    if_reported("mode",
                "Of a nic, in force: dpu, nic or separated; of INTERNAL_CPU_MODEL and INTERNAL_CPU_OFFLOAD_ENGINE, "
                "where mlxconfig or mstconfig is on PATH (root)."),
    if_reported("rshim", "Of a nic, where the node is its host: open or closed."),
};
constexpr ProbeSpec kSpec{
    .name = "health_dpu",
    .measures = "Mode, firmware and RShim of the BlueField adapters of a node.",
    .method =
        "Finds the adapters by the ids of their network functions on the PCI bus. RShim is open where the bus has the "
        "management function of the same adapter, whether or not a driver uses it: a host whose RShim is closed has no "
        "such function. The mode is asked of mlxconfig, else mstconfig, with -e and q alone; where neither can be "
        "asked, it is absent. Nothing is changed. An adapter in another machine's BMC, and its restrictions beyond "
        "RShim, are not seen. Built and tested on artificial trees and outputs; it has run on no BlueField yet.",
    .source =
        "PCI ID Repository, vendor 15b3; NVIDIA Firmware Tools (MFT) 4.30, mlxprivhost --disable_rshim and mlxconfig; "
        "DOCA 2.9, NVIDIA BlueField Modes of Operation.",
    .needs = "NVIDIA BlueField adapters; for their mode mlxconfig or mstconfig, and root",
    .typical = {3},
    .deadline = {120},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0}};

/// What the tool says of an adapter's settings; nothing where there is none, or it fails.
std::optional<std::string> settings_of(const std::string& address) {
  for (const auto* name : {"mlxconfig", "mstconfig"}) {
    const auto program = find_program(name);
    if (!program) continue;
    const auto outcome = run_child(
        *program, {"-d", address, "-e", "q", "INTERNAL_CPU_MODEL", "INTERNAL_CPU_OFFLOAD_ENGINE"}, kToolWithin);
    if (outcome.end == ChildEnd::exited && outcome.code == 0) return outcome.output;
  }
  return std::nullopt;
}

void measure(const Parameters& given, Recorder& record) {
  const MachineTree tree(given.text("root"));
  const auto dpus = read_dpus(tree);
  if (dpus.empty())
    throw Skip(fmt::format("no network function of a BlueField is under {}/sys/bus/pci/devices",
                           given.text("root") == "/" ? "" : given.text("root")));
  const bool host = !is_dpu(tree);
  const auto nics = read_nics(tree);
  int open = 0;
  record.condition("side", std::string(host ? "host" : "dpu"));
  for (const auto& dpu : dpus) {
    Subject subject{.kind = "nic", .id = dpu.address};
    for (const auto& nic : nics) {
      if (nic.pci_address != dpu.address) continue;
      subject.id = nic.name;
      if (nic.firmware) record.condition("firmware", *nic.firmware, subject);
    }
    record.condition("model", dpu.model, subject);
    const auto settings = tree.is_this_machine() ? settings_of(dpu.address) : std::nullopt;
    if (const auto mode = settings ? mode_in(*settings) : std::nullopt) record.condition("mode", *mode, subject);
    if (host) record.condition("rshim", std::string(dpu.rshim ? "open" : "closed"), subject);
    open += dpu.rshim ? 1 : 0;
  }
  record.measurement("dpus", static_cast<double>(dpus.size()));
  if (host) record.measurement("rshim_open", open);
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
