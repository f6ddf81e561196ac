// advisories: the table of versions with known faults, profiles/advisories.json.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/plan/version.h"
#include "probes/core/error.h"

namespace assay::plan {

/// The name of the document among profiles::embedded_documents().
inline constexpr const char* kAdvisoriesDocument = "advisories";

/// An advisory is taken for current for so long after its table was last looked through, in days.
inline constexpr int kAdvisoriesKeep_d = 180;

/// The whole table.
struct AdvisoryTable {
  std::string dated;                 ///< the day on which its sources were last looked through, YYYY-MM-DD
  std::vector<Advisory> advisories;  ///< in the order of components, then of versions
};

/// The table that is compiled in. Throws InputError if it is not of its own schema, which a test would have found.
const AdvisoryTable& advisories();

/// The rows of `component`, as a requirement keeps them; empty if it is not known.
std::vector<Advisory> advisories_on(const std::string& component);

/// Fills in `known_bad` and `dated` of each `version` within a profile's document that names a component; one that has
/// them, as in a plan, keeps its own.
void fill_in_advisories(nlohmann::json& document);

/// The refusal of a component that has no advisories, with the nearest name.
InputError unknown_component(const std::string& component, const std::string& where);

/// Whether a table of the day `dated` is older than kAdvisoriesKeep_d days at `time` (utc_text); false if either is not
/// a time.
bool is_outdated(const std::string& dated, const std::string& time);

}  // namespace assay::plan
