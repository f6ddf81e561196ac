// fleet: the parts become one plan and one journal with only the steps that limits of the fleet need.
#include "reports/joint/fleet.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/plan/derived.h"

namespace assay::joint {
namespace {

/// Path of a file of the whole.
struct Source {
  const judge::EvidenceReader* reader = nullptr;
  judge::EvidenceFile file;
};

/// One run of all nodes. Steps have the name of their part in front, so that two of the same order and place differ.
struct Whole {
  plan::Plan plan;
  judge::Journal journal;
  std::map<std::string, Source> files;
};

std::set<std::string> fleet_limits(const plan::Profile& profile) {
  std::set<std::string> ids;
  for (const auto& requirement : profile.requirements) {
    if (requirement.limit.reference == plan::Reference::fleet_median) ids.insert(requirement.id);
  }
  return ids;
}

std::string renamed(const Part& part, const std::string& step) { return fmt::format("{}.{}", part.name, step); }

/// `path` of an attempt of `step`, as it is called under the step's name in the whole.
std::string moved(const Part& part, const std::string& path, const std::string& step) {
  const auto at = path.find("/" + step + "/");
  return at == std::string::npos ? path : path.substr(0, at + 1) + part.name + "." + path.substr(at + 1);
}

void add_plan(Whole& whole, const Part& part, const std::set<std::string>& limits, std::set<std::string>& steps) {
  const plan::Plan& plan = part.run.plan;
  for (const auto& step : plan.steps) {
    const bool judged = std::ranges::any_of(step.requirements, [&](const auto& id) { return limits.contains(id); });
    // The inventory bounds every honest figure.
    if (!judged && step.probe != plan::kInventoryProbe) continue;
    steps.insert(step.id);
    whole.plan.steps.push_back(step);
    whole.plan.steps.back().id = renamed(part, step.id);
  }
  for (const auto& cell : plan.coverage) {
    if (!limits.contains(cell.requirement)) continue;
    whole.plan.coverage.push_back(cell);
    if (!cell.step.empty()) whole.plan.coverage.back().step = renamed(part, cell.step);
  }
}

void add_journal(Whole& whole, const Part& part, const std::set<std::string>& steps) {
  const judge::Journal& journal = part.run.journal;
  whole.journal.node_facts.insert(journal.node_facts.begin(), journal.node_facts.end());
  std::ranges::copy(journal.node_events, std::back_inserter(whole.journal.node_events));
  for (const auto& [step, why] : journal.left_out) whole.journal.left_out[renamed(part, step)] = why;
  for (const auto& [step, why] : journal.more_attempts) whole.journal.more_attempts[renamed(part, step)] = why;
  for (const auto& attempt : journal.attempts) {
    if (attempt.is_extra() || !steps.contains(attempt.step)) continue;
    judge::Attempt own = attempt;
    own.step = renamed(part, attempt.step);
    for (auto& file : own.evidence) {
      const judge::EvidenceFile original = file;
      file.path = moved(part, file.path, attempt.step);
      whole.files[file.path] = {.reader = &part.evidence, .file = original};
    }
    whole.journal.attempts.push_back(own);
  }
}

std::optional<InputError> check_probes(const std::vector<Part>& parts, const Whole& whole) {
  std::set<std::string> used;
  for (const auto& step : whole.plan.steps) used.insert(step.probe);
  for (const auto& part : parts) {
    for (const auto& name : used) {
      const auto& first = parts.front().run.plan.probes;
      const auto a = first.find(name);
      const auto b = part.run.plan.probes.find(name);
      if (a != first.end() && b != part.run.plan.probes.end() &&
          a->second.description.revision == b->second.description.revision)
        continue;
      return InputError{fmt::format("part {} and part {}", parts.front().name, part.name),
                        fmt::format("measured with another revision of {}", name),
                        "figures of two revisions are not of one fleet; measure with one version of assay"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::expected<judge::Results, InputError> judge_fleet(const std::vector<Part>& parts) {
  const plan::Plan& first = parts.front().run.plan;
  const auto limits = fleet_limits(first.profile);
  if (limits.empty()) return judge::Results{};
  Whole whole{.plan = first, .journal = {}, .files = {}};
  whole.plan.steps.clear();
  whole.plan.coverage.clear();
  whole.plan.searches.clear();
  whole.plan.agreed_stability.reset();  // each part has its own
  whole.plan.site.nodes.clear();
  whole.journal.finished = true;
  for (const auto& part : parts) {
    std::set<std::string> steps;
    add_plan(whole, part, limits, steps);
    add_journal(whole, part, steps);
    std::ranges::copy(part.run.plan.site.nodes, std::back_inserter(whole.plan.site.nodes));
  }
  if (auto problem = check_probes(parts, whole)) return std::unexpected(*problem);
  return judge::judge_cells(whole.plan, whole.journal,
                            [&](const judge::EvidenceFile& file) -> std::expected<std::string, InputError> {
                              const auto known = whole.files.find(file.path);
                              if (known == whole.files.end())
                                return std::unexpected(InputError{file.path, "is no evidence of any part", ""});
                              return (*known->second.reader)(known->second.file);
                            });
}

}  // namespace assay::joint
