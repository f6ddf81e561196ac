// subject_count: the number of subjects by design, and the figures of a fleet without those of steps that show more
// than twice the usual number of subjects.
#include "orchestrator/judge/cells/subject_count.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "orchestrator/judge/cells/part_identities.h"
#include "orchestrator/plan/repeat.h"

namespace assay::judge {
namespace {

const std::string kGpuInstance = "gpu_instance";

/// Ranks of a step whose nodes work together: as many on each as its parameters say, or as the node has GPUs.
std::size_t ranks_of(const plan::Plan& plan, const plan::Step& step) {
  const auto asked = step.parameters.find("ranks_per_node");
  std::size_t ranks = 0;
  for (const auto& name : step.nodes) {
    const site::Node* const node = plan.site.node(name);
    const auto gpus = node == nullptr ? std::nullopt : plan::designed_parts(plan.profile, *node, "gpu");
    const auto* const said = asked == step.parameters.end() ? nullptr : std::get_if<std::int64_t>(&asked->second);
    ranks += static_cast<std::size_t>(std::max<std::int64_t>(1, said != nullptr ? *said : gpus.value_or(1)));
  }
  return ranks;
}

std::size_t instances_in(const std::map<Subject, Pool>& pools) {
  return static_cast<std::size_t>(
      std::ranges::count_if(pools, [](const auto& one) { return one.first.id.starts_with("MIG-"); }));
}

/// Numbers of instances of GPUs.
struct Instances {
  std::size_t seen, stated;
};

/// wrong_number() of a node whose GPUs are partitioned, all of them: beside whole ones, or with fewer instances than
/// GPUs, one that is missing would go unnoticed.
std::optional<Result> wrong_instances(Instances instances, std::size_t whole, std::optional<int> gpus, Result node) {
  if (instances.seen != instances.stated) {
    node.outcome = instances.seen > instances.stated ? Outcome::inconclusive : Outcome::not_measured;
    node.reason = fmt::format("{} subjects of kind {} measured; the design has {}.", instances.seen, kGpuInstance,
                              instances.stated);
  } else if (whole > 0) {
    node.outcome = Outcome::inconclusive;
    node.reason = fmt::format("{} whole GPUs and {} instances (MIG) measured; only one or the other is counted.", whole,
                              instances.seen);
  } else if (gpus && static_cast<std::size_t>(*gpus) > instances.stated) {
    node.outcome = Outcome::not_measured;
    node.reason =
        fmt::format("{} instances (MIG) measured, of {} GPUs: each has one or more, so that GPUs are missing.",
                    instances.seen, *gpus);
  } else {
    return std::nullopt;
  }
  return node;
}

}  // namespace

std::optional<std::size_t> most_subjects(const plan::Plan& plan, const plan::Requirement& requirement,
                                         const plan::Step& step) {
  if (plan::is_together(requirement.scope) && step.nodes.size() > 1) {
    const std::size_t ranks = ranks_of(plan, step);
    return ranks * (ranks - 1);
  }
  if (requirement.scope == plan::JudgedScope::node) return 1;
  std::size_t most = 0;
  for (const auto& name : step.nodes) {
    const site::Node* const node = plan.site.node(name);
    const auto designed = node == nullptr
                              ? std::nullopt
                              : plan::designed_parts(plan.profile, *node, std::string(word_of(requirement.scope)));
    if (!designed) return std::nullopt;
    const auto instances = node->parts.find(kGpuInstance);
    const bool divided = requirement.scope == plan::JudgedScope::gpu && instances != node->parts.end();
    most += static_cast<std::size_t>(divided ? *designed + instances->second : *designed);
  }
  return most;
}

std::optional<Result> wrong_number(const plan::Plan& plan, const plan::Requirement& requirement,
                                   const std::map<Subject, Pool>& pools, Result node) {
  const std::string kind(word_of(requirement.scope));
  const site::Node* place = plan.site.node(node.node);
  if (node.subject.kind != "node" || !plan.profile.per_node.contains(kind) || place == nullptr) return std::nullopt;
  const std::size_t instances = requirement.scope == plan::JudgedScope::gpu ? instances_in(pools) : 0;
  const std::size_t seen = different_parts(pools) - instances;
  const auto designed = plan::designed_parts(plan.profile, *place, kind);
  const auto stated = place->parts.find(kGpuInstance);
  const bool divided = instances > 0 && stated != place->parts.end();
  if (divided) return wrong_instances({instances, static_cast<std::size_t>(stated->second)}, seen, designed, node);
  if (designed && static_cast<std::size_t>(*designed) == seen) return std::nullopt;
  const bool more = designed && seen > static_cast<std::size_t>(*designed);
  node.outcome = more ? Outcome::inconclusive : Outcome::not_measured;
  const std::string measured = fmt::format("{} subjects of kind {} measured", seen, kind);
  node.reason = designed ? fmt::format("{}; the design has {}.", measured, *designed)
                         : fmt::format(
                               "{}; the site does not say how many node {} has (parts), so that a missing one "
                               "would go unnoticed.",
                               measured, node.node);
  if (instances > 0)
    node.reason +=
        fmt::format(" {} are instances of partitioned GPUs (MIG), of which the site states no number.", instances);
  return node;
}

double figures_of(const plan::Plan& plan) {
  std::map<std::string_view, const plan::Requirement*> requirements;
  for (const auto& requirement : plan.profile.requirements) requirements[requirement.id] = &requirement;
  std::map<std::string_view, const plan::Step*> steps;
  for (const auto& step : plan.steps) steps[step.id] = &step;
  const auto parts = plan.profile.per_node.find("gpu");
  const double gpus = parts == plan.profile.per_node.end() ? 1 : static_cast<double>(parts->second);
  double figures = 0;
  for (const auto& cell : plan.coverage) {
    const auto step = steps.find(cell.step);
    const plan::Requirement& requirement = *requirements.at(cell.requirement);
    if (step == steps.end() || !plan::varies_between_runs(requirement.statistic)) continue;
    const bool of_gpus = requirement.scope == plan::JudgedScope::pair && step->second->nodes.size() == 1;
    const bool of_nodes = plan::is_together(requirement.scope) && !of_gpus;
    const auto most = of_gpus || of_nodes ? std::nullopt : most_subjects(plan, requirement, *step->second);
    figures += of_gpus ? std::max(gpus * (gpus - 1), 1.0) : static_cast<double>(most.value_or(1));
  }
  return figures;
}

std::vector<double> fleet_of(const std::vector<std::vector<double>>& of_steps) {
  std::vector<double> fleet;
  if (of_steps.empty()) return fleet;
  std::vector<std::size_t> sizes;
  for (const auto& medians : of_steps) sizes.push_back(medians.size());
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>((sizes.size() - 1) / 2);
  std::ranges::nth_element(sizes, middle);
  for (const auto& medians : of_steps) {
    if (medians.size() <= 2 * *middle) fleet.insert(fleet.end(), medians.begin(), medians.end());
  }
  return fleet;
}

}  // namespace assay::judge
