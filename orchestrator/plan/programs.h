// programs: the probe binaries of this installation and their descriptions.
#pragma once

#include <expected>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/plan/plan.h"

namespace assay::plan {

/// Paths of this installation's parts, relative to the running binary.
struct Installation {
  std::string binaries;  ///< bin/: assay, assay-report, assay-node
  std::string probes;    ///< libexec/assay/probes/
  std::string machines;  ///< libexec/assay/machines/: agent and probes for nodes of another machine than this one

  /// The agents of all machines that are installed, by machine (uname -m), this one's among them.
  [[nodiscard]] std::map<std::string, std::string> agents() const;
};

/// The installation that the running binary belongs to.
Installation installation();

/// Names of the probes that a plan by `profile` may start; of those that `plan` starts.
std::set<std::string> probes_of(const Profile& profile);
std::set<std::string> probes_of(const Plan& plan);

/// Every probe in `directory`, by name, described and without its SHA-256. An error when the directory has none, or
/// when one does not describe itself.
std::expected<std::vector<Program>, InputError> find_programs(const std::string& directory);

/// Of this installation the probes that are among `names` (probes_of), described and hashed, with the builds for other
/// machines: libexec/assay/machines/<machine>/probes/<name>. No other program is started or read: all of them together
/// have half a gigabyte. Descriptions are those of this machine's builds, because the others do not run here; a record
/// that differs from it is refused when it is read. Errors also: a folder that is of another version.
std::expected<std::vector<Program>, InputError> installed_programs(const std::set<std::string>& names);

/// What a simulation plans with: every probe that this version knows, in its latest revision, whether it is part of
/// this build or not, and those of this installation that have no known description. No program of a known one is
/// started or needed; its digest is that of its description.
std::expected<std::vector<Program>, InputError> simulated_programs();

}  // namespace assay::plan
