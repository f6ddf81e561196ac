// profile_check: refuses limits that any figure meets, references that do not exist, and fields that exclude each
// other.
#include "orchestrator/plan/profile_check.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orchestrator/plan/contrast.h"
#include "orchestrator/plan/derived.h"
#include "orchestrator/plan/repeat.h"
#include "probes/core/suggest.h"

namespace assay::plan {
namespace {

/// Fields that need a certain scope or a plane.
std::optional<InputError> check_placement(const Requirement& requirement, const std::string& here) {
  const bool of_pairs = requirement.rounds > 0 || requirement.pairs || requirement.alone;
  if ((requirement.by && requirement.scope != JudgedScope::group) ||
      (of_pairs && requirement.scope != JudgedScope::pair)) {
    const char* const field = requirement.by           ? "by"
                              : requirement.rounds > 0 ? "rounds"
                              : requirement.alone      ? "alone"
                                                       : "pairs";
    return InputError{here, fmt::format("has `{}`, and its scope is {}", field, requirement.scope),
                      "`by` goes with scope group; `rounds`, `pairs` and `alone` with scope pair"};
  }
  if (is_of_smallest(requirement.limit.reference) && requirement.by != Grouping::growing) {
    return InputError{here + ".limit.of", "refers to the smallest of growing groups, and there are none",
                      "give scope group and \"by\": \"growing\""};
  }
  if (requirement.knee && (!is_of_smallest(requirement.limit.reference) || !requirement.limit.capped_by.empty() ||
                           requirement.limit.at_most || requirement.at_every || requirement.after)) {
    return InputError{here + ".knee", "is of a figure at one coordinate that growing groups keep, without a cap",
                      "give \"by\": \"growing\" and a limit with at_least \"of\": \"smallest_group\" (each node's "
                      "figure, bus bandwidth) or \"smallest_group_by_nodes\" (the sum of all nodes)"};
  }
  if (!requirement.limit.capped_by.empty() && requirement.limit.reference != Reference::smallest_group_by_nodes) {
    return InputError{here + ".limit.capped_by", "caps a limit that does not grow with the nodes",
                      "it goes with \"of\": \"smallest_group_by_nodes\""};
  }
  if (requirement.demand && !requirement.demand->site.empty() && requirement.plane.empty())
    return InputError{here + ".demand.site", "asks for the site's facts of a port, and the requirement names no plane",
                      "give `plane`"};
  for (std::size_t i = 0; i < requirement.conditions.size(); ++i) {
    if (requirement.conditions[i].site.empty() || !requirement.plane.empty()) continue;
    return InputError{fmt::format("{}.conditions[{}].site", here, i),
                      "asks for the site's facts of a port, and the requirement names no plane", "give `plane`"};
  }
  return std::nullopt;
}

/// Fields that need figures of the site's meters.
std::optional<InputError> check_during(const Requirement& requirement, const Profile& profile,
                                       const std::string& here) {
  // A node has figures of its own probes, and of the meters and outlets that it hangs on.
  const bool of_meters = is_of_meters(requirement.scope) ||
                         (requirement.scope == JudgedScope::node && is_site_companion(requirement.probe));
  if (requirement.during.empty() != !of_meters)
    return InputError{
        here + ".during",
        of_meters ? fmt::format("is missing, and the scope is {}", requirement.scope)
                  : fmt::format("is given, and the scope is {}", requirement.scope),
        "a figure of the site's meters has scope node, rack, feed, shelf, cdu or meter, one of its switches "
        "switch_port, and both name the probe during whose load they are judged"};
  if (!of_meters) return std::nullopt;
  if (requirement.demand)
    return InputError{here + ".demand", "judges a condition of the site's meters", "give a metric and a limit"};
  const bool of_switches = requirement.scope == JudgedScope::switch_port;
  if (!is_site_companion(requirement.probe) || of_switches != (requirement.probe == kSwitchCompanion) ||
      std::ranges::find(profile.companions, requirement.probe) == profile.companions.end())
    return InputError{here + ".probe",
                      fmt::format("is judged of the site's {}, which {} reads", of_switches ? "switches" : "meters",
                                  of_switches ? kSwitchCompanion : kSiteCompanion),
                      "name it here and among the profile's companions"};
  if (requirement.limit.reference != Reference::none || (!requirement.plane.empty() && !of_switches) ||
      requirement.after)
    return InputError{here, "is of the site's meters or switches, and has a relative limit, a plane or `after`",
                      "give an absolute limit; the load decides when it is measured, and the plane of a switch's port "
                      "is that of the load"};
  if (requirement.metric == "energy_efficiency" && requirement.scope != JudgedScope::rack)
    return InputError{
        here + ".scope",
        fmt::format("is {}, and energy_efficiency is of a rack: its nodes hang on all of its feeds", requirement.scope),
        "write rack, and give each node of the site its rack"};
  return std::nullopt;
}

/// Fields of a rise: a counter of one node or of its parts that is read before the load, too.
std::optional<InputError> check_rise(const Requirement& requirement, const Profile& profile, const std::string& here) {
  if (!requirement.rise) return std::nullopt;
  if (!requirement.after) return InputError{here + ".rise", "goes with `after`", "a rise is counted over a load"};
  if (is_together(requirement.scope) || requirement.at_every || requirement.limit.reference != Reference::none ||
      !requirement.limit.at_most) {
    return InputError{here + ".rise", "goes with an absolute at_most for a node or its parts, at one coordinate",
                      "a counter of faults may rise by so much, and no more"};
  }
  const bool is_read = std::ranges::any_of(profile.requirements, [&](const Requirement& other) {
    return !other.after && other.probe == requirement.probe && other.parameters == requirement.parameters &&
           other.plane == requirement.plane;
  });
  if (is_read) return std::nullopt;
  return InputError{here + ".rise",
                    fmt::format("needs a reading before the load, and no other requirement reads {} with the same "
                                "parameters without `after`",
                                requirement.probe),
                    "add one; it may be advisory"};
}

/// A statistic that one good sample, or a few, lift over a limit on this side.
bool is_lucky(Statistic statistic, const Limit& limit) {
  using enum Statistic;
  const bool upper = statistic == max || statistic == p95 || statistic == p99;
  const bool lower = statistic == min || statistic == p01 || statistic == p05;
  return (upper && limit.at_least) || (lower && limit.at_most);
}

std::optional<InputError> check_limit(const Requirement& requirement, const std::string& here) {
  const auto& limit = requirement.limit;
  if (requirement.demand && requirement.demand->surroundings)
    return InputError{here + ".demand.surroundings", "sets attempts aside, and a demand judges each of them", ""};
  if (requirement.demand) return check_condition(*requirement.demand, here + ".demand");
  if (!limit.at_least && !limit.at_most) {
    return InputError{here + ".limit", "has neither at_least nor at_most", "a limit needs one of them, or both"};
  }
  if (limit.at_least && limit.at_most && *limit.at_least > *limit.at_most) {
    return InputError{here + ".limit", "at_least is above at_most", "no value could pass"};
  }
  if (is_lucky(requirement.statistic, limit)) {
    const bool extreme = requirement.statistic == Statistic::max || requirement.statistic == Statistic::min;
    return InputError{here + ".statistic",
                      fmt::format("the {} of the samples against a limit on that side accepts by {}",
                                  requirement.statistic, extreme ? "one lucky sample" : "its few best samples"),
                      "use median, or the extreme or percentile on the other side"};
  }
  if (requirement.at_every && !(requirement.statistic == Statistic::max && limit.at_most) &&
      !(requirement.statistic == Statistic::min && limit.at_least)) {
    return InputError{here + ".at", "\"every\" is judged by the worst sample, and the statistic is not that",
                      "give statistic max with at_most, or min with at_least"};
  }
  return std::nullopt;
}

/// What `of` of a limit or a ceiling names: a peak or derived figure that there is, in `unit`.
std::optional<InputError> check_figure(Reference reference, const std::string& figure, const std::string& unit,
                                       const Profile& profile, const std::string& here) {
  std::vector<std::string> names;
  std::string found_unit;
  if (reference == Reference::peak) {
    for (const auto& [name, peak] : profile.peaks) names.push_back(name);
    const auto peak = profile.peaks.find(figure);
    if (peak != profile.peaks.end()) found_unit = peak->second.unit;
  } else if (reference == Reference::derived) {
    for (const auto& derived : derived_figures()) names.emplace_back(derived.name);
    if (const auto* derived = derived_figure(figure)) found_unit = derived->unit;
  } else {
    return std::nullopt;
  }
  const std::string kind = reference == Reference::peak ? "peak" : "derived figure";
  if (found_unit.empty())
    return InputError{here + ".of", fmt::format("there is no {} '{}'", kind, figure), suggestion(figure, names)};
  if (found_unit == unit) return std::nullopt;
  return InputError{here + ".unit", fmt::format("'{}', but {} '{}' is in '{}'", unit, kind, figure, found_unit), ""};
}

/// A share of itself is always 1; so is one of a metric that is compared with this one.
std::optional<InputError> check_chain(const Requirement& requirement, const Profile& profile, const std::string& here) {
  std::set<std::string> seen;
  std::set<std::string> next = {requirement.metric};
  while (!next.empty()) {
    std::set<std::string> found;
    for (const auto& one : profile.requirements) {
      const bool of_metric = one.limit.reference == Reference::metric && one.probe == requirement.probe;
      if (of_metric && next.contains(one.metric)) found.insert(one.limit.name);
    }
    if (seen.empty() && requirement.limit.reference == Reference::metric) found.insert(requirement.limit.name);
    if (found.contains(requirement.metric)) {
      return InputError{here + ".limit.of",
                        fmt::format("is a share of {} itself{}", requirement.metric,
                                    requirement.limit.name == requirement.metric ? "" : ", through other limits"),
                        "refer to a metric that does not depend on this one"};
    }
    seen.insert(next.begin(), next.end());
    std::erase_if(found, [&](const std::string& name) { return seen.contains(name); });
    next = std::move(found);
  }
  return std::nullopt;
}

/// A part that is not there has no number to fall short; only its absence from the count shows it.
std::optional<InputError> check_counts(const Profile& profile, const std::string& where) {
  for (const auto& requirement : profile.requirements) {
    const std::string scope(word_of(requirement.scope));
    const bool part_of_node =
        requirement.scope != JudgedScope::node && !is_together(requirement.scope) && !is_of_meters(requirement.scope);
    if (!requirement.required || requirement.when_told || !requirement.plane.empty() || !part_of_node ||
        profile.per_node.contains(scope))
      continue;
    return InputError{
        where + ": node",
        fmt::format("does not say how many subjects of kind {} a node has, and {} requires a figure of each", scope,
                    requirement.id),
        fmt::format("add it, such as \"node\": {{\"{}\": 8}}; a missing {} would go unnoticed", scope, scope)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<InputError> unread_inventory(const Profile& profile) {
  if (std::ranges::find(profile.requirements, kInventoryProbe, &Requirement::probe) != profile.requirements.end())
    return std::nullopt;
  for (std::size_t i = 0; i < profile.requirements.size(); ++i) {
    const Limit& limit = profile.requirements[i].limit;
    const auto* figure = limit.reference == Reference::derived ? derived_figure(limit.name) : nullptr;
    if (figure == nullptr || figure->from != DerivedFrom::inventory) continue;
    return InputError{fmt::format("profile {}: requirements[{}].limit.of", profile.name, i),
                      fmt::format("needs the record of {}, and no requirement measures by it", kInventoryProbe),
                      "add one, such as its pcie_narrow_links"};
  }
  return std::nullopt;
}

std::optional<InputError> check_members(const nlohmann::json& entry, const std::string& here) {
  if (!entry.contains("demand")) {
    if (!entry.contains("metric"))
      return InputError{here, "the field 'metric' is missing",
                        "a requirement judges a metric by a limit, or a condition by `demand`"};
    return check_target(entry, here);
  }
  for (const char* name : kOfMetrics) {
    if (entry.contains(name))
      return InputError{fmt::format("{}.{}", here, name), "goes with a metric, and the requirement has `demand`",
                        "a condition is recorded or not, so leave it out"};
  }
  return std::nullopt;
}

bool changes_settings(const Requirement& requirement) {
  const auto found = requirement.parameters.find("allow_settings");
  if (found == requirement.parameters.end()) return false;
  const auto* word = std::get_if<std::string>(&found->second);
  return word == nullptr || *word != "no";
}

std::optional<InputError> unallowed_settings(const Profile& profile, const std::vector<std::string>& only) {
  for (std::size_t i = 0; i < profile.requirements.size(); ++i) {
    const Requirement& requirement = profile.requirements[i];
    if (!changes_settings(requirement) || (!only.empty() && std::ranges::find(only, requirement.id) == only.end()))
      continue;
    return InputError{
        fmt::format("profile {}: requirements[{}].parameters.allow_settings", profile.name, i),
        fmt::format("{} changes machine settings (and restores them), which is not allowed", requirement.probe),
        "with consent of those responsible for the machines: --allow-settings"};
  }
  return std::nullopt;
}

std::optional<InputError> check_requirement(const Requirement& requirement, const Profile& profile,
                                            const std::string& here) {
  const auto& limit = requirement.limit;
  if (auto problem = check_limit(requirement, here)) return problem;
  if (auto problem = check_placement(requirement, here)) return problem;
  if (auto problem = check_during(requirement, profile, here)) return problem;
  if (auto problem = check_rise(requirement, profile, here)) return problem;
  if (auto problem = check_contrast(requirement, here)) return problem;
  if (auto problem = check_repeat(requirement, here)) return problem;
  if (requirement.required && requirement.source.status == "unsourced") {
    return InputError{here + ".source.status", "a required limit is unsourced",
                      "name the source, or set severity to advisory: an unsourced limit can warn, never accept"};
  }
  if (auto problem = check_figure(limit.reference, limit.name, limit.unit, profile, here + ".limit")) return problem;
  if (!limit.capped_by.empty()) {
    if (auto problem = check_figure(Reference::peak, limit.capped_by, limit.unit, profile, here)) {
      problem->where = here + ".limit.capped_by";
      return problem;
    }
  }
  if (requirement.ceiling) {
    const auto& ceiling = *requirement.ceiling;
    if (ceiling.value.has_value() == (ceiling.reference != Reference::none))
      return InputError{here + ".ceiling", "needs either value, with its source, or of", ""};
    if (auto problem = check_figure(ceiling.reference, ceiling.name, limit.unit, profile, here + ".ceiling"))
      return problem;
  }
  if (requirement.limit.reference == Reference::metric && limit.name == requirement.metric)
    return check_chain(requirement, profile, here);
  for (std::size_t i = 0; i < requirement.conditions.size(); ++i) {
    if (auto problem = check_condition(requirement.conditions[i], fmt::format("{}.conditions[{}]", here, i)))
      return problem;
  }
  return std::nullopt;
}

std::optional<InputError> check_profile(const Profile& profile, const std::string& where) {
  if (profile.requirements.empty()) {
    return InputError{where + ": requirements", "is empty, also after inheritance",
                      "a profile that demands nothing can accept nothing"};
  }
  const auto names = [&](const char* companion) { return std::ranges::count(profile.companions, companion) > 0; };
  if (names(kSiteCompanion) && names(kFailoverCompanion)) {
    return InputError{
        where + ": companions",
        fmt::format("names both {} and {}, and the head runs one of them", kSiteCompanion, kFailoverCompanion),
        fmt::format("{} records all of {}", kFailoverCompanion, kSiteCompanion)};
  }
  for (const auto& requirement : profile.requirements) {
    const std::string here = fmt::format("{}: requirement {}", where, requirement.id);
    if (auto problem = check_requirement(requirement, profile, here)) return problem;
    if (auto problem = check_chain(requirement, profile, here)) return problem;
  }
  if (auto problem = check_counts(profile, where)) return problem;
  const auto alone = relative_alone(profile);
  if (alone.empty() || !profile.relative_only.empty()) return std::nullopt;
  return InputError{
      fmt::format("{}: requirement {}", where, alone.front()),
      "compares the machines only with each other, and no absolute limit does more: a uniformly slow fleet "
      "would pass",
      "add a required limit on the same metric that is absolute, a share of a peak or of a derived figure; or say why "
      "this is enough: \"relative_only\": \"…\", which the verdict repeats"};
}

bool stands_beside(const Requirement& other, const Requirement& requirement) {
  if (!other.required || is_relative(other.limit.reference) || other.contrast || other.probe != requirement.probe)
    return false;
  return other.metric == requirement.metric ||
         (requirement.limit.reference == Reference::metric && other.metric == requirement.limit.name);
}

std::vector<std::string> relative_alone(const Profile& profile) {
  std::vector<std::string> ids;
  for (const auto& requirement : profile.requirements) {
    if (!requirement.required || !is_relative(requirement.limit.reference)) continue;
    const bool beside = std::ranges::any_of(
        profile.requirements, [&](const Requirement& other) { return stands_beside(other, requirement); });
    if (!beside) ids.push_back(requirement.id);
  }
  return ids;
}

}  // namespace assay::plan
