// profile: reading, inheriting, checking and writing design targets.
#include "orchestrator/plan/profile.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/plan/catalogue.h"
#include "orchestrator/plan/inherit.h"
#include "orchestrator/plan/loosened.h"
#include "orchestrator/plan/profile_check.h"
#include "orchestrator/plan/repeat.h"
#include "probes/core/suggest.h"
#include "profiles/embedded.h"
#include "profiles/schema.h"

namespace assay::plan {
namespace {

using nlohmann::json;

constexpr const char* kProfileSchema = "assay.profile/1";
constexpr std::size_t kMostBases = 4;   // as the schema says
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

/// How references are written that have no name, and those with one in front of it.
constexpr std::pair<std::string_view, Reference> kReferences[] = {
    {"best_sample", Reference::best_sample},
    {"fleet_median", Reference::fleet_median},
    {"smallest_group", Reference::smallest_group},
    {"smallest_group_by_nodes", Reference::smallest_group_by_nodes},
    {"peak", Reference::peak},
    {"metric", Reference::metric},
    {"derived", Reference::derived},
};

/// The reference and the name behind its colon of an `of`; none for an empty one.
std::pair<Reference, std::string> reference_from(const std::string& of) {
  const auto colon = of.find(':');
  const auto known = std::ranges::find(kReferences, of.substr(0, colon), [](const auto& entry) { return entry.first; });
  if (known == std::end(kReferences)) return {Reference::none, ""};
  return {known->second, colon == std::string::npos ? "" : of.substr(colon + 1)};
}

std::optional<Ceiling> ceiling_from(const json& entry) {
  const auto object = entry.find("ceiling");
  if (object == entry.end()) return std::nullopt;
  Ceiling ceiling{.value = number(*object, "value"), .reference = Reference::none, .name = "", .source = {}};
  std::tie(ceiling.reference, ceiling.name) = reference_from(object->value("of", ""));
  if (const auto source = object->find("source"); source != object->end()) ceiling.source = source_from(*source);
  return ceiling;
}

json to_json(const Ceiling& ceiling) {
  if (!ceiling.value) return {{"of", reference_text(ceiling.reference, ceiling.name)}};
  json object = {{"value", *ceiling.value}};
  if (!ceiling.source.document.empty()) object["source"] = to_json(ceiling.source);
  return object;
}

Limit limit_from(const json& object) {
  Limit limit{.at_least = number(object, "at_least"),
              .at_most = number(object, "at_most"),
              .unit = object.at("unit"),
              .reference = Reference::none,
              .name = ""};
  std::tie(limit.reference, limit.name) = reference_from(object.value("of", ""));
  limit.capped_by = reference_from(object.value("capped_by", "")).second;
  return limit;
}

json to_json(const Limit& limit) {
  json object = {{"unit", limit.unit}};
  if (limit.at_least) object["at_least"] = *limit.at_least;
  if (limit.at_most) object["at_most"] = *limit.at_most;
  if (const std::string of = reference_text(limit.reference, limit.name); !of.empty()) object["of"] = of;
  if (!limit.capped_by.empty()) object["capped_by"] = reference_text(Reference::peak, limit.capped_by);
  return object;
}

Requirement requirement_from(const json& entry) {
  const bool every = entry.contains("at") && entry.at("at").is_string();
  Requirement result{.id = entry.at("id"),
                     .title = entry.at("title"),
                     .probe = entry.at("probe"),
                     .parameters = values_from(entry.value("parameters", json::object())).value_or(Values{}),
                     .metric = entry.at("metric"),
                     .at = values_from(every ? json::object() : entry.value("at", json::object())).value_or(Values{}),
                     .at_every = every,
                     .scope = entry.at("scope"),
                     .during = entry.value("during", ""),
                     .by = choice<Grouping>(entry, "by"),
                     .plane = entry.value("plane", ""),
                     .pairs = choice<PairChoice>(entry, "pairs"),
                     .alone = entry.value("alone", false),
                     .after = entry.value("after", false),
                     .rise = entry.value("rise", false),
                     .rounds = entry.value("rounds", 0),
                     .statistic = choice<Statistic>(entry, "statistic").value_or(Statistic::median),
                     .limit = limit_from(entry.at("limit")),
                     .ceiling = ceiling_from(entry),
                     .when_told = entry.value("when_told", false),
                     .conditions = {},
                     .reproducibility = std::nullopt,
                     .power_w = number(entry, "power_w"),
                     .required = entry.value("severity", "required") == "required",
                     .source = source_from(entry.at("source"))};
  for (const auto& demand : entry.value("conditions", json::array())) {
    result.conditions.push_back({.name = demand.at("name"),
                                 .equals = demand.contains("equals") ? value_from(demand.at("equals")) : std::nullopt,
                                 .at_least = number(demand, "at_least"),
                                 .at_most = number(demand, "at_most"),
                                 .site = demand.value("site", ""),
                                 .surroundings = demand.value("surroundings", false)});
  }
  take_repeat(entry, result);
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
    if (demand.surroundings) object["surroundings"] = true;
    conditions.push_back(std::move(object));
  }
  json object = {{"id", requirement.id},
                 {"title", requirement.title},
                 {"probe", requirement.probe},
                 {"parameters", assay::to_json(requirement.parameters)},
                 {"metric", requirement.metric},
                 {"at", requirement.at_every ? json("every") : json(assay::to_json(requirement.at))},
                 {"scope", requirement.scope},
                 {"statistic", requirement.statistic},
                 {"limit", to_json(requirement.limit)},
                 {"conditions", std::move(conditions)},
                 {"severity", requirement.required ? "required" : "advisory"},
                 {"source", to_json(requirement.source)}};
  if (!requirement.during.empty()) object["during"] = requirement.during;
  if (requirement.by) object["by"] = *requirement.by;
  if (requirement.rounds > 0) object["rounds"] = requirement.rounds;
  if (!requirement.plane.empty()) object["plane"] = requirement.plane;
  if (requirement.pairs) object["pairs"] = *requirement.pairs;
  if (requirement.alone) object["alone"] = true;
  if (requirement.after) object["after"] = true;
  if (requirement.rise) object["rise"] = true;
  if (requirement.when_told) object["when_told"] = true;
  if (requirement.ceiling) object["ceiling"] = to_json(*requirement.ceiling);
  if (requirement.power_w) object["power_w"] = *requirement.power_w;
  put_repeat(requirement, object);
  return object;
}

/// What was loosened below, in a profile that was resolved before; one that extends another finds out by itself.
std::vector<Loosened> loosened_from(const json& document) {
  std::vector<Loosened> all;
  for (const auto& one : document.value("loosened", json::array())) {
    all.push_back({.requirement = one.at("requirement"),
                   .what = one.at("what"),
                   .from = one.at("from"),
                   .to = one.at("to"),
                   .base = one.at("base")});
  }
  return all;
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
  for (const auto& [kind, count] : per_node.items())
    profile.per_node[kind] = count.is_number() ? count.get<int>() : kOfSite;
  if (const auto power = number(document, "power_w")) profile.power_w = power;
  profile.relative_only = document.value("relative_only", profile.relative_only);
  const json peaks = document.value("peaks", json::object());
  for (const auto& [name, peak] : peaks.items()) {
    profile.peaks[name] = {
        .value = peak.at("value"), .unit = peak.at("unit"), .source = source_from(peak.at("source"))};
  }
}

/// Takes the requirements of one document: each is added, or replaces the inherited one of the same id.
std::optional<InputError> take_requirements(const json& document, const std::string& where, const std::string& base,
                                            Profile& profile) {
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
      std::ranges::move(loosened_in(*same, requirement, base), std::back_inserter(profile.loosened));
      *same = std::move(requirement);
    }
  }
  return std::nullopt;
}

