// profile: reading, inheriting, checking and writing design targets.
#include "orchestrator/plan/profile.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "probes/core/suggest.h"
#include "profiles/embedded.h"
#include "profiles/schema.h"

namespace assay::plan {
namespace {

using nlohmann::json;

constexpr const char* kProfileSchema = "assay.profile/1";
constexpr int kDeepestInheritance = 8;  // vendor > product > site > contract leaves room; more is a circle

template <class Enum>
std::optional<Enum> choice(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? std::nullopt : std::optional<Enum>(found->get<Enum>());
}

std::optional<double> number(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? std::nullopt : std::optional<double>(found->get<double>());
}

Source source_from(const json& object) {
  return {.document = object.at("document"),
          .figure = object.value("figure", ""),
          .date = object.value("date", ""),
          .method = object.value("method", ""),
          .status = object.at("status")};
}

json to_json(const Source& source) {
  json object = {
      {"document", source.document}, {"figure", source.figure}, {"method", source.method}, {"status", source.status}};
  if (!source.date.empty()) object["date"] = source.date;
  return object;
}

Limit limit_from(const json& object) {
  Limit limit{.at_least = number(object, "at_least"),
              .at_most = number(object, "at_most"),
              .unit = object.at("unit"),
              .reference = Reference::none,
              .name = ""};
  const std::string of = object.value("of", "");
  if (of == "best_sample") limit.reference = Reference::best_sample;
  if (of == "fleet_median") limit.reference = Reference::fleet_median;
  if (of == "smallest_group") limit.reference = Reference::smallest_group;
  if (of == "smallest_group_by_nodes") limit.reference = Reference::smallest_group_by_nodes;
  if (of.starts_with("peak:")) limit.reference = Reference::peak;
  if (of.starts_with("metric:")) limit.reference = Reference::metric;
  if (const auto colon = of.find(':'); colon != std::string::npos) limit.name = of.substr(colon + 1);
  return limit;
}

json to_json(const Limit& limit) {
  json object = {{"unit", limit.unit}};
  if (limit.at_least) object["at_least"] = *limit.at_least;
  if (limit.at_most) object["at_most"] = *limit.at_most;
  switch (limit.reference) {
    case Reference::none:
      break;
    case Reference::peak:
      object["of"] = "peak:" + limit.name;
      break;
    case Reference::metric:
      object["of"] = "metric:" + limit.name;
      break;
    case Reference::best_sample:
      object["of"] = "best_sample";
      break;
    case Reference::fleet_median:
      object["of"] = "fleet_median";
      break;
    case Reference::smallest_group:
      object["of"] = "smallest_group";
      break;
    case Reference::smallest_group_by_nodes:
      object["of"] = "smallest_group_by_nodes";
      break;
  }
  return object;
}

Requirement requirement_from(const json& entry) {
  Requirement result{.id = entry.at("id"),
                     .title = entry.at("title"),
                     .probe = entry.at("probe"),
                     .parameters = values_from(entry.value("parameters", json::object())).value_or(Values{}),
                     .metric = entry.at("metric"),
                     .at = values_from(entry.value("at", json::object())).value_or(Values{}),
                     .scope = entry.at("scope"),
                     .by = choice<Grouping>(entry, "by"),
                     .plane = entry.value("plane", ""),
                     .pairs = choice<PairChoice>(entry, "pairs"),
                     .alone = entry.value("alone", false),
                     .rounds = entry.value("rounds", 0),
                     .statistic = choice<Statistic>(entry, "statistic").value_or(Statistic::median),
                     .limit = limit_from(entry.at("limit")),
                     .conditions = {},
                     .repeat_n = 10,
                     .looks = 1,
                     .power_w = number(entry, "power_w"),
                     .required = entry.value("severity", "required") == "required",
                     .source = source_from(entry.at("source"))};
  for (const auto& demand : entry.value("conditions", json::array())) {
    result.conditions.push_back({.name = demand.at("name"),
                                 .equals = demand.contains("equals") ? value_from(demand.at("equals")) : std::nullopt,
                                 .at_least = number(demand, "at_least"),
                                 .at_most = number(demand, "at_most"),
                                 .site = demand.value("site", "")});
  }
  if (const auto repeat = entry.find("repeat"); repeat != entry.end()) {
    result.repeat_n = repeat->value("n", result.repeat_n);
    result.looks = repeat->value("looks", result.looks);
  }
  return result;
}

json to_json(const Requirement& requirement) {
  json conditions = json::array();
  for (const auto& demand : requirement.conditions) {
    json object = {{"name", demand.name}};
    if (demand.equals) object["equals"] = assay::to_json(*demand.equals);
    if (demand.at_least) object["at_least"] = *demand.at_least;
    if (demand.at_most) object["at_most"] = *demand.at_most;
    if (!demand.site.empty()) object["site"] = demand.site;
    conditions.push_back(std::move(object));
  }
  json object = {{"id", requirement.id},
                 {"title", requirement.title},
                 {"probe", requirement.probe},
                 {"parameters", assay::to_json(requirement.parameters)},
                 {"metric", requirement.metric},
                 {"at", assay::to_json(requirement.at)},
                 {"scope", requirement.scope},
                 {"statistic", requirement.statistic},
                 {"limit", to_json(requirement.limit)},
                 {"conditions", std::move(conditions)},
                 {"repeat", {{"n", requirement.repeat_n}, {"looks", requirement.looks}}},
                 {"severity", requirement.required ? "required" : "advisory"},
                 {"source", to_json(requirement.source)}};
  if (requirement.by) object["by"] = *requirement.by;
  if (requirement.rounds > 0) object["rounds"] = requirement.rounds;
  if (!requirement.plane.empty()) object["plane"] = requirement.plane;
  if (requirement.pairs) object["pairs"] = *requirement.pairs;
  if (requirement.alone) object["alone"] = true;
  if (requirement.power_w) object["power_w"] = *requirement.power_w;
  return object;
}

/// What goes with one scope or with a plane alone.
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
  for (std::size_t i = 0; i < requirement.conditions.size(); ++i) {
    if (requirement.conditions[i].site.empty() || !requirement.plane.empty()) continue;
    return InputError{fmt::format("{}.conditions[{}].site", here, i),
                      "asks what the site says of a port, and the requirement names no plane", "give `plane`"};
  }
  return std::nullopt;
}

std::optional<InputError> check_requirement(const Requirement& requirement, const Profile& profile,
                                            const std::string& here) {
  const auto& limit = requirement.limit;
  if (!limit.at_least && !limit.at_most) {
    return InputError{here + ".limit", "has neither at_least nor at_most", "a limit needs one of them, or both"};
  }
  if (limit.at_least && limit.at_most && *limit.at_least > *limit.at_most) {
    return InputError{here + ".limit", "at_least is above at_most", "no value could pass"};
  }
  if ((requirement.statistic == Statistic::max && limit.at_least) ||
      (requirement.statistic == Statistic::min && limit.at_most)) {
    return InputError{here + ".statistic",
                      fmt::format("the {} of the samples against a limit on that side accepts by one lucky sample",
                                  requirement.statistic),
                      "use median, or the extreme on the other side"};
  }
  if (auto problem = check_placement(requirement, here)) return problem;
  if (requirement.required && requirement.source.status == "unsourced") {
    return InputError{here + ".source.status", "a required limit is unsourced",
                      "name the source, or set severity to advisory: an unsourced limit can warn, never accept"};
  }
  if (limit.reference == Reference::peak) {
    std::vector<std::string> names;
    for (const auto& [name, peak] : profile.peaks) names.push_back(name);
    const auto peak = profile.peaks.find(limit.name);
    if (peak == profile.peaks.end()) {
      return InputError{here + ".limit.of", fmt::format("there is no peak '{}'", limit.name),
                        suggestion(limit.name, names)};
    }
    if (peak->second.unit != limit.unit) {
      return InputError{here + ".limit.unit",
                        fmt::format("'{}', but peak '{}' is in '{}'", limit.unit, limit.name, peak->second.unit), ""};
    }
  }
  for (std::size_t i = 0; i < requirement.conditions.size(); ++i) {
    const auto& demand = requirement.conditions[i];
    const int kinds =
        (demand.equals ? 1 : 0) + (demand.at_least || demand.at_most ? 1 : 0) + (demand.site.empty() ? 0 : 1);
    if (kinds > 1)
      return InputError{fmt::format("{}.conditions[{}]", here, i), "has two of equals, a bound and site",
                        "use one of them"};
  }
  return std::nullopt;
}

/// A part that is not there has no number to fall short; only its absence from the count shows it.
std::optional<InputError> check_counts(const Profile& profile, const std::string& where) {
  for (const auto& requirement : profile.requirements) {
    const std::string scope(word_of(requirement.scope));
    const bool part_of_node = requirement.scope != JudgedScope::node && !is_together(requirement.scope);
    if (!requirement.required || !part_of_node || profile.per_node.contains(scope)) continue;
    return InputError{
        where + ": node",
        fmt::format("does not say how many subjects of kind {} a node has, and {} requires a figure of each", scope,
                    requirement.id),
        fmt::format("add it, such as \"node\": {{\"{}\": 8}}; a missing {} would go unnoticed", scope, scope)};
  }
  return std::nullopt;
}

/// Takes everything but the requirements of one document over what it inherits.
void take_design(const json& document, Profile& profile) {
  profile.name = document.at("name");
  profile.title = document.at("title");
  profile.revision = document.at("revision");
  if (const auto decision = document.find("decision"); decision != document.end()) {
    profile.guard_factor = decision->value("guard_factor", profile.guard_factor);
    profile.confidence = decision->value("confidence", profile.confidence);
  }
  if (const auto list = document.find("companions"); list != document.end()) profile.companions = *list;
  const json per_node = document.value("node", json::object());
  for (const auto& [kind, count] : per_node.items()) profile.per_node[kind] = count;
  if (const auto power = number(document, "power_w")) profile.power_w = power;
  const json peaks = document.value("peaks", json::object());
  for (const auto& [name, peak] : peaks.items()) {
    profile.peaks[name] = {
        .value = peak.at("value"), .unit = peak.at("unit"), .source = source_from(peak.at("source"))};
  }
}

/// Takes the requirements of one document: each is added, or replaces the inherited one of the same id.
std::optional<InputError> take_requirements(const json& document, const std::string& where, Profile& profile) {
  std::set<std::string> own_ids;
  for (std::size_t i = 0; i < document.at("requirements").size(); ++i) {
    Requirement requirement = requirement_from(document.at("requirements")[i]);
    const std::string here = fmt::format("{}: requirements[{}]", where, i);
    if (!own_ids.insert(requirement.id).second) {
      return InputError{here + ".id", fmt::format("'{}' is used twice", requirement.id),
                        "every requirement has an id of its own"};
    }
    if (auto problem = check_requirement(requirement, profile, here)) return problem;
    const auto same = std::ranges::find(profile.requirements, requirement.id, &Requirement::id);
    if (same == profile.requirements.end()) {
      profile.requirements.push_back(std::move(requirement));
    } else if (same->probe != requirement.probe || same->metric != requirement.metric) {
      return InputError{
          here + ".id",
          fmt::format("'{}' is the inherited figure {} of {}, and this is {} of {}", requirement.id, same->metric,
                      same->probe, requirement.metric, requirement.probe),
          "a figure takes the place of one of the same probe and metric; give another one an id of its own"};
    } else {
      *same = std::move(requirement);
    }
  }
  return std::nullopt;
}

/// Reads one document over what it inherits.
std::expected<Profile, InputError> read_level(std::string_view text, const std::string& where,
                                              const ProfileLibrary& library, int level) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (auto problem = profiles::check_schema(*document, "schema", where)) return std::unexpected(*problem);
  Profile profile;
  if (const auto base = document->find("extends"); base != document->end()) {
    const std::string name = *base;
    if (level >= kDeepestInheritance) {
      return std::unexpected(
          InputError{where + ": extends", "inheritance is deeper than eight or runs in a circle", ""});
    }
    const auto base_text = library(name);
    if (!base_text) {
      std::vector<std::string> names;
      for (const auto& [known, unused] : embedded_profiles()) names.push_back(known);
      return std::unexpected(
          InputError{where + ": extends", fmt::format("there is no profile '{}'", name), suggestion(name, names)});
    }
    auto inherited = read_level(*base_text, name, library, level + 1);
    if (!inherited) return inherited;
    profile = std::move(*inherited);
  }
  take_design(*document, profile);
  if (auto problem = take_requirements(*document, where, profile)) return std::unexpected(std::move(*problem));
  return profile;
}

}  // namespace

