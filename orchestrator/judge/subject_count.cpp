// subject_count: the design's number of subjects, and the median over a fleet whose steps may lie about theirs.
#include "orchestrator/judge/subject_count.h"

#include <algorithm>
#include <string>

namespace assay::judge {

std::optional<std::size_t> most_subjects(const plan::Plan& plan, const plan::Requirement& requirement,
                                         const plan::Step& step) {
  const std::size_t nodes = step.nodes.size();
  if (plan::is_together(requirement.scope) && nodes > 1) return nodes * (nodes - 1);
  if (requirement.scope == plan::JudgedScope::node) return 1;
  std::size_t most = 0;
  for (const auto& name : step.nodes) {
    const site::Node* const node = plan.site.node(name);
    const auto designed = node == nullptr
                              ? std::nullopt
                              : plan::designed_parts(plan.profile, *node, std::string(word_of(requirement.scope)));
    if (!designed) return std::nullopt;
    most += static_cast<std::size_t>(*designed);
  }
  return most;
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
