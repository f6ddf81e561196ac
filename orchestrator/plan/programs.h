// programs: the probe binaries of this installation and what they say of themselves.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "orchestrator/plan/plan.h"

namespace assay::plan {

/// Where this installation's parts lie, found relative to the running binary.
struct Installation {
  std::string binaries;  ///< bin/: assay, assay-report, assay-node
  std::string probes;    ///< libexec/assay/probes/
};

/// The installation that the running binary belongs to.
Installation installation();

/// Every probe in `directory`, by name, described and hashed. An error when the directory has none, or when one does
/// not describe itself.
std::expected<std::vector<Program>, InputError> find_programs(const std::string& directory);

}  // namespace assay::plan
