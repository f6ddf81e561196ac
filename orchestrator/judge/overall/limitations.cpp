// limitations: counts the requirements that were not judged because the machine does not report a figure, and finds
// numbers of parts in the site that nothing counts, and required limits that compare the machines only with each other.
#include "orchestrator/judge/overall/limitations.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/cells/listed_parts.h"
#include "orchestrator/plan/profile_check.h"

namespace assay::judge {
namespace {

std::vector<Deviation> not_checked(const plan::Plan& plan, const Results& results) {
  std::map<std::string_view, std::size_t> unchecked;
  std::map<std::string_view, std::size_t> all;
  for (const auto& requirement : plan.profile.requirements) {
    if (requirement.when_told && requirement.required) all[requirement.id] = 0;
  }
  for (const auto& result : results) {
    const auto known = all.find(result.requirement);
    if (known == all.end()) continue;
    ++known->second;
    if (!result.required) ++unchecked[result.requirement];
  }
  std::vector<Deviation> deviations;
  for (const auto& [id, count] : unchecked) {
    deviations.push_back(
        {.what = fmt::format("Not checked, because this machine does not report it: {}, on {} of {} subjects.", id,
                             count, all.at(id)),
         .kind = DeviationKind::not_checked});
  }
  return deviations;
}

/// The versions that pass by advisories of which none speaks of their branch.
std::vector<Deviation> without_advisory(const plan::Plan& plan, const Results& results) {
  std::map<std::pair<std::string, std::string>, std::size_t> cells;  // component and branch
  for (const auto& result : results) {
    const auto* requirement = result.outcome == Outcome::pass ? plan.requirement(result.requirement) : nullptr;
    if (requirement == nullptr) continue;
    const auto look = [&](const plan::RequiredCondition& demand) {
      if (!demand.version || demand.version->advisories.empty()) return;
      std::set<std::string> branches;
      for (const auto& one : result.conditions) {
        if (one.name != demand.name || !one.seen) continue;
        const auto found = rows_on_branch(*demand.version, plan::version_in(*one.seen));
        if (found.rows == 0) branches.insert(found.branch);
      }
      for (const auto& branch : branches) ++cells[{demand.version->advisories, branch}];
    };
    if (requirement->demand) look(*requirement->demand);
    std::ranges::for_each(requirement->conditions, look);
  }
  std::vector<Deviation> deviations;
  for (const auto& [branch, count] : cells) {
    deviations.push_back(
        {.what =
             fmt::format("No advisory speaks of branch {} of {}, so nothing is known of it; cells that pass by it: {}.",
                         branch.second, branch.first, count),
         .kind = DeviationKind::not_checked});
  }
  return deviations;
}

/// The numbers of parts in the site that no step counts.
std::vector<Deviation> uncounted(const plan::Plan& plan) {
  std::set<std::pair<std::string_view, std::string_view>> counted, listed;  // node and kind
  for (const auto& step : plan.steps) {
    const auto probe = plan.probes.find(step.probe);
    if (probe == plan.probes.end() || step.nodes.size() != 1) continue;
    for (const auto& [metric, kind] : kPartCounts) {
      if (probe->second.description.metric(metric) != nullptr) counted.emplace(step.nodes.front(), kind);
    }
    listed.emplace(step.nodes.front(), listed_kind(probe->second.description));
  }
  std::map<std::string_view, std::vector<std::string_view>> kinds;
  for (const auto& node : plan.site.nodes) {
    for (const auto& [kind, count] : node.parts) {
      const auto is_designed = [&](const char* other) { return plan.profile.per_node.contains(other); };
      const bool designed = is_designed(kind.c_str()) || (kind == "gpu" && is_designed("pair")) ||
                            (kind == "gpu_instance" && is_designed("gpu"));
      const bool named = node.part_names.contains(kind);
      if (counted.contains({node.name, kind}) || (named && listed.contains({node.name, kind}))) continue;
      if (named || !designed) kinds[kind].push_back(node.name);
    }
  }
  std::vector<Deviation> deviations;
  for (const auto& [kind, nodes] : kinds) {
    const std::string more = nodes.size() > 1 ? fmt::format(" and {} more", nodes.size() - 1) : "";
    deviations.push_back(
        {.what = fmt::format("Not checked, because nothing counts or names them: the parts of kind {} that the "
                             "site states of {}{}.",
                             kind, nodes.front(), more),
         .kind = DeviationKind::not_checked});
  }
  return deviations;
}

/// The sentence on required limits that only the machines themselves set; empty if there are none.
std::string relative_only(const plan::Plan& plan, const Results& results) {
  std::set<std::string_view> checked;  // requirements with a cell that was held to them
  for (const auto& result : results) {
    if (result.required) checked.insert(result.requirement);
  }
  std::vector<std::string_view> alone;
  for (const auto& requirement : plan.profile.requirements) {
    if (!requirement.required || !plan::is_relative(requirement.limit.reference)) continue;
    const bool beside = std::ranges::any_of(plan.profile.requirements, [&](const plan::Requirement& other) {
      return plan::stands_beside(other, requirement) && checked.contains(other.id);
    });
    if (!beside) alone.push_back(requirement.id);
  }
  if (alone.empty()) return "";
  return fmt::format(
      "Relative only: {} of {} requirements, first {}, hold the machines against each other or themselves, so machines "
      "that are all slow would pass.",
      alone.size(), plan.profile.requirements.size(), alone.front());
}

}  // namespace

void claim_less(const plan::Plan& plan, Verdict& verdict) {
  for (auto& deviation : not_checked(plan, verdict.results)) verdict.deviations.push_back(std::move(deviation));
  for (auto& deviation : without_advisory(plan, verdict.results)) verdict.deviations.push_back(std::move(deviation));
  for (auto& deviation : uncounted(plan)) verdict.deviations.push_back(std::move(deviation));
  const std::string relative = relative_only(plan, verdict.results);
  if (relative.empty()) return;
  verdict.reason += " " + relative;
  const std::string& why = plan.profile.relative_only;
  verdict.deviations.push_back(
      {.what = relative + (why.empty() ? "" : " The profile says why: " + why), .kind = DeviationKind::relative_only});
}

bool claims_less(const Deviation& deviation) {
  return deviation.kind == DeviationKind::not_checked || deviation.kind == DeviationKind::relative_only;
}

}  // namespace assay::judge
