// profile: reading, inheriting, checking and writing design targets.
#include "orchestrator/plan/profile.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/plan/advisories.h"
#include "orchestrator/plan/catalogue.h"
#include "orchestrator/plan/inherit.h"
#include "orchestrator/plan/loosened.h"
#include "orchestrator/plan/profile_check.h"
#include "orchestrator/plan/repeat.h"
#include "probes/core/json_fields.h"
#include "probes/core/secret_file.h"
#include "probes/core/suggest.h"
#include "profiles/actions.h"
#include "profiles/embedded.h"
#include "profiles/schema.h"

namespace assay::plan {

template <class Io, Of<Limit> L>
void fields(Io& io, L& limit) {
  io("at_least", limit.at_least), io("at_most", limit.at_most), io("unit", limit.unit);
}

template <class Io, Of<Ceiling> C>
void fields(Io& io, C& ceiling) {
  io("value", ceiling.value), io.sparse("source", ceiling.source);
}

template <class Io, Of<Contrast> C>
void fields(Io& io, C& contrast) {
  io("parameter", contrast.parameter), io("on", contrast.on), io("off", contrast.off);
  io("at_least", contrast.at_least), io("shown_by", contrast.shown_by);
}

template <class Io, Of<Knee> K>
void fields(Io& io, K& knee) {
  io("at_least", knee.at_least);
}

/// But for `at`, `severity`, `repeat` and `reproducibility`, and for the references of limit and ceiling. One that
/// judges a condition has no members of a metric.
template <class Io, Of<Requirement> R>
void fields(Io& io, R& r) {
  io("id", r.id), io("title", r.title), io("probe", r.probe), io.defaulted("parameters", r.parameters);
  io("scope", r.scope), io.sparse("during", r.during), io("by", r.by), io("knee", r.knee);
  io.sparse("plane", r.plane);
  io("pairs", r.pairs), io.sparse("alone", r.alone), io.sparse("after", r.after), io.sparse("rounds", r.rounds);
  io.sparse("when_told", r.when_told), io("power_w", r.power_w), io("source", r.source), io("demand", r.demand);
  if (r.demand) return;
  io("metric", r.metric), io.sparse("rise", r.rise), io.defaulted("statistic", r.statistic);
  io("contrast", r.contrast), io.defaulted("limit", r.limit), io("ceiling", r.ceiling),
      io.defaulted("conditions", r.conditions);
}

template <class Io, Of<Peak> P>
void fields(Io& io, P& peak) {
  io("value", peak.value), io("unit", peak.unit), io("source", peak.source);
}

template <class Io, Of<Loosened> L>
void fields(Io& io, L& one) {
  io("requirement", one.requirement), io("what", one.what), io("from", one.from), io("to", one.to);
  io("base", one.base);
}

namespace {

using nlohmann::json;

constexpr const char* kProfileSchema = "assay.profile/1";
constexpr std::size_t kMostBases = 4;   // as the schema says
constexpr int kDeepestInheritance = 8;  // vendor > product > site > contract leaves room; more is a circle

/// The reference and the name behind its colon of an `of`; none for an empty one.
std::pair<Reference, std::string> reference_from(const std::string& of) {
  const auto colon = of.find(':');
  const auto known = from_word<Reference>(of.substr(0, colon)).value_or(Reference::none);
  return {known, known == Reference::none || colon == std::string::npos ? "" : of.substr(colon + 1)};
}

void take_reference(const json& object, Reference& reference, std::string& name) {
  std::tie(reference, name) = reference_from(object.value("of", ""));
}

Requirement requirement_from(const json& entry) {
  auto result = entry.get<Requirement>();
  result.required = entry.value("severity", "required") == "required";
  if (result.demand) {
    result.statistic = Statistic::max;
    take_repeat({{"repeat", {{"n", 1}}}}, result);
    return result;
  }
  result.at_every = entry.contains("at") && entry.at("at").is_string();
  if (entry.contains("at") && !result.at_every) result.at = values_from(entry.at("at")).value_or(Values{});
  if (result.contrast) {
    result.limit = {.at_least = 1 + result.contrast->at_least, .unit = "1"};
  } else {
    const json& limit = entry.at("limit");
    take_reference(limit, result.limit.reference, result.limit.name);
    result.limit.capped_by = reference_from(limit.value("capped_by", "")).second;
  }
  if (result.ceiling) take_reference(entry.at("ceiling"), result.ceiling->reference, result.ceiling->name);
  take_repeat(entry, result);
  return result;
}

json to_json(const Requirement& requirement) {
  json object = requirement;
  object["severity"] = requirement.required ? "required" : "advisory";
  if (requirement.demand) return object;
  object["at"] = requirement.at_every ? json("every") : assay::to_json(requirement.at);
  const Limit& limit = requirement.limit;
  if (const std::string of = reference_text(limit.reference, limit.name); !of.empty()) object["limit"]["of"] = of;
  if (!limit.capped_by.empty()) object["limit"]["capped_by"] = reference_text(Reference::peak, limit.capped_by);
  if (const auto& ceiling = requirement.ceiling; ceiling && !ceiling->value)
    object["ceiling"] = {{"of", reference_text(ceiling->reference, ceiling->name)}};
  put_repeat(requirement, object);
  if (requirement.contrast) object.erase("limit");
  return object;
}

/// Loosened fields of an already resolved profile; one that extends another computes its own.
std::vector<Loosened> loosened_from(const json& document) {
  return document.value("loosened", std::vector<Loosened>{});
}

/// Merges all fields but the requirements of one document into the inherited ones.
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
  if (const auto power = document.find("power_w"); power != document.end()) profile.power_w = power->get<double>();
  profile.relative_only = document.value("relative_only", profile.relative_only);
  const json peaks = document.value("peaks", json::object());
  for (const auto& [name, peak] : peaks.items()) peak.get_to(profile.peaks[name]);
}

/// Takes the requirements of one document: each is added, or replaces the inherited one of the same id.
std::optional<InputError> take_requirements(const json& document, const std::string& where, const std::string& base,
                                            Profile& profile) {
  std::set<std::string> own_ids;
  for (std::size_t i = 0; i < document.at("requirements").size(); ++i) {
    const std::string here = fmt::format("{}: requirements[{}]", where, i);
    if (auto problem = check_members(document.at("requirements")[i], here)) return problem;
    Requirement requirement = requirement_from(document.at("requirements")[i]);
    if (!own_ids.insert(requirement.id).second) {
      return InputError{here + ".id", fmt::format("'{}' is used twice", requirement.id),
                        "every requirement has an id of its own"};
    }
    if (auto problem = check_requirement(requirement, profile, here)) return problem;
    const auto same = std::ranges::find(profile.requirements, requirement.id, &Requirement::id);
    if (same == profile.requirements.end()) {
      profile.requirements.push_back(std::move(requirement));
    } else if (same->probe != requirement.probe || same->metric != requirement.metric ||
               same->judged() != requirement.judged()) {
      return InputError{
          here + ".id",
          fmt::format("'{}' is the inherited figure {} of {}, and this is {} of {}", requirement.id, same->figure(),
                      same->probe, requirement.figure(), requirement.probe),
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

/// The profiles that `document` extends, each taken over those before it; one without a name if there are none.
/// A value that is no list of names is left for the schema to refuse.
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

/// Reads one document and merges it into the inherited one.
std::expected<Profile, InputError> read_level(std::string_view text, const std::string& where,
                                              const ProfileLibrary& library, int level) {
  auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  auto base = document->is_object() ? read_bases(*document, where, library, level) : Profile{};
  if (!base) return base;
  if (auto problem = fill_in_like(*document, *base, where)) return std::unexpected(std::move(*problem));
  fill_in_advisories(*document);
  if (auto problem = profiles::check_schema(*document, "schema", where)) return std::unexpected(*problem);
  if (!base->name.empty() && document->contains("loosened")) {
    return std::unexpected(InputError{where + ": loosened", "is for assay to find out",
                                      "leave it out: the plan lists the fields looser than in the profile extended"});
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
  if (reference == Reference::none) return "";
  return name.empty() ? std::string(word_of(reference)) : fmt::format("{}:{}", reference, name);
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
  json per_node = json::object();
  for (const auto& [kind, count] : profile.per_node) per_node[kind] = count == kOfSite ? json("site") : json(count);
  json requirements = json::array();
  for (const auto& requirement : profile.requirements) requirements.push_back(to_json(requirement));
  json object = {{"schema", kProfileSchema},
                 {"name", profile.name},
                 {"title", profile.title},
                 {"revision", profile.revision},
                 {"decision", {{"guard_factor", profile.guard_factor}, {"confidence", profile.confidence}}},
                 {"companions", profile.companions},
                 {"node", std::move(per_node)},
                 {"peaks", profile.peaks},
                 {"requirements", std::move(requirements)},
                 {"loosened", profile.loosened}};
  if (!profile.relative_only.empty()) object["relative_only"] = profile.relative_only;
  if (profile.power_w) object["power_w"] = *profile.power_w;
  return object;
}

const std::map<std::string, std::string_view>& embedded_profiles() {
  static const auto kProfiles = [] {
    auto documents = profiles::embedded_documents();
    std::erase_if(documents, [](const auto& entry) {
      return entry.first.ends_with("schema") || entry.first == kCatalogueDocument ||
             entry.first == kAdvisoriesDocument || entry.first == profiles::kActionsDocument ||
             entry.first.starts_with("catalogues/");
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
  const auto text = read_deciding_file(name);
  if (!text) return std::unexpected(text.error());
  return read_profile(*text, name, embedded_profile);
}

}  // namespace assay::plan
