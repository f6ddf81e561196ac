// machine_errors: reads the counters from files of sysfs, one number in each.
#include "workloads/train/step/machine_errors.h"

#include <string>

namespace assay::train {
namespace {

void add(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

}  // namespace

MachineErrors machine_errors(const MachineTree& tree) {
  MachineErrors found;
  const std::string cpus = "sys/devices/system/cpu";
  for (const auto& cpu : tree.names(cpus)) {
    for (const char* file : {"core_throttle_count", "package_throttle_count"})
      add(found.throttled, tree.number(cpus + "/" + cpu + "/thermal_throttle/" + file));
  }
  const std::string controllers = "sys/devices/system/edac/mc";
  for (const auto& controller : tree.names(controllers)) {
    add(found.corrected, tree.number(controllers + "/" + controller + "/ce_count"));
    add(found.uncorrected, tree.number(controllers + "/" + controller + "/ue_count"));
  }
  return found;
}

std::optional<std::int64_t> risen(const std::optional<std::int64_t>& before, const std::optional<std::int64_t>& after) {
  if (!before || !after) return std::nullopt;
  return *after >= *before ? *after - *before : *after;
}

}  // namespace assay::train
