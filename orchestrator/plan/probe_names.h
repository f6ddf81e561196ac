// probe_names: the probes of assay by name, also those that a build leaves out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/plan/plan.h"

namespace assay::plan {

/// The names of all probes that this version has or that a built-in profile asks for, sorted: a probe of this list that
/// is not at hand is missing from the build, any other name is a mistake.
std::vector<std::string> known_probe_names();

/// The first requirement of `profile` whose probe is neither in `programs` nor known, with the nearest name; nothing
/// when there is none.
std::optional<InputError> find_unknown_probe(const Profile& profile, const std::vector<Program>& programs);

}  // namespace assay::plan
