// part_pairs: one matrix for each figure of a step, and the names of parts turned into those of their nodes.
#include "orchestrator/judge/locate/part_pairs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "orchestrator/judge/locate/pair_matrix.h"
#include "orchestrator/judge/locate/searches.h"

namespace assay::judge {
namespace {

std::string node_in(const std::string& part) { return part.substr(0, part.find('/')); }

/// "node/part" of a part "host/part" of one of the nodes of `step`; nothing of any other name.
std::optional<std::string> part_of(const plan::Step& step, const std::string& id, const NodesByHost& hosts) {
  const auto slash = id.find('/');
  if (slash == std::string::npos || slash + 1 == id.size() || id.find('>') != std::string::npos) return std::nullopt;
  const auto known = hosts.find(id.substr(0, slash));
  const std::string node = known == hosts.end() ? id.substr(0, slash) : known->second;
  if (std::ranges::find(step.nodes, node) == step.nodes.end()) return std::nullopt;
  return node + id.substr(slash);
}

/// Adds `node` unless it is there.
void add_once(std::vector<std::string>& nodes, const std::string& node) {
  if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
}

/// One figure of one step.
class PartFigure {
 public:
  void add_pair(const Result& result, const std::string& source, const std::string& target) {
    has_pairs_ = true;
    const auto missed = std::ranges::count_if(result.each, [&](double value) {
      return (result.limit_low && value < *result.limit_low) || (result.limit_high && value > *result.limit_high);
    });
    matrix_.add({.a = place_of(source),
                 .b = place_of(target),
                 .direction = PairDirection::forward,
                 .bad = misses_limit(result),
                 .sure = result.outcome != Outcome::conditional_fail,
                 .share = share_of(result),
                 .attempts = result.each.size(),
                 .missed = static_cast<std::size_t>(missed),
                 .step = result.step});
  }

  void accuse(const Result& result, const std::string& part) {
    counted_.push_back(
        {.fault = Fault::node,
         .nodes = {node_in(part)},
         .tests = {result.step},
         .words = fmt::format("part {}: {:g} faults of its own; check it and its links", part, *result.value)});
  }

  /// Nothing if all is good.
  std::optional<Localised> found() {
    Localised found;
    if (has_pairs_ && matrix_.has_bad()) {
      matrix_.accuse();
      found = matrix_.found(names_, {});
      name_nodes(found);
    } else if (counted_.empty()) {
      return std::nullopt;
    } else {
      found.reason = fmt::format("{} parts have faults of their own.", counted_.size());
    }
    if (!counted_.empty()) found.state = SearchState::found;
    found.culprits.insert(found.culprits.end(), counted_.begin(), counted_.end());
    return found;
  }

 private:
  std::size_t place_of(const std::string& part) {
    const auto [known, is_new] = index_.emplace(part, names_.size());
    if (is_new) {
      names_.push_back(part);
      ++parts_[node_in(part)];
    }
    return known->second;
  }

  /// Turns culprits that are parts into their nodes, and the accused parts of one node into it if they are all.
  void name_nodes(Localised& found) const {
    std::map<std::string, std::size_t> accused;
    for (const auto& one : found.culprits) accused[node_in(one.nodes.front())] += one.fault == Fault::node ? 1 : 0;
    std::vector<Culprit> culprits;
    std::set<std::string> done;
    for (auto& one : found.culprits) {
      const std::string part = one.nodes.front(), node = node_in(part);
      const std::size_t all = parts_.at(node);
      std::vector<std::string> nodes;
      for (const auto& name : one.nodes) add_once(nodes, node_in(name));
      one.nodes = nodes;
      if (one.fault == Fault::pair) {
        if (nodes.size() == 1) one.fault = Fault::node;
      } else if (all > 1 && accused.at(node) == all) {
        if (!done.insert(node).second) continue;
        one.words = fmt::format(
            "node {}: all {} of its parts miss the limit in most of their pairs; check the node and all "
            "that its parts share",
            node, all);
      }
      culprits.push_back(std::move(one));
    }
    found.culprits = std::move(culprits);
    std::vector<std::string> undecided;
    for (const auto& part : found.undecided) add_once(undecided, node_in(part));
    found.undecided = std::move(undecided);
    if (found.state == SearchState::common_cause)
      found.reason +=
          " A part that all pairs cross, such as a plane of switches, cannot be distinguished from other causes here.";
  }

  PairMatrix matrix_{PairMatrix::Of::parts};
  bool has_pairs_ = false;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> index_;
  std::map<std::string, std::size_t> parts_;  ///< by node
  std::vector<Culprit> counted_;
};

}  // namespace

NodesByHost nodes_by_host(const Journal& journal) {
  NodesByHost hosts;
  for (const auto& [node, facts] : journal.node_facts) {
    const auto name = facts.find("name");
    if (name == facts.end() || !name->is_string()) continue;
    const auto [known, is_new] = hosts.emplace(name->get<std::string>(), node);
    if (!is_new) known->second.clear();  // of two nodes: it names neither
  }
  return hosts;
}

std::vector<Localised> localise_parts(const plan::Plan& plan, const Results& results, const NodesByHost& hosts) {
  std::vector<std::pair<std::string_view, std::string_view>> order;  // step and requirement
  std::map<std::pair<std::string_view, std::string_view>, PartFigure> figures;
  for (const auto& result : results) {
    const auto* const step = plan.step(result.step);
    if (step == nullptr || step->nodes.size() < 2 || !result.value || result.is_of_demand()) continue;
    const auto* const requirement = plan.requirement(result.requirement);
    const auto figure = [&]() -> PartFigure& {
      const std::pair key(std::string_view(step->id), std::string_view(requirement->id));
      const auto [known, is_new] = figures.try_emplace(key);
      if (is_new) order.push_back(key);
      return known->second;
    };
    const std::string& id = result.subject.id;
    const auto arrow = id.find('>');
    const auto* const metric = plan.probes.at(requirement->probe).description.metric(requirement->metric);
    if (arrow != std::string::npos) {
      const auto source = part_of(*step, id.substr(0, arrow), hosts);
      const auto target = part_of(*step, id.substr(arrow + 1), hosts);
      if (source && target) figure().add_pair(result, *source, *target);
    } else if (metric->kind == MetricKind::fault && misses_limit(result)) {
      if (const auto part = part_of(*step, id, hosts)) figure().accuse(result, *part);
    }
  }
  std::vector<Localised> all;
  for (const auto& key : order) {
    auto found = figures.at(key).found();
    if (!found) continue;
    found->step = key.first;
    found->requirements = {std::string(key.second)};
    all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace assay::judge
