// health_gpu: the state of a node's GPUs, as the NVIDIA driver and the kernel's log report it.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/health/gpu_state.h"
#include "probes/health/gpus.h"
#include "probes/health/kernel_log.h"
#include "probes/health/pcie.h"

namespace assay::health {
namespace {

constexpr Parameter kParameters[] = {
    parameter("nvml_library", "", nvml_api::kLibrary, "file name or path of NVML"),
    parameter("kernel_log", "", "/dev/kmsg", "the kernel's log: the device, or a file saved from dmesg"),
    parameter("root", "", "/", "where /sys of the machine is; for tests"),
};

/// A count that gets better as it falls.
constexpr Metric bad(std::string_view name, std::string_view meaning, Recorded recorded,
                     Course course = Course::each_run) {
  return with_course(course, lower(name, "1", meaning, recorded));
}
/// A count that gets better as it rises.
constexpr Metric good(std::string_view name, std::string_view meaning, Recorded recorded,
                      Course course = Course::each_run) {
  return with_course(course, higher(name, "1", meaning, recorded));
}

constexpr Metric kMetrics[] = {
    good("gpus", "GPUs of the node that answer the driver", Recorded::always, Course::fixed),
    fault("query_errors", "queries that the driver answered with an error, as for a lost GPU, if there is a GPU",
          Recorded::if_present),
    bad("facts_missing", "metrics that another GPU of the node reports and this one does not, if there is a GPU",
        Recorded::if_present, Course::fixed),
    bad("ecc_corrected", "corrected memory errors since the driver was loaded, where ECC is on", Recorded::if_present,
        Course::since_boot),
    fault("ecc_uncorrected", "uncorrected memory errors since the driver was loaded, where ECC is on",
          Recorded::if_present, Course::since_boot),
    bad("ecc_corrected_lifetime", "corrected memory errors in the GPU's life, where ECC is on", Recorded::if_present,
        Course::for_life),
    bad("ecc_uncorrected_lifetime", "uncorrected memory errors in the GPU's life, where ECC is on",
        Recorded::if_present, Course::for_life),
    bad("remapped_rows_corrected", "memory rows replaced after corrected errors, where the GPU can (from Ampere on)",
        Recorded::if_reported, Course::for_life),
    bad("remapped_rows_uncorrected",
        "memory rows replaced after uncorrected errors, where the GPU can (from Ampere on)", Recorded::if_reported,
        Course::for_life),
    bad("remapping_pending",
        "1 when a row waits for a reset to be replaced, else 0, where the GPU can (from Ampere on)",
        Recorded::if_reported, Course::fixed),
    fault("remapping_failed", "1 when a row could not be replaced, else 0, where the GPU can (from Ampere on)",
          Recorded::if_reported),
    bad("retired_pages", "memory pages taken out of use, where the GPU does that (before Ampere)", Recorded::if_present,
        Course::for_life),
    bad("retired_pages_pending", "1 when a page waits for a reboot to be retired, else 0, where the GPU does that",
        Recorded::if_present, Course::fixed),
    fault("xid_events",
          "Xid lines about this GPU in the kernel's log, where the log can be read; a GPU that the driver no longer "
          "lists is named by its PCI address",
          Recorded::if_reported, Course::since_boot),
    good("nvlinks_active", "NVLinks that are up, where the GPU has any", Recorded::if_present, Course::fixed),
    bad("nvlinks_inactive", "NVLinks that are down, where the GPU has any", Recorded::if_present, Course::fixed),
    bad("nvlink_errors",
        "errors of all NVLinks since the driver was loaded (replays, recoveries and CRC errors; from NVLink 5 "
        "malformed packets, overruns, receive and integrity errors and recoveries), if counted",
        Recorded::if_reported, Course::since_boot),
    with_course(Course::fixed,
                higher("nvlink_speed", "B/s",
                       "rate of one NVLink in one direction, as the driver states it, if reported (from 520)",
                       Recorded::if_reported)),
    bad("nvlink_recoveries",
        "times since the driver was loaded that one NVLink trained its lanes again, if counted (from NVLink 5 "
        "with those that failed)",
        Recorded::if_reported, Course::since_boot),
    bad("nvlink_effective_ber",
        "errors a bit of one NVLink after error correction, if reported (from NVLink 5 and driver 570); 1.5e-254, the "
        "least value, is none",
        Recorded::if_reported),
    bad("nvlink_symbol_ber", "symbols with errors of one NVLink, likewise", Recorded::if_reported),
    bad("fabric_cliques",
        "cliques of the NVLink fabric that the node's GPUs are in, if one is in any; 1 if all reach each other; a "
        "GPU in none counts as one more",
        Recorded::if_reported, Course::fixed),
    bad("fabric_faults",
        "faults of a GPU's place in the NVLink fabric after a complete registration: 1 for a status other than "
        "success, 1 for each bad health bit",
        Recorded::if_reported, Course::fixed),
    good("fabric_has_uuid",
         "1 if the fabric has the UUID of a cluster of nodes, 0 if it is all zeros, as with a node's own NVSwitches; "
         "after a complete registration",
         Recorded::if_reported, Course::fixed),
    good("c2c_links_active", "NVLink-C2C links to the processor that are up, where the GPU has any",
         Recorded::if_present, Course::fixed),
    bad("c2c_links_inactive", "NVLink-C2C links that are not up, where the GPU has any", Recorded::if_present,
        Course::fixed),
    with_course(Course::fixed,
                higher("c2c_speed", "B/s",
                       "rate of one NVLink-C2C link in one direction, as the driver states it, where the GPU has any",
                       Recorded::if_present)),
    bad("c2c_errors",
        "CRC errors and replays of all NVLink-C2C links since the driver was loaded, if counted (from 575)",
        Recorded::if_reported, Course::since_boot),
    bad("pcie_errors_corrected", "corrected errors of its PCIe link, where the kernel reports them (AER)",
        Recorded::if_reported, Course::since_boot),
    bad("pcie_errors_nonfatal", "uncorrected errors that left the link usable, where the kernel reports them (AER)",
        Recorded::if_reported, Course::since_boot),
    bad("pcie_errors_fatal", "uncorrected errors that needed a reset of the link, where the kernel reports them (AER)",
        Recorded::if_reported, Course::since_boot),
    good("pcie_generation", "PCIe generation now, where the driver reports it; an idle GPU may lower it",
         Recorded::if_reported),
    good("pcie_generation_max", "PCIe generation that GPU and slot reach together, where the driver reports it",
         Recorded::if_reported, Course::fixed),
    good("pcie_generation_device", "PCIe generation that the GPU is made for, where the driver reports it",
         Recorded::if_reported, Course::fixed),
    good("pcie_width", "PCIe lanes now, where the driver reports them", Recorded::if_reported, Course::fixed),
    good("pcie_width_max", "PCIe lanes that GPU and slot reach together, where the driver reports them",
         Recorded::if_reported, Course::fixed),
    bad("pcie_replays", "PCIe replays since the driver was loaded, where the driver counts them", Recorded::if_reported,
        Course::since_boot),
    lower("thermal_throttle_time", "s",
          "time since the driver was loaded that software or hardware lowered clocks for temperature, where the driver "
          "counts it",
          Recorded::if_reported),
    lower(
        "power_brake_time", "s",
        "time since the driver was loaded that an outside signal lowered clocks, where the driver counts it (from 575)",
        Recorded::if_reported),
    bad("power_limit_lowered",
        "1 when the power limit in force is below the one that the board boots with, else 0, where the driver reports "
        "both",
        Recorded::if_reported, Course::fixed),
    bad("other_processes",
        "processes that use the GPU, if known: the driver lists those of the probe's own process namespace, and in a "
        "container memory in use that none of them has counts as one more",
        Recorded::if_reported),
};

constexpr ConditionSpec kOwnConditions[] = {
    {.name = "nvml_library", .meaning = "path of the NVML that answered"},
    {.name = "driver_version", .meaning = "version of the NVIDIA driver"},
    {.name = "gpus_listed", .meaning = "GPUs that the driver counts, whether they answer or not"},
    {.name = "kernel_log", .meaning = "where Xid events were read, or \"absent: \" and why they were not"},
    if_reported("kernel_log_whole", "whether the log begins at boot, so that no event is missed, if there is a log"),
    if_occurred("xid_numbers", "numbers of the Xid events of a gpu, if there are any"),
    if_occurred("facts_missing_names", "metrics that another gpu reports and this one does not, if there are any"),
    if_occurred("query_error", "the first query that failed, with NVML's message, if any"),
    if_reported("persistence_mode", "whether the driver keeps a gpu initialised, if reported"),
    if_reported("mig_mode", "whether a gpu is partitioned, if it can be"),
    if_reported("ecc_mode", "whether a gpu's memory is protected, if it can be"),
    if_reported("sm_clock_hz", "SM clock now, where the driver reports it"),
    if_reported("sm_clock_max_hz", "SM clock that a gpu is made for, where the driver reports it"),
    if_reported("memory_clock_hz", "memory clock now, where the driver reports it"),
    if_reported("memory_clock_max_hz", "memory clock that a gpu is made for, where the driver reports it"),
    if_reported("temperature_c", "temperature of the die now, where the driver reports it"),
    if_reported("memory_temperature_c", "temperature of the memory now, where the driver reports it"),
    if_reported("power_w", "power now, where the driver reports it"),
    if_reported("power_limit_w", "power limit in force, where the driver reports it"),
    if_reported("power_limit_default_w", "power limit that the board boots with, where the driver reports it"),
    if_reported("recovery_action", "the recovery action that the driver asks for, if reported (from driver 570)"),
    if_reported("nvlink_states", "which NVLinks of a gpu are active, sleeping or inactive, if it has any"),
    if_reported("nvlink_remote_ends",
                "device at the other end of each NVLink of a gpu (gpu, npu, switch) and its PCI function, if reported"),
    if_reported("link_contradictions",
                "answers about NVLinks and C2C links of a gpu that cannot all be right, if it has any"),
    if_occurred("link_contradiction_names", "the first of them in words, if there are any"),
    if_reported("fabric_uuid", "UUID of the cluster of nodes whose fabric a gpu is in, if it is not all zeros"),
    if_reported("fabric_clique", "clique of a gpu in its fabric, after a complete registration"),
    if_reported("fabric_status",
                "success, or the error that ended the registration of a gpu in its fabric, after a complete one"),
};

/// kOwnConditions and kGpuConditions in one array.
constexpr auto kConditions = [] {
  std::array<ConditionSpec, std::size(kOwnConditions) + std::size(kGpuConditions)> all = {};
  std::ranges::copy(kGpuConditions, std::ranges::copy(kOwnConditions, all.begin()).out);
  return all;
}();

constexpr ProbeSpec kSpec{
    .name = "health_gpu",
    .revision = 2,
    .measures = "Errors, links, throttling and users of every GPU, and how many GPUs the node has.",
    .method =
        "Asks NVML once about every GPU that the driver lists; nothing is run on a GPU or changed. Counters run since "
        "the driver was loaded unless their name says lifetime. A question that the GPU or driver does not support "
        "leaves its metric out; a metric that only some GPUs of the node report is counted as missing on the others. "
        "Figures of one link have its number as coordinate `link`; where answers contradict each other both are kept. "
        "Nothing is sent over a link, and no service of the fabric is asked. "
        "Xid events are counted in the kernel's log, and say nothing of the time before its first line.",
    .source =
        "NVIDIA NVML API Reference Guide and nvml.h 13.3; Linux Documentation/ABI/testing/"
        "sysfs-bus-pci-devices-aer_stats; NVIDIA GPU Deployment and Management documentation, XID Errors.",
    .needs = "the NVIDIA driver; /dev/kmsg readable for Xid events (root)",
    .typical = {2},
    .deadline = {120},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0}};

/// Numbers of Xid events by the GPU's address on the bus, without its function.
using XidNumbers = std::map<std::string, std::vector<int>>;

/// Records how far the log reaches; nothing if it cannot be read.
std::optional<XidNumbers> read_xids(const std::string& path, Recorder& record) {
  const KernelLog log = read_kernel_log(path);
  record.condition("kernel_log", log.absence.empty() ? path : nvml::absent_because(log.absence));
  if (!log.absence.empty()) return std::nullopt;
  record.condition("kernel_log_whole", *log.whole);
  XidNumbers numbers;
  for (const XidEvent& event : find_xid_events(log.text)) numbers[event.pci_address].push_back(event.number);
  return numbers;
}

void record_xids(const std::vector<int>& numbers, const Subject& subject, Recorder& record) {
  record.measurement("xid_events", static_cast<double>(numbers.size()), subject);
  if (!numbers.empty()) record.condition("xid_numbers", words_of(numbers), subject);
}

void record_state(const Gpu& gpu, const GpuState& state, const std::vector<std::string>& missing, Recorder& record) {
  record_gpu(gpu, record);
  for (const auto& [name, value] : state.conditions) record.condition(name, value, gpu.subject);
  for (const auto& [name, value] : state.metrics) record.measurement(name, value, gpu.subject);
  for (const auto& [name, link, value] : state.links)
    record.measurement(name, value, gpu.subject, {{"link", std::int64_t{link}}});
  record.measurement("query_errors", static_cast<double>(state.query_errors), gpu.subject);
  record.measurement("facts_missing", static_cast<double>(missing.size()), gpu.subject);
  if (!state.first_error.empty()) record.condition("query_error", state.first_error, gpu.subject);
  if (!missing.empty())
    record.condition("facts_missing_names", fmt::format("{}", fmt::join(missing, " ")), gpu.subject);
}

void add_pcie_errors(const MachineTree& tree, const Gpu& gpu, GpuState& state) {
  if (!gpu.pci_address) return;
  const PcieErrors errors = read_pcie_errors(tree, *gpu.pci_address);
  if (errors.corrected) state.metrics["pcie_errors_corrected"] = static_cast<double>(*errors.corrected);
  if (errors.nonfatal) state.metrics["pcie_errors_nonfatal"] = static_cast<double>(*errors.nonfatal);
  if (errors.fatal) state.metrics["pcie_errors_fatal"] = static_cast<double>(*errors.fatal);
}

void measure(const Parameters& given, Recorder& record) {
  const MachineTree tree(given.text("root"));
  const nvml::Nvml nvml(given.text("nvml_library"));
  const std::vector<nvml::NvmlGpu> listed = nvml.gpus();
  record.condition("nvml_library", nvml.path());
  record.condition("driver_version", nvml.driver_version());
  record.condition("gpus_listed", static_cast<std::int64_t>(listed.size()));
  auto xids = read_xids(given.text("kernel_log"), record);

  std::vector<Gpu> gpus;
  std::vector<GpuState> states;
  for (const nvml::NvmlGpu& gpu : listed) {
    gpus.push_back(read_gpu(gpu));
    states.push_back(read_gpu_state(nvml, gpu));
    add_pcie_errors(tree, gpus.back(), states.back());
  }
  const auto missing = missing_facts(states);
  std::int64_t answering = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    record_state(gpus[i], states[i], missing[i], record);
    if (listed[i].uuid().value && !states[i].lost) ++answering;
    if (!xids || !gpus[i].pci_address) continue;
    const std::string address = gpus[i].pci_address->substr(0, gpus[i].pci_address->find('.'));
    record_xids((*xids)[address], gpus[i].subject, record);
    xids->erase(address);
  }
  record.measurement("gpus", static_cast<double>(answering));
  if (const auto cliques = fabric_cliques(states)) record.measurement("fabric_cliques", static_cast<double>(*cliques));
  // The rest is about a GPU that fell off the bus: the driver lists it no more, the log still names it.
  for (const auto& [address, numbers] : xids.value_or(XidNumbers{})) {
    record_xids(numbers, {.kind = "gpu", .id = address}, record);
  }
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
