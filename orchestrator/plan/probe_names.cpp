// probe_names: the catalogue of probes, and names in the built-in profiles.
#include "orchestrator/plan/probe_names.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/plan/catalogue.h"
#include "probes/core/json_io.h"
#include "probes/core/suggest.h"

namespace assay::plan {

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
