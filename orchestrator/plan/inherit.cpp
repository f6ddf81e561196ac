// inherit: merges profiles requirement by requirement, and requirements field by field.
#include "orchestrator/plan/inherit.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/plan/loosened.h"
#include "orchestrator/plan/profile_check.h"
#include "probes/core/suggest.h"

namespace assay::plan {
namespace {

using nlohmann::json;

/// `given` and those conditions of `inherited` whose name it does not have, in the order inherited.
json merged_conditions(const json& inherited, const json& given) {
  const auto name_of = [](const json& one) { return one.is_object() ? one.value("name", json()) : json(); };
  json all = inherited;
  for (const auto& one : given) {
    const auto same = std::ranges::find(all, name_of(one), name_of);
    if (same == all.end()) {
      all.push_back(one);
    } else {
      *same = one;
    }
  }
  return all;
}

/// `entry` with the fields of `model` that it leaves out.
json filled(const json& model, const json& entry) {
  json all = model;
  if (entry.contains("demand")) {
    for (const char* name : kOfMetrics) all.erase(name);
  } else if (entry.contains("metric")) {
    all.erase("demand");
  }
  for (const auto& [name, value] : entry.items()) {
    if (name == "like") continue;
    if (name == "contrast") all.erase("limit");
    if (name == "limit") all.erase("contrast");
    if (name == "parameters" && value.is_object() && model.contains(name)) {
      all[name].update(value);
    } else if (name == "conditions" && value.is_array() && model.contains(name)) {
      all[name] = merged_conditions(model.at(name), value);
    } else {
      all[name] = value;
    }
  }
  return all;
}

}  // namespace

void take_over(Profile& profile, Profile next) {
  const json had = to_json(profile).at("requirements");
  const json has = to_json(next).at("requirements");
  std::vector<Loosened> looser = std::move(next.loosened);
  for (std::size_t i = 0; i < next.requirements.size(); ++i) {
    Requirement& requirement = next.requirements[i];
    const auto same = std::ranges::find(profile.requirements, requirement.id, &Requirement::id);
    if (same == profile.requirements.end()) {
      profile.requirements.push_back(std::move(requirement));
    } else if (had[static_cast<std::size_t>(same - profile.requirements.begin())] != has[i]) {
      std::ranges::move(loosened_in(*same, requirement, profile.name), std::back_inserter(looser));
      *same = std::move(requirement);
    }
  }
  for (auto& [name, peak] : next.peaks) {
    const auto [known, is_new] = profile.peaks.try_emplace(name, peak);
    if (!is_new && known->second.value != peak.value)
      looser.push_back({.what = "peaks." + name,
                        .from = json(known->second.value).dump(),
                        .to = json(peak.value).dump(),
                        .base = profile.name});
    known->second = std::move(peak);
  }
  for (auto& one : looser) {  // those that both inherit from one profile were listed before
    if (std::ranges::find(profile.loosened, one) == profile.loosened.end()) profile.loosened.push_back(std::move(one));
  }
  for (const auto& name : next.companions) {
    if (std::ranges::find(profile.companions, name) == profile.companions.end()) profile.companions.push_back(name);
  }
  profile.name = fmt::format("{} and {}", profile.name, next.name);
  profile.guard_factor = std::max(profile.guard_factor, next.guard_factor);
  profile.confidence = std::max(profile.confidence, next.confidence);
  for (const auto& [kind, count] : next.per_node) {  // a stated number before that of the site, which may be any
    int& known = profile.per_node.try_emplace(kind, count).first->second;
    known = std::max(known, count);
  }
  if (next.power_w) profile.power_w = next.power_w;
  if (!next.relative_only.empty()) profile.relative_only = next.relative_only;
}

std::optional<InputError> fill_in_like(json& document, const Profile& inherited, const std::string& where) {
  const auto requirements = document.find("requirements");
  if (requirements == document.end() || !requirements->is_array()) return std::nullopt;
  std::map<std::string, json> models;
  const json known = to_json(inherited).at("requirements");
  for (const auto& one : known) models[one.at("id")] = one;
  for (std::size_t i = 0; i < requirements->size(); ++i) {
    json& entry = (*requirements)[i];
    if (!entry.is_object()) continue;
    if (const auto like = entry.find("like"); like != entry.end() && like->is_string()) {
      const std::string id = *like;
      const auto model = models.find(id);
      if (model == models.end()) {
        std::vector<std::string> ids;
        for (const auto& [name, unused] : models) ids.push_back(name);
        return InputError{fmt::format("{}: requirements[{}].like", where, i),
                          fmt::format("there is no requirement '{}' before it or in a profile extended", id),
                          suggestion(id, ids)};
      }
      entry = filled(model->second, entry);
    }
    if (const auto id = entry.find("id"); id != entry.end() && id->is_string()) models[*id] = entry;
  }
  return std::nullopt;
}

}  // namespace assay::plan
