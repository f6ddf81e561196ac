// catalogue: reads the descriptions in profiles/probes.json, compares a plan with them, and checks names.
#include "orchestrator/plan/catalogue.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "orchestrator/files/difference.h"
#include "orchestrator/files/digest.h"
#include "probes/core/json_io.h"
#include "probes/core/suggest.h"
#include "profiles/embedded.h"

namespace assay::plan {
namespace {

/// An entry of the catalogue that is not read yet.
struct Entry {
  std::string_view text, name;
  int revision = 0;
};

/// The entries of each list, "probes" and "former". The catalogue has 1.5 MB, of which most commands need an entry or
/// two, so that they are cut out by the layout of dump(1), which a test compares with a parser's reading: lists are
/// indented by one, entries by two, their fields by three.
std::map<std::string_view, std::vector<Entry>> cut_entries() {
  constexpr std::string_view kName = "\n   \"name\": \"", kRevision = "\n   \"revision\": ";
  const std::string_view text = profiles::embedded_documents().at(kCatalogueDocument);
  std::map<std::string_view, std::vector<Entry>> lists;
  std::vector<Entry>* list = nullptr;
  Entry entry;
  std::size_t begin = 0;
  for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("\n \"")) {
      list = &lists[rest.substr(3, rest.find('"', 3) - 3)];
    } else if (rest.starts_with("\n  {")) {
      begin = at;
    } else if (rest.starts_with(kName)) {
      entry.name = rest.substr(kName.size(), rest.find('"', kName.size()) - kName.size());
    } else if (rest.starts_with(kRevision)) {
      std::from_chars(rest.data() + kRevision.size(), rest.data() + rest.size(), entry.revision);
    } else if (rest.starts_with("\n  }")) {
      constexpr std::size_t kEnd = 4;
      entry.text = text.substr(begin, at + kEnd - begin);
      list->push_back(entry);
    }
  }
  return lists;
}

const std::vector<Entry>& entries_of(std::string_view list) {
  static const auto kEntries = cut_entries();
  return kEntries.at(list);
}

nlohmann::json read_entry(const Entry& entry) { return parse_json_or_throw(entry.text, "profiles/probes.json"); }

KnownProbe read_known(const Entry& entry) {
  KnownProbe known{.name = std::string(entry.name), .revision = entry.revision, .document = read_entry(entry)};
  for (const auto& former : entries_of("former")) {
    if (former.name == entry.name && former.revision == entry.revision)
      known.former.push_back(known.document.patch(read_entry(former).at("patch")));
  }
  return known;
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
  static const std::vector<KnownProbe> kProbes = [] {
    std::vector<KnownProbe> all;
    for (const auto& entry : entries_of("probes")) all.push_back(read_known(entry));
    return all;
  }();
  return kProbes;
}

const KnownProbe* known_probe(std::string_view name, int revision) {
  static std::mutex lock;
  static std::map<const Entry*, KnownProbe> read;
  const auto& entries = entries_of("probes");
  const auto found =
      std::ranges::find_if(entries, [&](const Entry& one) { return one.name == name && one.revision == revision; });
  if (found == entries.end()) return nullptr;
  const std::lock_guard locked(lock);
  const auto at = read.find(&*found);
  return at != read.end() ? &at->second : &read.emplace(&*found, read_known(*found)).first->second;
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