std::expected<Profile, InputError> read_profile(std::string_view text, const std::string& where,
                                                const ProfileLibrary& library) {
  auto profile = read_level(text, where, library, 0);
  if (profile && profile->requirements.empty()) {
    return std::unexpected(InputError{where + ": requirements", "is empty, also after inheritance",
                                      "a profile that demands nothing can accept nothing"});
  }
  if (profile) {
    if (auto problem = check_counts(*profile, where)) return std::unexpected(*problem);
  }
  return profile;
}

json to_json(const Profile& profile) {
  json peaks = json::object();
  for (const auto& [name, peak] : profile.peaks) {
    peaks[name] = {{"value", peak.value}, {"unit", peak.unit}, {"source", to_json(peak.source)}};
  }
  json requirements = json::array();
  for (const auto& requirement : profile.requirements) requirements.push_back(to_json(requirement));
  json object = {{"schema", kProfileSchema},
                 {"name", profile.name},
                 {"title", profile.title},
                 {"revision", profile.revision},
                 {"decision", {{"guard_factor", profile.guard_factor}, {"confidence", profile.confidence}}},
                 {"companions", profile.companions},
                 {"node", profile.per_node},
                 {"peaks", std::move(peaks)},
                 {"requirements", std::move(requirements)}};
  if (profile.power_w) object["power_w"] = *profile.power_w;
  return object;
}

const std::map<std::string, std::string_view>& embedded_profiles() {
  static const auto kProfiles = [] {
    auto documents = profiles::embedded_documents();
    std::erase_if(documents, [](const auto& entry) { return entry.first.ends_with("schema"); });
    return documents;
  }();
  return kProfiles;
}

std::optional<std::string> embedded_profile(const std::string& name) {
  const auto found = embedded_profiles().find(name);
  return found == embedded_profiles().end() ? std::nullopt : std::optional<std::string>(found->second);
}

std::expected<Profile, InputError> profile_named(const std::string& name) {
  if (const auto text = embedded_profile(name)) return read_profile(*text, "profile " + name, embedded_profile);
  if (name.find('/') == std::string::npos && !name.ends_with(".json")) {
    std::vector<std::string> names;
    for (const auto& [known, unused] : embedded_profiles()) names.push_back(known);
    return std::unexpected(
        InputError{"--profile", fmt::format("there is no profile '{}'", name), suggestion(name, names)});
  }
  const auto text = read_file(name);
  if (!text) return std::unexpected(text.error());
  return read_profile(*text, name, embedded_profile);
}

}  // namespace assay::plan