std::expected<Profile, InputError> read_level(std::string_view text, const std::string& where,
                                              const ProfileLibrary& library, int level);

/// The profiles that `document` extends, each taken over those before it; one without a name where there are none.
/// What is no list of names is left for the schema to refuse.
std::expected<Profile, InputError> read_bases(const json& document, const std::string& where,
                                              const ProfileLibrary& library, int level) {
  Profile all;
  json bases = document.value("extends", json::array());
  if (bases.is_string()) bases = json::array({bases});
  if (!bases.is_array() || bases.size() > kMostBases) return all;
  for (const json& entry : bases) {
    if (!entry.is_string()) continue;
    const std::string name = entry;
    if (level >= kDeepestInheritance) {
      return std::unexpected(
          InputError{where + ": extends", "inheritance is deeper than eight or runs in a circle", ""});
    }
    const auto text = library(name);
    if (!text) {
      std::vector<std::string> names;
      for (const auto& [known, unused] : embedded_profiles()) names.push_back(known);
      return std::unexpected(
          InputError{where + ": extends", fmt::format("there is no profile '{}'", name), suggestion(name, names)});
    }
    auto base = read_level(*text, name, library, level + 1);
    if (!base) return base;
    if (all.name.empty()) {
      all = std::move(*base);
    } else {
      take_over(all, std::move(*base));
    }
  }
  return all;
}

