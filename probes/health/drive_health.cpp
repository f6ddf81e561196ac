// health_drive: health, wear, link and paths of a node's NVMe and SATA drives, as the drives themselves report them.
// Sources of what is read of GPUDirect Storage: NVIDIA GPUDirect Storage Installation and Troubleshooting Guide, JSON
// Config Parameters (allow_compat_mode, force_compat_mode), Cheat Sheet for Diagnosing Problems, NVMe P2PDMA
// Troubleshooting (use_pci_p2pdma).
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/health/drive_log.h"
#include "probes/health/drives.h"
#include "probes/health/pcie.h"

namespace assay::health {
namespace {

/// A machine's cuFile configuration; no data is transferred.
struct GpudirectStorage {
  std::string library;         ///< path of libcufile
  std::optional<bool> direct;  ///< false: compatibility mode, or refused; absent if only a load can show it
  std::string state;           ///< in words, with the reason
};

namespace gpudirect {

constexpr const char* kConfiguration = "etc/cufile.json";

/// The folders into which NVIDIA's and the distributions' packages put the library.
std::optional<std::string> library_in(const MachineTree& tree) {
  std::vector<std::string> folders = {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64"};
  for (const auto& name : tree.names("usr/local")) {
    if (!name.starts_with("cuda")) continue;
    for (const auto* below : {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      folders.push_back(fmt::format("usr/local/{}/{}", name, below));
  }
  for (const auto& folder : folders) {
    if (tree.exists(folder + "/libcufile.so.0")) return folder + "/libcufile.so.0";
  }
  return std::nullopt;
}

/// The properties that the configuration states.
struct Properties {
  std::optional<bool> forces_compatibility, allows_compatibility, uses_p2pdma;
};

/// The fallback where data cannot go directly; releases of the library differ in their default.
std::string otherwise(const Properties& properties) {
  if (!properties.allows_compatibility) return "goes through host memory or gives an error";
  return *properties.allows_compatibility ? "goes through host memory without an error" : "gives an error";
}

/// Nothing if the file is there and cannot be understood.
std::optional<Properties> properties_in(const MachineTree& tree) {
  constexpr std::size_t kLargest = std::size_t{1} << 20;
  Properties found;
  if (!tree.exists(kConfiguration)) return found;
  const auto text = tree.bytes(kConfiguration, kLargest);
  if (!text) return std::nullopt;
  const auto read = parse_json(*text, kConfiguration, {.comments = true});
  if (!read || !read->is_object()) return std::nullopt;
  const auto at = read->find("properties");
  if (at == read->end()) return found;
  if (!at->is_object()) return std::nullopt;
  const auto take = [&](const char* name, std::optional<bool>& value) {
    const auto one = at->find(name);
    if (one == at->end()) return true;
    if (one->is_boolean()) value = one->get<bool>();
    return one->is_boolean();
  };
  const bool understood = take("force_compat_mode", found.forces_compatibility) &&
                          take("allow_compat_mode", found.allows_compatibility) &&
                          take("use_pci_p2pdma", found.uses_p2pdma);
  return understood ? std::optional(found) : std::nullopt;
}

}  // namespace gpudirect

/// The configuration of this machine; nothing if libcufile is not installed. Its configuration is that of
/// etc/cufile.json; a process may name another one in its environment (CUFILE_ENV_PATH_JSON).
std::optional<GpudirectStorage> read_gpudirect_storage(const MachineTree& tree) {
  using namespace gpudirect;
  const auto library = library_in(tree);
  if (!library) return std::nullopt;
  GpudirectStorage found{.library = "/" + *library, .direct = std::nullopt, .state = ""};
  const auto properties = properties_in(tree);
  if (!properties) {
    found.state = fmt::format("not known: /{} cannot be understood", kConfiguration);
  } else if (properties->forces_compatibility.value_or(false)) {
    found.direct = false;
    found.state = fmt::format("compatibility mode, through host memory: force_compat_mode in /{}", kConfiguration);
  } else if (tree.exists("sys/module/nvidia_fs")) {
    found.direct = true;
    found.state =
        fmt::format("nvidia-fs {}; a file system that does not take it {}",
                    tree.text("sys/module/nvidia_fs/version").value_or("of unknown version"), otherwise(*properties));
  } else if (properties->uses_p2pdma.value_or(false)) {
    found.state = "not known: PCI P2PDMA is asked for, and only a load shows whether it is used";
  } else {
    found.direct = false;
    found.state = fmt::format("compatibility mode: nvidia-fs is not loaded, so that it {}", otherwise(*properties));
  }
  return found;
}

constexpr Parameter kParameters[] = {
    parameter("root", "", "/",
              "where /sys of the machine is; for tests, which have saved logs of the drives in its /dev"),
};

/// A count that is worse the higher it is.
constexpr Metric bad(std::string_view name, Course course, std::string_view meaning,
                     Recorded recorded = Recorded::always) {
  return with_course(course, lower(name, "1", meaning, recorded));
}
/// A count of faults: any value above 0 is wrong.
constexpr Metric fault(std::string_view name, Course course, std::string_view meaning, Recorded recorded) {
  return fault(name, meaning, recorded, course);
}
/// A property that does not change.
constexpr Metric fixed(std::string_view name, std::string_view unit, std::string_view meaning,
                       Recorded recorded = Recorded::always) {
  return with_course(Course::fixed, higher(name, unit, meaning, recorded));
}

constexpr Metric kMetrics[] = {
    fixed("drives", "1", "NVMe and SATA drives of the node"),
    bad("drives_silent", Course::fixed, "drives whose health could not be read"),
    fault("critical_warnings", Course::each_run,
          "warnings that the drive raises, if reported: of NVMe the bits of its critical warning, of SATA 1 when it "
          "expects to fail",
          Recorded::if_reported),
    fault("media_errors", Course::for_life,
          "times that data could not be read back or failed its check, where the drive counts them",
          Recorded::if_reported),
    fault("spare_below_threshold", Course::each_run,
          "1 when less spare is left than the drive's threshold, else 0, NVMe drives only", Recorded::if_present),
    bad("spare_used", Course::for_life, "spare that is used up, in hundredths, NVMe drives only", Recorded::if_present),
    bad("wear", Course::for_life, "rated endurance used up, in hundredths, may exceed 100, if the drive estimates it",
        Recorded::if_reported),
    bad("unsafe_shutdowns", Course::for_life, "times that power went without notice, NVMe drives only",
        Recorded::if_present),
    bad("error_log_entries", Course::for_life,
        "entries ever made in its error log, refused commands among them, NVMe drives only", Recorded::if_present),
    bad("logged_media_errors", Course::each_run,
        "entries now in its error log that are errors of media or data integrity, NVMe drives that have the log",
        Recorded::if_reported),
    bad("reallocated_sectors", Course::for_life, "sectors replaced by spare ones, where a SATA drive counts them",
        Recorded::if_reported),
    bad("pending_sectors", Course::each_run, "sectors that wait to be replaced, where a SATA drive counts them",
        Recorded::if_reported),
    bad("link_crc_errors", Course::for_life, "errors of the cable to the drive, where a SATA drive counts them",
        Recorded::if_reported),
    fixed("gpudirect_storage", "1",
          "1 when cuFile can move data between storage and GPU past the host's memory, 0 in compatibility mode or if "
          "refused, where libcufile is installed and its path is known without a load",
          Recorded::if_reported),
    fixed("namespaces", "1", "namespaces of the drive, NVMe drives only", Recorded::if_present),
    fixed("paths", "1", "paths to the drive's namespaces, if several or one over a fabric", Recorded::if_asked),
    fixed("paths_usable", "1", "paths that take I/O now, if there are several or one over a fabric",
          Recorded::if_asked),
    fixed("paths_optimized", "1",
          "paths that the drive reports as optimized (ANA), if there are several or one over a fabric",
          Recorded::if_asked),
    fixed("pcie_rate", "1/s", "transfers per second of one lane now, if the drive is on PCIe and reports them",
          Recorded::if_reported),
    fixed("pcie_rate_max", "1/s",
          "highest transfers per second of one lane of the drive, if it is on PCIe and reports them",
          Recorded::if_reported),
    fixed("pcie_width", "1", "PCIe lanes now, if the drive is on PCIe and reports them", Recorded::if_reported),
    fixed("pcie_width_max", "1", "most PCIe lanes of the drive, if it is on PCIe and reports them",
          Recorded::if_reported),
    bad("pcie_errors_corrected", Course::since_boot,
        "corrected errors of its PCIe link since boot, where the kernel reports them (AER)", Recorded::if_reported),
    bad("pcie_errors_uncorrected", Course::since_boot,
        "uncorrected errors of its PCIe link since boot, where the kernel reports them (AER)", Recorded::if_reported),
};

constexpr ConditionSpec kConditions[] = {
    if_present("gpudirect_storage_library", "libcufile of the node, if it is installed"),
    if_present("gpudirect_storage_state",
               "path of its data by its kernel driver and /etc/cufile.json, if it is installed"),
    if_reported("model", "model of a drive, if reported"),
    if_reported("serial", "serial number of a drive, if reported"),
    if_reported("firmware", "firmware of a drive, if reported"),
    if_present("pci_address", "PCI function of a drive, if it is on PCIe"),
    if_occurred("health_log", "\"absent: \" and why the health of a drive could not be read, if it was not"),
    if_occurred("warnings", "names of the warnings of a drive, if it raises any"),
    if_occurred("newest_error",
                "status, namespace and block of the newest entry in its error log, where an NVMe drive has one"),
    if_reported("temperature_c", "temperature now, NVMe drives that report it"),
    if_present("spare_threshold", "spare below which it warns, in hundredths, NVMe drives only"),
    if_present("data_read_b", "data ever read by hosts, NVMe drives only"),
    if_present("data_written_b", "data ever written by hosts, NVMe drives only"),
    if_present("power_cycles", "times it was switched on, NVMe drives only"),
    if_present("power_on_s", "time it was switched on, NVMe drives only"),
    if_present("hot_s", "time above its warning temperature, NVMe drives only"),
    if_present("critically_hot_s", "time above its critical temperature, NVMe drives only"),
    if_present("path_states", "transport, address and states of each path, if there are several or one over a fabric"),
};

constexpr ProbeSpec kSpec{
    .name = "health_drive",
    .revision = 2,
    .measures =
        "Warnings, media errors, spare, wear, link and paths of the NVMe and SATA drives of a node; whether GPUDirect "
        "Storage is in its compatibility mode.",
    .method =
        "Asks every drive once for its own health log, with commands that only read: NVMe log pages 02h and 01h, ATA "
        "SMART data, status and device statistics. Links, paths and ANA states come from /sys. Counters run for the "
        "drive's life and errors of the PCIe link since boot; a run separates the rise between two readings from the "
        "counts before. Where libcufile is installed, its kernel driver and configuration are read; nothing is "
        "transferred. Counters of SATA drives without device statistics are the vendors' attributes 5, 187, 197 and "
        "199, whose meaning is a convention. SAS, virtual and USB drives are left out.",
    .source =
        "NVM Express Base Specification 2.0, 5.16.1.2 and 5.16.1.3; ATA Command Set 3, SMART and Device Statistics; "
        "SCSI/ATA Translation 3, ATA PASS-THROUGH (16); Linux "
        "Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats and drivers/nvme/host/multipath.c; NVIDIA GPUDirect "
        "Storage Installation and Troubleshooting Guide.",
    .needs = "NVMe or SATA drives; root",
    .typical = {1},
    .deadline = {120},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0}};

/// A drive and its reported state.
struct Asked {
  Subject subject;
  std::optional<std::string> model, serial, firmware, pci_address;
  std::optional<NvmeDrive> nvme;
  DriveState state;
};

/// Through the first controller that answers; a drive has one health, whichever way it is asked.
DriveState nvme_state(const DriveLogReader& read, const NvmeDrive& drive) {
  DriveState state;
  for (const auto& controller : drive.controllers) {
    state = read_nvme_state(read, controller);
    if (state.absence.empty()) break;
  }
  return state;
}

std::vector<Asked> ask_all(const MachineTree& tree, const DriveLogReader& read) {
  std::vector<Asked> all;
  for (const NvmeDrive& drive : read_nvme_drives(tree)) {
    all.push_back({.subject = {.kind = "drive", .id = drive.name},
                   .model = drive.model,
                   .serial = drive.serial,
                   .firmware = drive.firmware,
                   .pci_address = drive.pci_address,
                   .nvme = drive,
                   .state = nvme_state(read, drive)});
  }
  for (const Drive& drive : read_drives(tree)) {
    // libata gives every ATA drive the vendor "ATA" (SAT-3, INQUIRY).
    if (tree.text(fmt::format("sys/block/{}/device/vendor", drive.name)) != "ATA") continue;
    all.push_back({.subject = {.kind = "drive", .id = drive.name},
                   .model = drive.model,
                   .serial = drive.serial,
                   .firmware = drive.firmware,
                   .pci_address = {},
                   .nvme = {},
                   .state = read_sata_state(read, drive.name)});
  }
  return all;
}

void record_paths(const NvmeDrive& drive, const Subject& subject, Recorder& record) {
  record.measurement("namespaces", static_cast<double>(drive.namespaces.size()), subject);
  if (!drive.many_ways()) return;
  record.measurement("paths", static_cast<double>(drive.paths.size()), subject);
  record.measurement("paths_usable", static_cast<double>(std::ranges::count_if(drive.paths, &NvmePath::usable)),
                     subject);
  record.measurement("paths_optimized", static_cast<double>(std::ranges::count_if(drive.paths, &NvmePath::optimized)),
                     subject);
  std::string states;
  for (const NvmePath& path : drive.paths) {
    states += fmt::format("{}{} {} {} {}{}", states.empty() ? "" : "; ", path.controller, path.transport, path.address,
                          path.state, path.ana_state ? " " + *path.ana_state : "");
  }
  record.condition("path_states", states, subject);
}

void record_link(const PcieDevice& device, const PcieErrors& errors, const Subject& subject, Recorder& record) {
  const auto put = [&](std::string_view name, const auto& value) {
    if (value) record.measurement(name, static_cast<double>(*value), subject);
  };
  put("pcie_rate", device.current.transfers_per_s);
  put("pcie_rate_max", device.maximum.transfers_per_s);
  put("pcie_width", device.current.width);
  put("pcie_width_max", device.maximum.width);
  put("pcie_errors_corrected", errors.corrected);
  put("pcie_errors_uncorrected", errors.uncorrected());
}

void record_drive(const Asked& asked, Recorder& record) {
  const auto say = [&](std::string_view name, const std::optional<std::string>& text) {
    if (text) record.condition(name, *text, asked.subject);
  };
  say("model", asked.model);
  say("serial", asked.serial);
  say("firmware", asked.firmware);
  say("pci_address", asked.pci_address);
  if (!asked.state.absence.empty()) record.condition("health_log", "absent: " + asked.state.absence, asked.subject);
  for (const auto& [name, value] : asked.state.conditions) record.condition(name, value, asked.subject);
  for (const auto& [name, value] : asked.state.metrics) record.measurement(name, value, asked.subject);
  if (asked.nvme) record_paths(*asked.nvme, asked.subject, record);
}

void record_gpudirect(const GpudirectStorage& found, Recorder& record) {
  record.condition("gpudirect_storage_library", found.library);
  record.condition("gpudirect_storage_state", found.state);
  if (found.direct) record.measurement("gpudirect_storage", *found.direct ? 1 : 0);
}

void measure(const Parameters& given, Recorder& record) {
  const MachineTree tree(given.text("root"));
  const auto all =
      ask_all(tree, tree.is_this_machine() ? DriveLogReader(read_device_log) : saved_logs(given.text("root") + "/dev"));
  const auto gpudirect = read_gpudirect_storage(tree);
  if (all.empty() && !gpudirect)
    throw Skip("the machine has no NVMe or SATA drive: neither sys/class/nvme nor sys/block lists one");
  const auto silent = std::ranges::count_if(all, [](const Asked& one) { return !one.state.absence.empty(); });
  if (!all.empty() && silent == std::ssize(all))
    throw Skip(fmt::format("no drive's health can be read: {}; only root may query drives", all.front().state.absence));

  if (gpudirect) record_gpudirect(*gpudirect, record);
  record.measurement("drives", static_cast<double>(all.size()));
  record.measurement("drives_silent", static_cast<double>(silent));
  std::map<std::string, Subject> by_address;
  for (const Asked& one : all) {
    record_drive(one, record);
    if (one.pci_address) by_address.emplace(*one.pci_address, one.subject);
  }
  for (const PcieDevice& device : read_pcie_devices(tree, by_address)) {
    if (by_address.contains(device.address))
      record_link(device, read_pcie_errors(tree, device.address), device.subject, record);
  }
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
