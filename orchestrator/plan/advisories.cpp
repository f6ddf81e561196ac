// advisories: reads the table that is compiled in, and copies its rows into the profiles that ask for them.
#include "orchestrator/plan/advisories.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "probes/core/json_fields.h"
#include "probes/core/suggest.h"
#include "probes/core/utc_time.h"
#include "profiles/embedded.h"
#include "profiles/schema.h"

namespace assay::plan {
namespace {

using nlohmann::json;

constexpr const char* kWhere = "profiles/advisories.json";

AdvisoryTable read_table() {
  const json document = parse_json_or_throw(profiles::embedded_documents().at(kAdvisoriesDocument), kWhere);
  if (auto problem = profiles::check_schema(document, "advisories.schema", kWhere)) throw InputError(*problem);
  AdvisoryTable table{.dated = document.at("dated"), .advisories = document.at("advisories")};
  for (const auto& one : table.advisories) {
    if (const auto odd = odd_version({.outside = {one.span}}))
      throw InputError{kWhere, fmt::format("'{}' of {} is not a version", odd->text, one.component), ""};
  }
  return table;
}

void fill_in(json& demand) {
  if (!demand.is_object() || !demand.contains("version") || !demand.at("version").is_object()) return;
  json& version = demand.at("version");
  const auto component = version.find("advisories");
  if (component == version.end() || !component->is_string() || version.contains("known_bad")) return;
  const auto own = advisories_on(*component);
  if (own.empty()) return;  // refused by check_condition
  version["known_bad"] = own;
  version["dated"] = advisories().dated;
}

}  // namespace

const AdvisoryTable& advisories() {
  static const AdvisoryTable kTable = read_table();
  return kTable;
}

std::vector<Advisory> advisories_on(const std::string& component) {
  std::vector<Advisory> rows;
  for (const auto& one : advisories().advisories) {
    if (one.component != component) continue;
    rows.push_back(one);
    rows.back().component.clear();
  }
  return rows;
}

void fill_in_advisories(json& document) {
  const auto requirements = document.find("requirements");
  if (requirements == document.end() || !requirements->is_array()) return;
  for (json& requirement : *requirements) {
    if (!requirement.is_object()) continue;
    if (const auto demand = requirement.find("demand"); demand != requirement.end()) fill_in(*demand);
    if (const auto all = requirement.find("conditions"); all != requirement.end() && all->is_array())
      for (json& one : *all) fill_in(one);
  }
}

InputError unknown_component(const std::string& component, const std::string& where) {
  std::vector<std::string> known;
  for (const auto& one : advisories().advisories) {
    if (std::ranges::find(known, one.component) == known.end()) known.push_back(one.component);
  }
  return {where, fmt::format("there are no advisories on '{}'", component), suggestion(component, known)};
}

bool is_outdated(const std::string& dated, const std::string& time) {
  const auto from = given_time(dated);
  const auto until = utc_time(time);
  return from && until && *until - *from > std::chrono::days(kAdvisoriesKeep_d);
}

}  // namespace assay::plan
