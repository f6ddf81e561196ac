// predicate_types: the former names.
#include "reports/dossier/predicate_types.h"

#include <string>

namespace assay::dossier {

void rename_former_type(nlohmann::json& document) {
  constexpr std::string_view kFormer = "https://assay-suite.example/";
  if (!document.is_object()) return;
  const auto member = document.find("predicateType");
  if (member == document.end() || !member->is_string()) return;
  const auto found = member->get<std::string>();
  if (!found.starts_with(kFormer)) return;
  for (const auto type : {kPredicateType, kSimulationType, kWaiverType, kHeadType, kJointType}) {
    if (found.substr(kFormer.size()) == type.substr(type.find('#') + 1)) *member = type;
  }
}

}  // namespace assay::dossier
