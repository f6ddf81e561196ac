// packages: /var/lib/dpkg/status is stanzas of "Field: value" lines (deb-control(5)); rpm prints by a query format.
#include "probes/health/packages.h"

#include <array>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/stat.h>

#include "probes/core/child.h"
#include "probes/core/machine_tree.h"
#include "probes/core/text.h"

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

}  // namespace

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

}  // namespace assay::health