/// Reads one document over what it inherits.
std::expected<Profile, InputError> read_level(std::string_view text, const std::string& where,
                                              const ProfileLibrary& library, int level) {
  auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  auto base = document->is_object() ? read_bases(*document, where, library, level) : Profile{};
  if (!base) return base;
  if (auto problem = fill_in_like(*document, *base, where)) return std::unexpected(std::move(*problem));
  if (auto problem = profiles::check_schema(*document, "schema", where)) return std::unexpected(*problem);
  if (!base->name.empty() && document->contains("loosened")) {
    return std::unexpected(InputError{where + ": loosened", "is for assay to find out",
                                      "leave it out: the plan lists what is looser than in the profile extended"});
  }
  Profile profile = *base;
  take_design(*document, profile);
  profile.loosened = base->name.empty() ? loosened_from(*document) : base->loosened;
  if (!base->name.empty()) std::ranges::move(loosened_in(*base, profile), std::back_inserter(profile.loosened));
  if (auto problem = take_requirements(*document, where, base->name, profile))
    return std::unexpected(std::move(*problem));
  return profile;
}

}  // namespace

std::string reference_text(Reference reference, const std::string& name) {
  const auto known = std::ranges::find(kReferences, reference, [](const auto& entry) { return entry.second; });
  if (known == std::end(kReferences)) return "";
  return name.empty() ? std::string(known->first) : fmt::format("{}:{}", known->first, name);
}

std::expected<Profile, InputError> read_profile(std::string_view text, const std::string& where,
                                                const ProfileLibrary& library) {
  auto profile = read_level(text, where, library, 0);
  if (!profile) return profile;
  if (auto problem = check_profile(*profile, where)) return std::unexpected(std::move(*problem));
  return profile;
}

std::optional<int> designed_parts(const Profile& profile, const site::Node& node, const std::string& kind) {
  const auto designed = profile.per_node.find(kind);
  if (designed == profile.per_node.end()) return std::nullopt;
  if (designed->second != kOfSite) return designed->second;
  const auto parts = node.parts.find(kind == "pair" ? "gpu" : kind);
  if (parts == node.parts.end()) return std::nullopt;
  return kind == "pair" ? parts->second * (parts->second - 1) : parts->second;
}

json to_json(const Profile& profile) {
  json peaks = json::object();
  for (const auto& [name, peak] : profile.peaks) {
    peaks[name] = {{"value", peak.value}, {"unit", peak.unit}, {"source", to_json(peak.source)}};
  }
  json per_node = json::object();
  for (const auto& [kind, count] : profile.per_node) per_node[kind] = count == kOfSite ? json("site") : json(count);
  json requirements = json::array();
  for (const auto& requirement : profile.requirements) requirements.push_back(to_json(requirement));
  json loosened = json::array();
  for (const auto& one : profile.loosened) {
    loosened.push_back(
        {{"requirement", one.requirement}, {"what", one.what}, {"from", one.from}, {"to", one.to}, {"base", one.base}});
  }
  json object = {{"schema", kProfileSchema},
                 {"name", profile.name},
                 {"title", profile.title},
                 {"revision", profile.revision},
                 {"decision", {{"guard_factor", profile.guard_factor}, {"confidence", profile.confidence}}},
                 {"companions", profile.companions},
                 {"node", std::move(per_node)},
                 {"peaks", std::move(peaks)},
                 {"requirements", std::move(requirements)},
                 {"loosened", std::move(loosened)}};
  if (!profile.relative_only.empty()) object["relative_only"] = profile.relative_only;
  if (profile.power_w) object["power_w"] = *profile.power_w;
  return object;
}

const std::map<std::string, std::string_view>& embedded_profiles() {
  static const auto kProfiles = [] {
    auto documents = profiles::embedded_documents();
    std::erase_if(documents, [](const auto& entry) {
      return entry.first.ends_with("schema") || entry.first == kCatalogueDocument;
    });
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
