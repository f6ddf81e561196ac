// partial_plan: the nodes that stay, and the plan before.
#include "orchestrator/cli/partial_plan.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/cells/references.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/site/sources.h"
#include "probes/core/suggest.h"

namespace assay::cli {

std::optional<InputError> keep_nodes(site::Site& site, const std::string& nodes) {
  const auto wanted = site::expand_host_list(nodes);
  if (!wanted)
    return InputError{"--nodes", fmt::format("'{}': {}", nodes, wanted.error()), "write n07,n09 or n[07-09]"};
  std::vector<std::string> known;
  for (const auto& node : site.nodes) known.push_back(node.name);
  for (const auto& name : *wanted) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return InputError{"--nodes", fmt::format("the site {} has no node '{}'", site.name, name), suggestion(name, known)};
  }
  std::erase_if(site.nodes,
                [&](const site::Node& node) { return std::ranges::find(*wanted, node.name) == wanted->end(); });
  site::keep_nodes(site.crossings, *wanted);
  return std::nullopt;
}

std::string file_of_run(const std::string& directory, const std::string& name) {
  std::error_code unknown;  // refused when it is read
  const std::string in_dossier = directory + "/evidence/" + name;
  return std::filesystem::exists(in_dossier, unknown) ? in_dossier : directory + "/" + name;
}

std::expected<std::string, InputError> continued_plan(const std::string& directory, const plan::Profile& profile) {
  const std::string path = file_of_run(directory, "plan.json");
  const auto bytes = read_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  const auto plan = plan::read_plan(*bytes, path);
  if (!plan) return std::unexpected(plan.error());
  if (plan->profile.name != profile.name || plan->profile.revision != profile.revision) {
    return std::unexpected(
        InputError{"--continues",
                   fmt::format("the plan in {} is of profile {}, revision {}, and this is {}, revision {}", directory,
                               plan->profile.name, plan->profile.revision, profile.name, profile.revision),
                   "continue a test with the profile that it began with"});
  }
  return files::sha256(*bytes);
}

plan::EarlierFleet fleet_of_continued(const std::string& directory, const plan::Plan& plan,
                                      const std::vector<std::string>& requirements) {
  const std::string path = file_of_run(directory, "journal.jsonl");
  const std::string root = std::filesystem::path(path).parent_path().string();
  const auto run = judge::read_run(root);
  const auto journal = read_file(path);
  if (!run || !journal) return {};
  auto fleet = judge::fleet_of_run(*run, judge::evidence_in(root), plan, requirements);
  if (fleet.references.empty()) return {};
  fleet.journal_sha256 = files::sha256(*journal);
  return fleet;
}

}  // namespace assay::cli
