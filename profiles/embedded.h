// embedded: the documents of this folder and of schemas/ as compiled in.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace assay::profiles {

/// File name without .json to text: the profiles, "probes" and "advisories", and the schemas "schema",
/// "advisories.schema", "site.schema", "faults.schema", "policy.schema", "night-faults.schema", "trust.schema",
/// "waiver.schema", "statement.schema", "head.schema", "joint.schema", "draw-commitment.schema", "record.schema" and
/// "verdict.schema".
const std::map<std::string, std::string_view>& embedded_documents();

}  // namespace assay::profiles
