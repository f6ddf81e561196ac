// simulated_meters: the part of a faults document that says what is wrong with the meters of a simulated site.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "orchestrator/plan/simulation.h"

namespace assay::plan {

/// Reads meters, swapped_outlets and lost_feeds of `document`, which meets its schema, into `faults`.
void take_meters(const nlohmann::json& document, Faults& faults);

/// Writes them, each only where there is one; take_meters reads them back unchanged.
void put_meters(const Faults& faults, nlohmann::json& document);

/// Why they do not fit `site`: a meter or an outlet that it does not have, a feed that is none. Nothing when they do.
std::optional<InputError> check_meters(const Faults& faults, const site::Site& site, const std::string& where);

}  // namespace assay::plan
