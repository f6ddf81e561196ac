// partial_plan: a plan for some nodes of a site, such as those replaced after a run.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/plan/plan.h"
#include "orchestrator/site/site.h"
#include "probes/core/error.h"

namespace assay::cli {

/// Leaves in `site` only the nodes of the host list `nodes`, in the site's order. Errors: a name that the site does not
/// have, a list that is none.
std::optional<InputError> keep_nodes(site::Site& site, const std::string& nodes);

/// The file `name` of the run, or of the dossier, in `directory`.
std::string file_of_run(const std::string& directory, const std::string& name);

/// The SHA-256 of the plan in the run, or in the dossier, `directory`. Errors: it is not readable, or of another
/// profile or revision than `profile`: nodes that are compared with other figures do not continue a test.
std::expected<std::string, InputError> continued_plan(const std::string& directory, const plan::Profile& profile);

/// The fleet of the run in `directory`, a run or a dossier, as judge::fleet_of_run has it for `plan`.
plan::EarlierFleet fleet_of_continued(const std::string& directory, const plan::Plan& plan,
                                      const std::vector<std::string>& requirements);

}  // namespace assay::cli
