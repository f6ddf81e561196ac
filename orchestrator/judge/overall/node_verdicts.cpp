// node_verdicts: assigns each cell to the nodes it counts for and derives one verdict a node; the rule is in
// node_verdicts.h.
#include "orchestrator/judge/overall/node_verdicts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

namespace assay::judge {
namespace {

using NodeNames = std::vector<std::string>;

/// The nodes at fault in a cell of several nodes, as far as found.
struct Blame {
  std::set<std::string> named, undecided;
};

class NodeJudge {
 public:
  NodeJudge(const plan::Plan& plan, const Verdict& verdict) : plan_(plan), verdict_(verdict) {
    for (const auto& node : plan.site.nodes) {
      index_.emplace(node.name, nodes_.size());
      all_.push_back(node.name);
      nodes_.push_back({.node = node.name, .outcome = Overall::accepted});
    }
  }

  std::vector<NodeVerdict> take() {
    for (const auto& result : verdict_.results) {
      if (result.required) count(result);
    }
    return std::move(nodes_);
  }

 private:
  void count(const Result& result) {
    const NodeNames nodes = nodes_of(result);
    if (result.outcome == Outcome::pass || nodes.size() < 2) return charge(result, nodes, result.outcome);
    const Blame blame = blame_for(result, nodes);
    if (blame.named.empty()) return charge(result, nodes, result.outcome);
    charge(result, {blame.named.begin(), blame.named.end()}, result.outcome);
    charge(result, {blame.undecided.begin(), blame.undecided.end()}, Outcome::inconclusive);
  }

  /// The nodes that the result speaks of: those of its step, or by its name where nothing was planned.
  [[nodiscard]] NodeNames nodes_of(const Result& result) const {
    if (const auto* step = plan_.step(result.step); step != nullptr) return step->nodes;
    if (result.subject.kind == "cluster") return all_;
    if (index_.contains(result.subject.id)) return {result.subject.id};
    const std::string& id = result.subject.id;
    const auto plus = id.find('+');
    if (plus == std::string::npos) return all_;
    NodeNames two = {id.substr(0, plus), id.substr(plus + 1, id.find('@', plus) - plus - 1)};
    const bool known = std::ranges::all_of(two, [&](const std::string& node) { return index_.contains(node); });
    return known ? two : all_;
  }

  /// The findings of searches and pairs for a cell that does not pass.
  [[nodiscard]] Blame blame_for(const Result& result, const NodeNames& nodes) const {
    Blame blame;
    const std::set<std::string_view> here(nodes.begin(), nodes.end());
    for (const auto& one : verdict_.localised) {
      const bool about = one.step.empty() ? result.subject.kind == "pair" : one.step == result.step;
      if (!about || std::ranges::find(one.requirements, result.requirement) == one.requirements.end()) continue;
      for (const auto& culprit : one.culprits) {
        // A bad pair is a matter of both of its ends, and of no node that has one of them for a partner elsewhere.
        const bool within = std::ranges::all_of(culprit.nodes, [&](const auto& node) { return here.contains(node); });
        if (culprit.fault == Fault::pair && !within) continue;
        for (const auto& node : culprit.nodes) {
          if (here.contains(node)) blame.named.insert(node);
        }
      }
      for (const auto& node : one.excluded) {
        if (here.contains(node)) blame.undecided.insert(node);
      }
      for (const auto& node : one.undecided) {
        if (here.contains(node)) blame.undecided.insert(node);
      }
    }
    for (const auto& node : blame.named) blame.undecided.erase(node);
    return blame;
  }

  void charge(const Result& result, const NodeNames& nodes, Outcome outcome) {
    for (const auto& name : nodes) {
      NodeVerdict& node = nodes_[index_.at(name)];
      ++node.required;
      if (outcome == Outcome::pass) {
        ++node.passed;
        continue;
      }
      const Overall overall = outcome == Outcome::fail ? Overall::rejected : Overall::incomplete;
      if (node.outcome != Overall::accepted && (node.outcome == overall || overall == Overall::incomplete)) continue;
      node.outcome = overall;
      node.reason =
          fmt::format("{}{} is {}: {}", result.requirement, result.subject.id == name ? "" : " on " + result.subject.id,
                      result.outcome, result.reason);
    }
  }

  const plan::Plan& plan_;
  const Verdict& verdict_;
  std::unordered_map<std::string, std::size_t> index_;
  NodeNames all_;
  std::vector<NodeVerdict> nodes_;
};

/// Why no node can be accepted or rejected; empty if each can.
std::string held_back(const plan::Plan& plan, bool finished) {
  if (plan.quick) return "Quick parameters were used: a rehearsal, which accepts or rejects nothing.";
  if (!plan.only.empty()) return "Only a part of the profile was planned.";
  if (!finished) return "The run did not finish.";
  return "";
}

}  // namespace

std::vector<NodeVerdict> node_verdicts(const plan::Plan& plan, bool finished, const Verdict& verdict) {
  std::vector<NodeVerdict> nodes = NodeJudge(plan, verdict).take();
  const std::string held = held_back(plan, finished);
  for (auto& node : nodes) {
    if (node.required == 0) {
      node.outcome = Overall::incomplete;
      node.reason = "No required cell is of this node.";
    }
    if (node.outcome == Overall::accepted && !held.empty()) {
      node.outcome = Overall::incomplete;
      node.reason = held;
    }
    if (node.outcome == Overall::rejected && plan.quick) node.outcome = Overall::incomplete;
    if (!verdict.simulated) continue;
    node.reason = fmt::format("SIMULATION; had it been measured, it would be {}{}{}", node.outcome,
                              node.reason.empty() ? "." : ": ", node.reason);
    node.outcome = Overall::incomplete;
  }
  return nodes;
}

std::string fleet_statement(const std::vector<NodeVerdict>& nodes) {
  std::map<Overall, std::size_t> counts;
  for (const auto& node : nodes) ++counts[node.outcome];
  return fmt::format("{} of {} nodes accepted, {} rejected, {} incomplete", counts[Overall::accepted], nodes.size(),
                     counts[Overall::rejected], counts[Overall::incomplete]);
}

}  // namespace assay::judge
