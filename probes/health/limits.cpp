// health_limits: limits on the clocks and the power of a node's processors that are lower than the machine's own.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"

namespace assay::health {
namespace {

constexpr Parameter kParameters[] = {
    parameter("root", "", "/", "directory that holds sys, for a tree saved from another machine"),
};

constexpr Metric kMetrics[] = {
    with_course(Course::fixed,
                lower("clock_limits_lowered", "1",
                      "CPUs whose highest clock is limited below their maximum, where a driver reports clocks",
                      Recorded::if_reported)),
    with_course(Course::fixed,
                lower("turbo_off", "1",
                      "1 when clocks above the base clock are switched off, else 0, where a driver reports it",
                      Recorded::if_reported)),
    with_course(Course::fixed,
                lower("power_limits_lowered", "1",
                      "packages whose lasting power limit is below their maximum, where RAPL reports both",
                      Recorded::if_reported)),
};

constexpr ConditionSpec kConditions[] = {
    if_present("scaling_driver", "driver of the clocks, if there is one, of the first CPU"),
    if_present("governor", "policy of the clocks, if there is one, of the first CPU"),
    if_reported("lowest_clock_limit_hz", "lowest limit among the CPUs, where a driver reports clocks"),
    if_reported("lowest_power_limit_w", "lowest lasting limit among packages, where RAPL reports it"),
};

constexpr ProbeSpec kSpec{
    .name = "health_limits",
    .measures = "Processors of a node whose clock or power is limited below their own maximum.",
    .method =
        "Compares the limit of each CPU's clock with its maximum (cpufreq: scaling_max_freq and cpuinfo_max_freq), the "
        "switch for clocks above the base clock, and the lasting power limit of each package with its maximum (RAPL: "
        "constraint long_term). Nothing is changed, and nothing is run.",
    .source = "Linux Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst; power/powercap/powercap.rst.",
    .typical = {2},
    .deadline = {60},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0}};

constexpr double kHertz = 1e3;       // cpufreq counts in kHz
constexpr double kMicrowatt = 1e-6;  // RAPL counts in microwatts

/// How many of some parts have a limit below their maximum, and the lowest limit.
struct Lowered {
  std::int64_t parts = 0, lowered = 0;
  std::optional<std::int64_t> lowest;

  void add(std::int64_t limit, std::int64_t maximum) {
    ++parts;
    if (limit < maximum) ++lowered;
    lowest = std::min(lowest.value_or(limit), limit);
  }
};

Lowered clocks_of(const MachineTree& tree) {
  Lowered all;
  for (const auto& policy : tree.names("sys/devices/system/cpu/cpufreq")) {
    if (!policy.starts_with("policy")) continue;
    const std::string directory = "sys/devices/system/cpu/cpufreq/" + policy;
    const auto limit = tree.number(directory + "/scaling_max_freq");
    const auto maximum = tree.number(directory + "/cpuinfo_max_freq");
    if (!limit || !maximum) continue;
    // A policy covers the CPUs of one clock domain; each counts.
    const std::string cpus = tree.text(directory + "/affected_cpus").value_or("");
    const auto covered = std::max<std::ptrdiff_t>(1, std::ranges::count(cpus, ' ') + 1);
    for (std::ptrdiff_t i = 0; i < covered; ++i) all.add(*limit, *maximum);
  }
  return all;
}

/// 1 or 0; nothing if no driver has the switch.
std::optional<std::int64_t> turbo_off(const MachineTree& tree) {
  if (const auto off = tree.number("sys/devices/system/cpu/intel_pstate/no_turbo")) return *off != 0 ? 1 : 0;
  if (const auto on = tree.number("sys/devices/system/cpu/cpufreq/boost")) return *on == 0 ? 1 : 0;
  return std::nullopt;
}

Lowered powers_of(const MachineTree& tree) {
  Lowered all;
  for (const auto& zone : tree.names("sys/class/powercap")) {
    const std::string directory = "sys/class/powercap/" + zone;
    if (!tree.text(directory + "/name").value_or("").starts_with("package-")) continue;
    if (tree.text(directory + "/constraint_0_name") != "long_term") continue;
    const auto limit = tree.number(directory + "/constraint_0_power_limit_uw");
    const auto maximum = tree.number(directory + "/constraint_0_max_power_uw");
    if (limit && maximum && *maximum > 0) all.add(*limit, *maximum);
  }
  return all;
}

void measure(const Parameters& given, Recorder& record) {
  const MachineTree tree(given.text("root"));
  const Lowered clocks = clocks_of(tree), powers = powers_of(tree);
  const auto turbo = turbo_off(tree);
  if (clocks.parts == 0 && powers.parts == 0 && !turbo)
    throw Skip(
        "the machine reports no limit of clocks or power: neither cpufreq nor RAPL is there (a virtual machine?)");
  const std::string first = "sys/devices/system/cpu/cpufreq/policy0/";
  if (const auto driver = tree.text(first + "scaling_driver")) record.condition("scaling_driver", *driver);
  if (const auto governor = tree.text(first + "scaling_governor")) record.condition("governor", *governor);
  if (clocks.lowest) record.condition("lowest_clock_limit_hz", static_cast<double>(*clocks.lowest) * kHertz);
  if (powers.lowest) record.condition("lowest_power_limit_w", static_cast<double>(*powers.lowest) * kMicrowatt);
  if (clocks.parts > 0) record.measurement("clock_limits_lowered", static_cast<double>(clocks.lowered));
  if (turbo) record.measurement("turbo_off", static_cast<double>(*turbo));
  if (powers.parts > 0) record.measurement("power_limits_lowered", static_cast<double>(powers.lowered));
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
