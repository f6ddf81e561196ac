// rapl: identifies zones by their kernel names; the directory tree shows which zone contains which.
#include "probes/power/rapl.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/whole_number.h"

namespace assay::power {
namespace {

namespace fs = std::filesystem;

// The control type "intel-rapl-mmio" shows the same package a second time and is not read.
constexpr std::string_view kZonePrefix = "intel-rapl:";

/// The first line of a file. Throws Skip with the path and the cause.
std::string first_line(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::string line;
  if (file && std::getline(file, line)) return line;
  const int cause = errno == 0 ? EIO : errno;
  std::string reason = fmt::format("{} cannot be read: {}", path, std::generic_category().message(cause));
  if (cause == EACCES) reason += "; Linux lets only root read RAPL counters since CVE-2020-8694";
  throw Skip(reason);
}

std::uint64_t microjoules(const std::string& path) {
  const std::string line = first_line(path);
  if (const auto number = whole_number<std::uint64_t>(line)) return *number;
  throw Skip(fmt::format("{} holds '{}', which is not a number of microjoules", path, line.substr(0, 40)));
}

/// Name of every zone by its directory name, sorted: "intel-rapl:0" -> "package-0", "intel-rapl:0:0" -> "core".
std::map<std::string, std::string> zone_names(const std::string& powercap) {
  std::error_code error;
  std::map<std::string, std::string> names;
  for (fs::directory_iterator entry(powercap, error), end; !error && entry != end; entry.increment(error)) {
    const std::string zone = entry->path().filename();
    if (zone.starts_with(kZonePrefix)) names.emplace(zone, first_line(fmt::format("{}/{}/name", powercap, zone)));
  }
  if (error) {
    throw Skip(fmt::format("{} cannot be read: {}; this machine or its hypervisor shows no RAPL counters", powercap,
                           error.message()));
  }
  return names;
}

}  // namespace

RaplZones find_rapl_zones(const std::string& powercap) {
  const auto names = zone_names(powercap);
  RaplZones zones;
  const auto measure = [&](const std::string& zone, const std::string& package, const char* domain) {
    const std::string directory = fmt::format("{}/{}", powercap, zone);
    RaplZone found{.path = directory + "/energy_uj",
                   .package = package,
                   .domain = domain,
                   .range_uj = microjoules(directory + "/max_energy_range_uj")};
    (void)read_energy_uj(found);  // only whether it can be read matters here
    zones.measured.push_back(std::move(found));
  };
  for (const auto& [zone, name] : names) {
    const auto parent = names.find(zone.substr(0, zone.rfind(':')));
    if (parent == names.end() && name.starts_with("package-")) {
      measure(zone, name, "package");
    } else if (parent != names.end() && parent->second.starts_with("package-") && name == "dram") {
      measure(zone, parent->second, "dram");
    } else {
      zones.left_out.push_back(parent == names.end() ? name : fmt::format("{}/{}", parent->second, name));
    }
  }
  if (std::ranges::find(zones.measured, "package", &RaplZone::domain) == zones.measured.end()) {
    throw Skip(
        fmt::format("{} has no {}N zone named package-N; this machine shows no RAPL counters", powercap, kZonePrefix));
  }
  std::ranges::sort(zones.measured, [](const RaplZone& a, const RaplZone& b) {
    return std::tie(a.package, b.domain) < std::tie(b.package, a.domain);  // "package" comes before "dram"
  });
  return zones;
}

std::uint64_t read_energy_uj(const RaplZone& zone) { return microjoules(zone.path); }

EnergyCounter rapl_counter(const RaplZone& zone) {
  const bool dram = zone.domain == "dram";
  return {.name = fmt::format("{}/{}", zone.package, zone.domain),
          .source = zone.path,
          .subject = {.kind = "cpu", .id = zone.package},
          .power_metric = dram ? "power_dram" : "power",
          .energy_metric = dram ? "energy_dram" : "energy",
          .range_uj = zone.range_uj,
          .read_uj = [zone] { return std::optional(read_energy_uj(zone)); }};
}

}  // namespace assay::power
