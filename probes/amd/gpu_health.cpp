// health_amd: the state of a node's AMD GPUs, as AMD SMI and the kernel report it.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/amd/gpu_facts.h"
#include "probes/core/join.h"
#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/health/pcie.h"

namespace assay::amd {
namespace {

constexpr Parameter kParameters[] = {
    parameter("amd_smi_library", "", smi::kLibrary, "file name or path of AMD SMI"),
    parameter("answer_limit", "s", "30s",
              "longest wait for one answer; then the driver hangs, which is an error that names the GPU"),
    parameter("root", "", "/", "where /sys of the machine is; for tests"),
};

/// A count that gets better as it falls, or as it rises.
constexpr Metric bad(std::string_view name, std::string_view meaning, Course course, Recorded recorded) {
  Metric metric = lower(name, "1", meaning, recorded);
  metric.course = course;
  return metric;
}
constexpr Metric good(std::string_view name, std::string_view meaning, Recorded recorded = Recorded::if_reported) {
  Metric metric = higher(name, "1", meaning, recorded);
  metric.course = Course::fixed;
  return metric;
}
constexpr Recorded kReported = Recorded::if_reported;

constexpr Metric kMetrics[] = {
    good("gpus", "GPUs of the node with a UUID or an address by AMD SMI; partitions count one by one",
         Recorded::always),
    fault("query_errors", "questions that AMD SMI answered with an error, if there is a GPU", Recorded::if_present),
    bad("facts_missing", "metrics that another GPU of the node reports and this one does not, if there is a GPU",
        Course::fixed, Recorded::if_present),
    bad("ecc_corrected", "corrected errors of all blocks since the driver was loaded, where AMD SMI counts them",
        Course::since_boot, kReported),
    fault("ecc_uncorrected", "uncorrected errors of all blocks since the driver was loaded, where AMD SMI counts them",
          kReported, Course::since_boot),
    bad("ecc_deferred",
        "errors of all blocks since the driver was loaded that are uncorrected and not used yet, where AMD SMI counts "
        "them",
        Course::since_boot, kReported),
    bad("block_corrected", "corrected errors of one block since the driver was loaded, if the block counts them",
        Course::since_boot, kReported),
    fault("block_uncorrected", "uncorrected errors of one block since the driver was loaded, if the block counts them",
          kReported, Course::since_boot),
    bad("retired_pages", "memory pages taken out of use, where AMD SMI lists them", Course::for_life, kReported),
    bad("retired_pages_pending", "memory pages that wait to be taken out of use, where AMD SMI lists them",
        Course::fixed, kReported),
    fault("retired_pages_failed", "bad memory pages that could not be taken out of use, where AMD SMI lists them",
          kReported),
    good("xgmi_links_up", "XGMI links that are up, if there are any"),
    bad("xgmi_links_down", "XGMI links that are down, if there are any; disabled ones are neither", Course::fixed,
        kReported),
    fault("xgmi_errors", "1 where the GPU's XGMI links have had errors since they were last cleared, else 0", kReported,
          Course::since_boot),
    bad("pcie_errors_corrected", "corrected errors of its PCIe link, where the kernel reports them (AER)",
        Course::since_boot, kReported),
    bad("pcie_errors_nonfatal", "uncorrected errors that left the link usable, where the kernel reports them (AER)",
        Course::since_boot, kReported),
    bad("pcie_errors_fatal", "uncorrected errors that needed a reset of the link, where the kernel reports them (AER)",
        Course::since_boot, kReported),
    good("pcie_generation", "PCIe generation now, by the link's rate, where AMD SMI reports it"),
    good("pcie_generation_max", "PCIe generation that the GPU is made for, where AMD SMI reports it"),
    good("pcie_width", "PCIe lanes now, where AMD SMI reports them"),
    good("pcie_width_max", "PCIe lanes that the GPU is made for, where AMD SMI reports them"),
    bad("pcie_replays", "PCIe replays since the driver was loaded, where AMD SMI counts them", Course::since_boot,
        kReported),
    bad("thermal_violations",
        "readings of the firmware since the driver was loaded in which heat lowered clocks (die, socket, regulators, "
        "memory), where AMD SMI counts them",
        Course::since_boot, kReported),
    neither("power_violations", "1",
            "readings of the firmware since the driver was loaded in which the power limit lowered clocks, where AMD "
            "SMI counts them",
            kReported),
    bad("power_limit_lowered",
        "1 when the power limit in force is below the board's default, else 0, where AMD SMI reports both",
        Course::fixed, kReported),
    bad("other_processes", "processes that use the GPU, outside of containers, which do not see those of others",
        Course::each_run, kReported),
};

constexpr ConditionSpec kOwnConditions[] = {
    {.name = "amd_smi_library", .meaning = "path of the AMD SMI that answered"},
    {.name = "amd_smi_version", .meaning = "version of that library"},
    if_reported("driver_version", "version of the driver amdgpu, where AMD SMI reports it"),
    {.name = "gpus_listed", .meaning = "GPUs or partitions that AMD SMI lists, whether they answer or not"},
    if_occurred("facts_missing_names", "metrics that another gpu reports and this one does not, if there are any"),
    if_occurred("query_error", "the first question that failed, with AMD SMI's words, if any"),
    if_reported("compute_units", "compute units of a gpu or partition, where AMD SMI reports them"),
    if_reported("ecc_mode", "whether the memory controllers of a gpu count errors, where AMD SMI reports it"),
    if_reported("xgmi_states", "state of each XGMI link of a gpu, if there are any"),
    if_reported("temperature_c", "temperature of the hottest spot of the die now, where AMD SMI reports it"),
    if_reported("memory_temperature_c", "temperature of the memory now, where AMD SMI reports it"),
    if_reported("power_w", "power of the socket now, where AMD SMI reports it"),
    if_reported("power_limit_w", "power limit in force, where AMD SMI reports it"),
    if_reported("power_limit_default_w", "the board's default power limit, where AMD SMI reports it"),
    if_reported("gfx_clock_hz", "clock of the compute units now, where AMD SMI reports it"),
    if_reported("gfx_clock_max_hz", "clock that the compute units are made for, where AMD SMI reports it"),
    if_reported("memory_clock_hz", "memory clock now, where AMD SMI reports it"),
    if_reported("memory_clock_max_hz", "memory clock that a gpu is made for, where AMD SMI reports it"),
};
constexpr auto kConditions = join(kOwnConditions, kIdentityConditions);

constexpr ProbeSpec kSpec{
    .name = "health_amd",
    .measures = "Errors, links, partitions, throttling and users of every AMD GPU, and how many GPUs the node has.",
    .method =
        "Asks AMD SMI once about every GPU that it lists; nothing is run on a GPU or changed. Errors of a block have "
        "its name as coordinate `block`. A question that the GPU, the driver or the user's permissions leave "
        "unanswered leaves its metric out; a metric that only some GPUs of the node report is counted as missing on "
        "the others. Rates of XGMI links are not asked: their layout changed within one version of the library. It has "
        "run over a made-up library only, on no AMD GPU yet.",
    .source =
        "ROCm, amd_smi/amdsmi.h 26.1 and 26.5; Linux Documentation/ABI/testing/"
        "sysfs-bus-pci-devices-aer_stats.",
    .needs = "the driver amdgpu; AMD SMI of ROCm 7.0 or newer",
    .typical = {2},
    .deadline = {300},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0}};

void record_gpu(const GpuFacts& gpu, const std::vector<std::string>& missing, Recorder& record) {
  for (const auto& [name, value] : gpu.state.conditions) record.condition(name, value, gpu.subject);
  for (const auto& [name, value] : gpu.state.metrics) record.measurement(name, value, gpu.subject);
  for (const BlockErrors& one : gpu.blocks) {
    const Values at = {{"block", std::string(one.block)}};
    record.measurement("block_corrected", static_cast<double>(one.errors.corrected), gpu.subject, at);
    record.measurement("block_uncorrected", static_cast<double>(one.errors.uncorrected), gpu.subject, at);
  }
  record.measurement("query_errors", static_cast<double>(gpu.state.query_errors), gpu.subject);
  record.measurement("facts_missing", static_cast<double>(missing.size()), gpu.subject);
  if (!gpu.state.first_error.empty()) record.condition("query_error", gpu.state.first_error, gpu.subject);
  if (!missing.empty())
    record.condition("facts_missing_names", fmt::format("{}", fmt::join(missing, " ")), gpu.subject);
}

void add_pcie_errors(const MachineTree& tree, GpuFacts& gpu) {
  if (gpu.pci_address.empty()) return;
  const health::PcieErrors errors = health::read_pcie_errors(tree, gpu.pci_address);
  const auto put = [&](std::string_view name, const std::optional<std::int64_t>& count) {
    if (count) gpu.state.metrics[name] = static_cast<double>(*count);
  };
  put("pcie_errors_corrected", errors.corrected);
  put("pcie_errors_nonfatal", errors.nonfatal);
  put("pcie_errors_fatal", errors.fatal);
}

void measure(const Parameters& given, Recorder& record) {
  AnswerLimit limit(given.seconds("answer_limit"));
  limit.asking("AMD SMI: opening it and listing the GPUs");
  const MachineTree tree(given.text("root"));
  const AmdSmi smi(given.text("amd_smi_library"));
  const std::vector<AmdGpu> listed = smi.gpus();
  record.condition("amd_smi_library", smi.path());
  record.condition("amd_smi_version", smi.version());
  record.condition("gpus_listed", static_cast<std::int64_t>(listed.size()));

  std::vector<GpuFacts> gpus;
  std::vector<health::GpuState> states;
  std::int64_t answering = 0;
  for (const AmdGpu& gpu : listed) {
    GpuFacts& facts = gpus.emplace_back(read_gpu_facts(smi, gpu, gpus.size(), limit));
    add_pcie_errors(tree, facts);
    states.push_back(facts.state);
    if (facts.answers) ++answering;
  }
  limit.asking("AMD SMI: the driver's version");
  if (const auto version = listed.empty() ? std::nullopt : driver_version(smi, listed.front()))
    record.condition("driver_version", *version);
  const auto missing = health::missing_facts(states);
  for (std::size_t i = 0; i < gpus.size(); ++i) record_gpu(gpus[i], missing[i], record);
  record.measurement("gpus", static_cast<double>(answering));
  limit.asking("AMD SMI: closing it");
}

}  // namespace
}  // namespace assay::amd

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::amd::kSpec, assay::amd::measure); }
