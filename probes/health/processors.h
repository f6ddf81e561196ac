// processors: packages, cores and threads that the kernel knows, and the microcode they run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// One package. Where its CPUs differ, the texts name every value, sorted, with ", " between.
struct Package {
  std::optional<std::string> model, microcode;
};

/// All of them; a count that the kernel does not report is absent.
struct Processors {
  std::optional<std::int64_t> cpus;         ///< logical CPUs present
  std::optional<std::int64_t> cpus_online;  ///< those in use
  std::optional<std::int64_t> cores;        ///< physical cores with an online CPU
  bool threads_off = false;                 ///< second threads of cores are switched off (smt/control)
  std::map<std::string, Package> packages;  ///< by name: "package-0"

  /// CPUs present that are not in use; nothing if counts are absent or second threads were switched off.
  [[nodiscard]] std::optional<std::int64_t> cpus_offline() const {
    if (!cpus || !cpus_online || threads_off) return std::nullopt;
    return *cpus - *cpus_online;
  }
};

/// Reads sys/devices/system/cpu and proc/cpuinfo.
Processors read_processors(const MachineTree& tree);

}  // namespace assay::health
