// machine_errors: counters of the kernel that rise when a machine is not well.
#pragma once

#include <cstdint>
#include <optional>

#include "probes/core/machine_tree.h"

namespace assay::train {

/// Sums over the machine since its boot; nothing where it has none of the kind.
struct MachineErrors {
  std::optional<std::int64_t> throttled;    ///< times that a core or package was slowed down for its temperature
  std::optional<std::int64_t> corrected;    ///< memory errors that ECC corrected
  std::optional<std::int64_t> uncorrected;  ///< memory errors that it could not correct
};

/// Source: Linux Documentation/ABI/testing/sysfs-devices-edac; arch/x86/kernel/cpu/mce/therm_throt.c.
MachineErrors machine_errors(const MachineTree& tree);

/// `after` less `before`; nothing where either has none. A counter that fell was reset: what it has now is new.
std::optional<std::int64_t> risen(const std::optional<std::int64_t>& before, const std::optional<std::int64_t>& after);

}  // namespace assay::train
