// pairs: two nodes of a step.
#include "orchestrator/sweep/pairs.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay::sweep {

std::string name_of(const NightPair& pair) { return pair.first + "+" + pair.second; }

std::optional<NightPair> pair_named(std::string_view name, char between) {
  const auto middle = name.find(between);
  if (middle == std::string_view::npos) return std::nullopt;
  NightPair pair{.first = std::string(name.substr(0, middle)), .second = std::string(name.substr(middle + 1))};
  if (!is_node_name(pair.first) || !is_node_name(pair.second) || pair.first == pair.second) return std::nullopt;
  return pair;
}

std::vector<NightPair> pairs_of(const plan::Plan& plan) {
  std::vector<NightPair> pairs;
  std::set<NightPair> seen;
  for (const auto& step : plan.steps) {
    if (step.nodes.size() != 2) continue;
    NightPair pair{.first = step.nodes[0], .second = step.nodes[1]};
    if (seen.contains({.first = pair.second, .second = pair.first}) || !seen.insert(pair).second) continue;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

std::vector<std::string> joint_requirements(const plan::Plan& plan) {
  std::set<std::string> ids;
  for (const auto& step : plan.steps) {
    if (step.nodes.size() > 1) ids.insert(step.requirements.begin(), step.requirements.end());
  }
  return {ids.begin(), ids.end()};
}

std::optional<PairVisit> hindered(const NightPair& pair, const std::vector<NodeVisit>& visits) {
  for (const auto state : {drift::VisitState::preempted, drift::VisitState::busy, drift::VisitState::not_measured}) {
    for (const auto& visit : visits) {
      if (visit.state != state || (visit.node != pair.first && visit.node != pair.second)) continue;
      return PairVisit{.pair = pair, .state = state, .reason = fmt::format("{}: {}", visit.node, visit.reason)};
    }
  }
  return std::nullopt;
}

std::vector<std::string> without_partner(const std::vector<std::string>& measured,
                                         const std::vector<NightPair>& pairs) {
  const std::set<std::string> there(measured.begin(), measured.end());
  std::set<std::string> joined;
  for (const auto& pair : pairs) {
    if (there.contains(pair.first) && there.contains(pair.second)) joined.insert({pair.first, pair.second});
  }
  std::vector<std::string> left;
  std::ranges::set_difference(there, joined, std::back_inserter(left));
  return left;
}

}  // namespace assay::sweep
