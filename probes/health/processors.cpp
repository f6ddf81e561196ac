// processors: counts from sysfs topology, names from /proc/cpuinfo.
#include "probes/health/processors.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

constexpr const char* kCpus = "sys/devices/system/cpu";

std::optional<std::vector<int>> cpu_list(const MachineTree& tree, const char* name) {
  const auto text = tree.text(fmt::format("{}/{}", kCpus, name));
  return text ? parse_cpu_list(*text) : std::nullopt;
}

/// The package of a CPU; machines that number none (-1 on some ARM) have one.
std::string package_of(const MachineTree& tree, int cpu) {
  const auto number = tree.number(fmt::format("{}/cpu{}/topology/physical_package_id", kCpus, cpu)).value_or(0);
  return fmt::format("package-{}", std::max<std::int64_t>(number, 0));
}

std::optional<std::string> joined(const std::set<std::string>& values) {
  if (values.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(values, ", "));
}

/// Values of "model name" and "microcode" for each package that online CPUs belong to.
std::map<std::string, Package> read_packages(const MachineTree& tree, const std::vector<int>& online) {
  std::map<std::string, std::pair<std::set<std::string>, std::set<std::string>>> seen;
  for (const int cpu : online) seen[package_of(tree, cpu)];
  std::istringstream lines(tree.text("proc/cpuinfo").value_or(""));
  std::string package;
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = told(line.substr(0, colon));
    const auto value = told(line.substr(colon + 1));
    if (!key || !value) continue;
    const auto cpu = key == "processor" ? parse_cpu_list(*value) : std::nullopt;
    if (cpu && cpu->size() == 1) package = package_of(tree, cpu->front());
    if (!seen.contains(package)) continue;
    if (key == "model name") seen[package].first.insert(*value);
    if (key == "microcode") seen[package].second.insert(*value);
  }
  std::map<std::string, Package> packages;
  for (const auto& [name, values] : seen)
    packages[name] = {.model = joined(values.first), .microcode = joined(values.second)};
  return packages;
}

}  // namespace

Processors read_processors(const MachineTree& tree) {
  Processors result;
  if (const auto present = cpu_list(tree, "present")) result.cpus = static_cast<std::int64_t>(present->size());
  const auto threads_control = tree.text(fmt::format("{}/smt/control", kCpus)).value_or("");
  result.threads_off = threads_control == "off" || threads_control == "forceoff";
  const auto online = cpu_list(tree, "online");
  if (!online) return result;
  result.cpus_online = static_cast<std::int64_t>(online->size());
  std::set<std::string> cores;
  for (const int cpu : *online) {
    if (auto core = core_of(tree, cpu)) cores.insert(std::move(*core));
  }
  if (!cores.empty()) result.cores = static_cast<std::int64_t>(cores.size());
  result.packages = read_packages(tree, *online);
  return result;
}

}  // namespace assay::health
