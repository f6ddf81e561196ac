// host_configuration: the settings of a node that tuning guides for accelerators ask for, each with its file.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <ranges>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <fmt/format.h>

#include "probes/core/child.h"
#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/record.h"
#include "probes/core/recorder.h"
#include "probes/core/text.h"
#include "probes/health/host_configuration_spec.h"
#include "probes/health/kernel_settings.h"
#include "probes/health/nics.h"
#include "probes/health/pci_settings.h"
#include "probes/health/pcie.h"
#include "probes/health/roce_settings.h"
#include "probes/nvml/nvml_gpu.h"

namespace assay::health {
namespace {

/// A package and the condition that has its version; of several with one condition the first installed counts.
struct Wanted {
  const char* package;
  const char* condition;
};
constexpr std::array<Wanted, 12> kWanted = {{
    {"containerd.io", "containerd_version"},
    {"containerd", "containerd_version"},
    {"docker-ce", "docker_version"},
    {"docker.io", "docker_version"},
    {"moby-engine", "docker_version"},
    {"podman", "podman_version"},
    {"cri-o", "cri_o_version"},
    {"enroot", "enroot_version"},
    {"apptainer", "apptainer_version"},
    {"singularity-ce", "singularity_version"},
    {"nvidia-container-toolkit", "nvidia_container_toolkit_version"},
    {"libnvidia-container1", "libnvidia_container_version"},
}};

/// Upstream's part of "5:27.3.1-1~ubuntu.22.04": "27.3.1", between the epoch and the last hyphen.
std::string upstream(std::string_view version) {
  if (const auto colon = version.find(':'); colon != std::string_view::npos) version.remove_prefix(colon + 1);
  return std::string(version.substr(0, version.rfind('-')));
}

using Versions = std::map<std::string, std::string, std::less<>>;

Versions in_dpkg(const std::string& status) {
  Versions versions;
  std::istringstream lines(status);
  std::string package, version;
  bool installed = false;
  const auto close = [&] {
    if (installed && !package.empty() && !version.empty()) versions.emplace(package, upstream(version));
    package.clear();
    version.clear();
    installed = false;
  };
  for (std::string line; std::getline(lines, line);) {
    const std::string_view text = line;
    if (text.empty()) close();
    if (text.starts_with("Package: ")) package = text.substr(text.find(' ') + 1);
    if (text.starts_with("Version: ")) version = text.substr(text.find(' ') + 1);
    if (text.starts_with("Status: ")) installed = text.ends_with(" ok installed");
  }
  close();
  return versions;
}

Versions in_rpm() {
  constexpr const char* kRpm = "/usr/bin/rpm";
  constexpr Seconds kDeadline = {10};  // a database of thousands of packages answers within one
  constexpr std::size_t kMostOutput = 64 << 10;
  struct stat file = {};
  Versions versions;
  if (stat(kRpm, &file) != 0 || file.st_uid != 0 || (file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return versions;
  std::vector<std::string> arguments = {"-q", "--qf", "%{NAME} %{VERSION}\\n"};
  for (const auto& wanted : kWanted) arguments.emplace_back(wanted.package);
  try {
    const auto outcome = run_child(kRpm, arguments, kDeadline, {.directory = "", .log = "", .max_output = kMostOutput});
    if (outcome.end != ChildEnd::exited) return versions;
    std::istringstream lines(outcome.output);
    for (std::string line; std::getline(lines, line);) {
      const auto blank = line.find(' ');  // "package NAME is not installed" has four
      if (blank != std::string::npos && line.find(' ', blank + 1) == std::string::npos)
        versions.emplace(line.substr(0, blank), line.substr(blank + 1));
    }
  } catch (const std::system_error&) {
    return versions;  // it cannot be started: nothing is known
  }
  return versions;
}

/// Conditions of host_configuration: package_database ("dpkg" or "rpm") and a version of each package that it has
/// installed, as upstream counts: without the epoch and the revision of the distribution. No runtime is started, since
/// its program could belong to any user. dpkg's database is read. rpm's has no documented form: the system's own rpm is
/// asked, if only root may write it, within 10 s, and only on this machine.
Values package_versions(const MachineTree& tree) {
  constexpr std::size_t kMostStatus = 64 << 20;  // 5,000 packages are 6 MB
  constexpr std::size_t kLongestVersion = 100;
  Values values;
  Versions versions;
  if (const auto status = tree.bytes("var/lib/dpkg/status", kMostStatus)) versions = in_dpkg(*status);
  std::string database = "dpkg";
  if (versions.empty() && tree.is_this_machine()) {
    versions = in_rpm();
    database = "rpm";
  }
  if (versions.empty()) return values;
  values["package_database"] = database;
  for (const auto& [package, condition] : kWanted) {
    const auto found = versions.find(package);
    if (found == versions.end() || found->second.empty() || found->second.size() > kLongestVersion) continue;
    if (has_only(found->second, ".+~-_")) values.emplace(condition, found->second);
  }
  return values;
}

constexpr Parameter kParameters[] = {
    parameter("hca", "", "auto",
              "NCCL_IB_HCA of the jobs; auto: of the probe's environment, else of etc/nccl.conf, else every HCA"),
    parameter("root", "", "/", "directory that holds the proc, sys, etc and var to read"),
    parameter("nvml_library", "", "auto",
              "file name or path of NVML; auto: libnvidia-ml.so.1, and none if root is not this machine"),
};
constexpr ProbeSpec kSpec{
    .name = "host_configuration",
    .measures = "Settings of a node that tuning guides for accelerators and RDMA ask for.",
    .method =
        "Reads /proc, /sys, the database of packages and the kernel's DCB interface once and asks NVML for persistence "
        "mode; nothing is changed, and no program is started but rpm where packages are its. The meaning of each value "
        "names its file. A value that is not readable, or has not the form that its kernel documents, is absent and "
        "never a default. GPUs are functions of class 3D controller or processing accelerator; RDMA functions are "
        "those with an RDMA device. All values are the reports of the node itself.",
    .source =
        "Linux Documentation/ABI/testing/sysfs-bus-pci, sysfs-kernel-iommu_groups and "
        "admin-guide/kernel-parameters.txt; linux/pci_regs.h and linux/dcbnl.h; NCCL User Guide, Troubleshooting and "
        "Environment Variables; NVIDIA MLNX_OFED documentation 24.10, Explicit Congestion Notification.",
    .needs = "Linux; root for the configuration spaces of PCI",
    .typical = {2},
    .deadline = {60},
    .parameters = kParameters,
    .metrics = kConfigurationMetrics,
    .conditions = kConfigurationConditions,
    .between_runs = {.least = 0}};

void record_all(const Values& values, const Subject& subject, Recorder& record) {
  for (const auto& [name, value] : values) record.condition(name, value, subject);
}

/// Answers of a GPU of this machine.
struct KnownGpu {
  Subject subject;
  std::optional<bool> persistence;
};

std::map<std::string, KnownGpu> known_gpus(const std::string& library, bool is_this_machine) {
  const bool automatic = library == "auto";
  std::map<std::string, KnownGpu> gpus;
  if (automatic && !is_this_machine) return gpus;
  try {
    const nvml::Nvml nvml(automatic ? nvml_api::kLibrary : library);
    for (const auto& gpu : nvml.gpus()) {
      const auto address = gpu.pci_address().value, uuid = gpu.uuid().value;
      if (address && uuid) gpus[*address] = {{.kind = "gpu", .id = *uuid}, gpu.persistence_mode().value};
    }
  } catch (const Skip&) {
    return gpus;  // no such driver: the node has a configuration all the same
  }
  return gpus;
}

/// A GPU or RDMA function, with the ports above it.
struct Function {
  std::string address;
  Subject subject;
  PciSettings settings = {};
  std::vector<std::string> ports = {};  ///< from the root port down
};

std::vector<Function> functions_of(const MachineTree& tree, const std::vector<Nic>& nics,
                                   const std::map<std::string, KnownGpu>& gpus) {
  std::map<std::string, Subject> names;
  for (const auto& [address, gpu] : gpus) names[address] = gpu.subject;
  for (const Nic& nic : nics) {
    if (nic.pci_address) names.emplace(*nic.pci_address, Subject{.kind = "nic", .id = nic.name});
  }
  std::vector<Function> functions;
  for (const PcieDevice& device : read_pcie_devices(tree, names)) {
    const std::string directory = "sys/bus/pci/devices/" + device.address;
    const bool is_gpu = device.accelerator || gpus.contains(device.address);
    if (!is_gpu && tree.names(directory + "/infiniband").empty()) continue;
    Function function{.address = device.address, .subject = device.subject};
    function.settings = read_pci_settings(tree, device.address);
    const auto route = tree.pci_route(directory);
    if (route.size() > 2) function.ports.assign(route.begin() + 1, route.end() - 1);
    functions.push_back(std::move(function));
  }
  return functions;
}

/// The settings of every port above `functions`, by address.
std::map<std::string, PciSettings> ports_above(const MachineTree& tree, const std::vector<Function>& functions) {
  std::map<std::string, PciSettings> ports;
  for (const Function& function : functions) {
    for (const auto& port : function.ports) {
      if (!ports.contains(port)) ports[port] = read_pci_settings(tree, port);
    }
  }
  return ports;
}

void record_acs(const std::map<std::string, PciSettings>& ports, Recorder& record) {
  std::string on;
  int count = 0, unread = 0;
  for (const auto& [address, port] : ports) {
    if (!port.acs) ++unread;
    if (port.acs.value_or(0) == 0) continue;
    ++count;
    on += fmt::format("{}{} {}", on.empty() ? "" : "; ", address, acs_words(*port.acs));
  }
  if (!on.empty()) record.condition("acs_on", on);
  if (count > 0 || (unread == 0 && !ports.empty())) record.condition("acs", std::string(count > 0 ? "on" : "off"));
  if (unread == 0 && !ports.empty()) record.measurement("acs_ports", count);
}

/// "256 512 512" from a function up to its root port, if they differ; nothing in the pair's second if one is not known.
std::pair<std::string, std::optional<bool>> payload_path(const Function& function,
                                                         const std::map<std::string, PciSettings>& ports) {
  if (!function.settings.max_payload) return {};
  std::string path = fmt::format("{}", *function.settings.max_payload);
  bool differs = false;
  for (const auto& port : function.ports | std::views::reverse) {
    const auto size = ports.at(port).max_payload;
    if (!size) return {};
    path += fmt::format(" {}", *size);
    differs = differs || *size != *function.settings.max_payload;
  }
  return {path, differs};
}

void record_traffic(const std::vector<Function>& functions, const std::map<std::string, PciSettings>& ports,
                    Recorder& record) {
  int ordering_off = 0, payload_unlike = 0, unread = 0, paths = 0;
  std::optional<std::int64_t> least_read, least_payload;
  const auto least = [](const std::optional<std::int64_t>& so_far, std::int64_t value) {
    return std::min(so_far.value_or(value), value);
  };
  for (const Function& function : functions) {
    const PciSettings& has = function.settings;
    if (!has.relaxed_ordering || !has.max_read_request || !has.max_payload) {
      ++unread;
      continue;
    }
    record.condition("relaxed_ordering", *has.relaxed_ordering, function.subject);
    record.condition("max_read_request", *has.max_read_request, function.subject);
    record.condition("max_payload", *has.max_payload, function.subject);
    ordering_off += *has.relaxed_ordering ? 0 : 1;
    least_read = least(least_read, *has.max_read_request);
    least_payload = least(least_payload, *has.max_payload);
    const auto [path, differs] = payload_path(function, ports);
    if (!differs) continue;
    ++paths;
    payload_unlike += *differs ? 1 : 0;
    if (*differs) record.condition("max_payload_path", path, function.subject);
  }
  if (unread == 0) {
    record.measurement("relaxed_ordering_off", ordering_off);
    record.measurement("max_read_request_least", static_cast<double>(*least_read));
    record.measurement("max_payload_least", static_cast<double>(*least_payload));
    if (paths == static_cast<int>(functions.size())) record.measurement("max_payload_unlike", payload_unlike);
  }
  const auto hidden = [](const auto& port) { return !port.second.acs || !port.second.max_payload; };
  record.measurement("config_spaces_unread", static_cast<double>(unread + std::ranges::count_if(ports, hidden)));
}

/// The filter of HCAs, and its origin.
std::pair<std::string, const char*> hca_filter(const MachineTree& tree, const std::string& given) {
  if (given != "auto") return {given, "parameter"};
  const char* set = tree.is_this_machine() ? std::getenv("NCCL_IB_HCA") : nullptr;
  if (set != nullptr) return {set, "environment"};
  if (const auto file = hca_filter_in(tree.text("etc/nccl.conf").value_or(""))) return {*file, "etc/nccl.conf"};
  return {"", "nothing"};
}

void record_hcas(const MachineTree& tree, const std::string& given, const std::vector<Function>& functions,
                 Recorder& record) {
  if (!tree.exists("sys/class/infiniband")) return;
  const auto [filter, set_by] = hca_filter(tree, given);
  const auto all = active_hcas(tree);
  std::vector<Hca> left;
  std::ranges::copy_if(all, std::back_inserter(left), [&](const Hca& hca) { return is_left_by(filter, hca); });
  record.condition("hca_filter",
                   filter.empty() ? fmt::format("none ({})", set_by) : fmt::format("{} ({})", filter, set_by));
  record.condition("hcas", static_cast<std::int64_t>(left.size()));
  int farther = 0, compared = 0, gpus = 0;
  for (const Function& function : functions) {
    if (function.subject.kind != "gpu") continue;
    ++gpus;
    const auto chosen = nearest_hca(tree, function.address, left), nearest = nearest_hca(tree, function.address, all);
    if (!chosen || !nearest) continue;
    record.condition("hca", fmt::format("{}:{}", chosen->hca.name, chosen->hca.port), function.subject);
    record.condition("hca_distance", std::string(word_of(chosen->way.nearness)), function.subject);
    ++compared;
    farther += chosen->way.nearness > nearest->way.nearness ? 1 : 0;
  }
  if (gpus > 0 && compared == gpus) record.measurement("hcas_farther", farther);
}

void measure(const Parameters& given, Recorder& record) {
  const MachineTree tree(given.text("root"));
  if (!tree.exists("proc/cmdline") && !tree.exists("sys/devices")) {
    throw std::runtime_error(
        fmt::format("root: '{}' holds neither proc/cmdline nor sys/devices\nhint: name the directory that proc and sys "
                    "are in; / is this machine",
                    given.text("root")));
  }
  const auto nics = read_nics(tree);
  const auto gpus = known_gpus(given.text("nvml_library"), tree.is_this_machine());
  const auto functions = functions_of(tree, nics, gpus);
  const auto ports = ports_above(tree, functions);
  record_all(kernel_settings(tree), {}, record);
  record_all(processor_settings(tree), {}, record);
  record_all(module_settings(tree), {}, record);
  record_all(package_versions(tree), {}, record);
  std::vector<std::string> addresses;
  std::ranges::transform(functions, std::back_inserter(addresses), &Function::address);
  if (const auto mode = iommu_mode(tree, addresses)) record.condition("iommu_mode", *mode);
  if (const auto bytes = huge_pages_reserved(tree)) record.measurement("huge_pages_reserved", *bytes);
  record_acs(ports, record);
  if (!functions.empty()) record_traffic(functions, ports, record);
  record_hcas(tree, given.text("hca"), functions, record);
  for (const auto& [address, gpu] : gpus) {
    if (gpu.persistence) record.condition("persistence_mode", *gpu.persistence, gpu.subject);
  }
  for (const Nic& nic : nics) {
    if (!nic.rdma_device) continue;
    const Subject subject{.kind = "nic", .id = nic.name};
    if (nic.firmware) record.condition("firmware", *nic.firmware, subject);
    record_all(roce_settings(tree, nic), subject, record);
  }
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
