// target_differences: looser targets are found by the rules for profiles that extend others; the rest is any
// difference.
#include "reports/dossier/target_differences.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/difference.h"
#include "orchestrator/plan/loosened.h"
#include "probes/core/scale.h"

namespace assay::dossier {
namespace {

using nlohmann::json;

constexpr std::size_t kMostOfOne = 1000;  // differences within one requirement

std::map<std::string, const plan::Requirement*> requirements_of(const plan::Profile& profile) {
  std::map<std::string, const plan::Requirement*> all;
  for (const auto& requirement : profile.requirements) all[requirement.id] = &requirement;
  return all;
}

/// "/limit/at_least is …" as "limit.at_least": the field as plan::Loosened names it.
std::string field_of(const std::string& difference) {
  std::string field = difference.substr(0, difference.find(' '));
  if (field.starts_with('/')) field.erase(0, 1);
  std::ranges::replace(field, '/', '.');
  return field;
}

/// The sides of the limit that differ, by their field as plan::Loosened names it: both figures in one scale.
std::map<std::string, std::string> limits_of(const plan::Limit& found, const plan::Limit& expected) {
  std::map<std::string, std::string> all;
  const auto add = [&](const char* field, const std::optional<double>& is, const std::optional<double>& should) {
    if (!is || !should || *is == *should) return;
    const double pair[] = {*is, *should};
    const Scale scale = scale_for(pair, found.unit);
    all[field] = fmt::format("{} is {}, expected {}", field, scale.text(*is), scale.text(*should));
  };
  if (found.unit != expected.unit || found.reference != expected.reference) return all;
  add("limit.at_least", found.at_least, expected.at_least);
  add("limit.at_most", found.at_most, expected.at_most);
  return all;
}

/// Looser targets, and then every other difference; of `limits` in their words.
void add(const std::string& place, const std::vector<plan::Loosened>& loosened, const json& found, const json& expected,
         const std::map<std::string, std::string>& limits, std::vector<std::string>& all) {
  std::set<std::string> said;
  for (const auto& one : loosened) {
    said.insert(one.what);
    const auto words = limits.find(one.what);
    all.push_back(fmt::format(
        "{}: {}: LOOSER", place,
        words != limits.end() ? words->second : fmt::format("{} is {}, expected {}", one.what, one.to, one.from)));
  }
  for (const auto& one : files::differences(found, expected, kMostOfOne)) {
    const std::string field = field_of(one);
    const auto words = limits.find(field);
    if (!said.contains(field)) all.push_back(fmt::format("{}: {}", place, words != limits.end() ? words->second : one));
  }
}

}  // namespace

json by_requirement(const plan::Profile& profile) {
  json document = to_json(profile);
  json requirements = json::object();
  for (auto& requirement : document.at("requirements")) {
    const std::string id = requirement.at("id");
    requirements[id] = std::move(requirement);
  }
  document["requirements"] = std::move(requirements);
  return document;
}

std::vector<std::string> target_differences(const plan::Profile& found, const plan::Profile& expected) {
  std::vector<std::string> all;
  json is = by_requirement(found);
  json should = by_requirement(expected);
  const auto judged = requirements_of(found);
  for (const auto& [id, wanted] : requirements_of(expected)) {
    const auto now = judged.find(id);
    if (now == judged.end()) {
      all.push_back(fmt::format("{}: is not among the targets: LOOSER", id));
      continue;
    }
    add(id, plan::loosened_in(*wanted, *now->second, expected.name), is.at("requirements").at(id),
        should.at("requirements").at(id), limits_of(now->second->limit, wanted->limit), all);
  }
  for (const auto& [id, requirement] : judged) {
    if (!should.at("requirements").contains(id)) all.push_back(fmt::format("{}: is not expected", id));
  }
  is.erase("requirements");
  should.erase("requirements");
  add("profile", plan::loosened_in(expected, found), is, should, {}, all);
  return all;
}

}  // namespace assay::dossier
