// catalogue: reads the descriptions in profiles/probes.json, compares a plan with them, and checks names.
#include "orchestrator/plan/catalogue.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "orchestrator/files/difference.h"
#include "orchestrator/files/digest.h"
#include "probes/core/json_io.h"
#include "probes/core/suggest.h"
#include "profiles/embedded.h"

namespace assay::plan {
namespace {

constexpr const char* kCatalogueSchema = "assay.probes/1";

std::vector<KnownProbe> read_catalogue() {
  const auto document =
      parse_json_or_throw(profiles::embedded_documents().at(kCatalogueDocument), "profiles/probes.json");
  if (document.at("schema") != kCatalogueSchema)
    throw std::runtime_error("profiles/probes.json is not an assay.probes/1");
  std::vector<KnownProbe> all;
  for (const auto& entry : document.at("probes")) {
    all.push_back({.name = entry.at("name"), .revision = entry.at("revision"), .document = entry});
  }
  for (const auto& entry : document.at("former")) {
    for (auto& known : all) {
      if (known.name == entry.at("name").get<std::string>() && known.revision == entry.at("revision"))
        known.former.push_back(known.document.patch(entry.at("patch")));
    }
  }
  return all;
}

/// Whether a plan may hold `document` for the probe `known`: as it is known, in former words, or either in a
/// form of earlier versions.
bool is_known_as(const nlohmann::json& document, const KnownProbe& known) {
  const auto is = [&](const nlohmann::json& words) {
    return document == words || std::ranges::count(in_old_forms(words), document) > 0;
  };
  return is(known.document) || std::ranges::any_of(known.former, is);
}

bool is_all_zeros(std::string_view digest) {
  return std::ranges::all_of(digest, [](char c) { return c == '0'; });
}

}  // namespace

bool differ_in_words_alone(const nlohmann::json& one, const nlohmann::json& other) {
  constexpr std::array<std::string_view, 5> kWords = {"/measures", "/method", "/source", "/needs", "/meaning"};
  const nlohmann::json changes = nlohmann::json::diff(one, other);
  return std::ranges::all_of(changes, [&](const nlohmann::json& change) {
    const std::string path = change.at("path");
    return change.at("op") == "replace" && change.at("value").is_string() &&
           std::ranges::any_of(kWords, [&](std::string_view word) { return path.ends_with(word); });
  });
}

const std::vector<KnownProbe>& known_probes() {
  static const std::vector<KnownProbe> kProbes = read_catalogue();
  return kProbes;
}

const KnownProbe* known_probe(std::string_view name, int revision) {
  const auto& all = known_probes();
  const auto found =
      std::ranges::find_if(all, [&](const KnownProbe& one) { return one.name == name && one.revision == revision; });
  return found == all.end() ? nullptr : &*found;
}

std::optional<InputError> check_probes(const Plan& plan, const std::string& where) {
  for (const auto& [name, probe] : plan.probes) {
    const std::string here = fmt::format("{}: probes.{}", where, name);
    if (!files::is_sha256(probe.sha256) || is_all_zeros(probe.sha256)) {
      return InputError{here + ".sha256", fmt::format("'{}' is not the SHA-256 of a program", probe.sha256),
                        "plan with the installed probes"};
    }
    if (name != probe.description.name)
      return InputError{here, fmt::format("describes itself as '{}'", probe.description.name), ""};
    const KnownProbe* known = known_probe(name, probe.description.revision);
    if (known == nullptr || is_known_as(probe.description.document, *known)) continue;
    return InputError{here + ".description",
                      fmt::format("is not that of {} revision {}: {}", name, known->revision,
                                  files::first_difference(probe.description.document, known->document)),
                      "a probe whose description changes has a higher revision, and an entry in profiles/probes.json"};
  }
  return std::nullopt;
}

bool is_known(const Description& description) {
  const KnownProbe* known = known_probe(description.name, description.revision);
  return known != nullptr && description.document.at("schema") == known->document.at("schema");
}

std::vector<std::string> unknown_probes(const Plan& plan) {
  std::vector<std::string> names;
  for (const auto& [name, probe] : plan.probes) {
    if (!is_known(probe.description)) names.push_back(fmt::format("{} revision {}", name, probe.description.revision));
  }
  return names;
}

std::vector<std::string> known_probe_names() {
  std::vector<std::string> names;
  for (const auto& probe : known_probes()) names.push_back(probe.name);
  for (const auto& [name, text] : embedded_profiles()) {
    const auto document = parse_json(text, name);
    if (!document || !document->contains("requirements")) continue;
    for (const auto& requirement : document->at("requirements")) {
      if (requirement.contains("probe")) names.push_back(requirement.at("probe"));
    }
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

std::optional<InputError> find_unknown_probe(const Profile& profile, const std::vector<Program>& programs) {
  std::vector<std::string> names;  // of the catalogue, read where a probe is missing: it is large
  for (std::size_t i = 0; i < profile.requirements.size(); ++i) {
    const std::string& probe = profile.requirements[i].probe;
    if (std::ranges::find(programs, probe, &Program::name) != programs.end()) continue;
    if (names.empty()) names = known_probe_names();
    if (std::ranges::binary_search(names, probe)) continue;
    for (const auto& program : programs) names.push_back(program.name);
    return InputError{fmt::format("profile {}: requirements[{}].probe", profile.name, i),
                      fmt::format("there is no probe '{}'", probe),
                      suggestion(probe, names) + "; --allow-missing plans without it"};
  }
  return std::nullopt;
}

}  // namespace assay::plan
