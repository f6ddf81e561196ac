// embedded: the documents of this folder and of schemas/ as compiled in.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace assay::profiles {

/// File name without .json to text: the profiles, "probes", the tables of "actions" and "advisories", and the schemas
/// "schema", "actions.schema", "advisories.schema", "site.schema", "faults.schema", "policy.schema",
/// "night-faults.schema", "trust.schema", "waiver.schema", "statement.schema", "head.schema", "joint.schema",
/// "draw-commitment.schema", "record.schema", "verdict.schema", "catalogue.schema" and "requirements.schema";
/// catalogues of requirements as "catalogues/NAME".
const std::map<std::string, std::string_view>& embedded_documents();

}  // namespace assay::profiles
