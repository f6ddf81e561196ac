// localiser: the rounds of the search, and the words for what it found.
#include "orchestrator/judge/localiser.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "orchestrator/plan/search_budget.h"

namespace assay::judge {
Localiser::Localiser(std::vector<Peer> nodes, std::size_t budget)
    : nodes_(std::move(nodes)), budget_(budget), trust_(nodes_.size()) {}

std::vector<Localiser::Lane> Localiser::chunks() const {
  Nodes order(nodes_.size());
  std::map<std::string, std::size_t> leaves;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    order[i] = i;
    leaves.emplace(nodes_[i].leaf, leaves.size());
  }
  // Neighbours on one leaf stand side by side, so that a bad leaf spoils few chunks.
  std::ranges::stable_sort(order, {}, [&](std::size_t node) { return leaves.at(nodes_[node].leaf); });
  const std::size_t count = plan::screening_chunks(nodes_.size());
  std::vector<Lane> lanes(count);
  for (std::size_t i = 0; i < order.size(); ++i) lanes[i * count / order.size()].open.push_back(order[i]);
  if (count == 1) lanes.front().known_short = true;
  return lanes;
}

Localiser::Ask Localiser::ask(Nodes nodes, const char* purpose) {
  std::ranges::sort(nodes);
  return {.localiser = *this,
          .wanted = {.nodes = std::move(nodes), .purpose = purpose, .waiter = {}, .outcome = std::nullopt}};
}

void Localiser::Ask::await_suspend(std::coroutine_handle<> waiter) {
  wanted.waiter = waiter;
  localiser.wanted_.push_back(&wanted);
}

std::vector<Test> Localiser::next() {
  if (!running_.empty()) throw std::logic_error("the round before has outcomes that were not taken");
  if (!search_) {
    search_.emplace(main());
    search_->start();
  }
  std::set<std::size_t> busy;
  std::vector<Test> round;
  std::vector<Wanted*> later;
  for (Wanted* wanted : wanted_) {
    const bool free = std::ranges::none_of(wanted->nodes, [&](std::size_t node) { return busy.contains(node); });
    if (asked_ == budget_) budget_ended_ = true;
    if (!free || budget_ended_) {
      later.push_back(wanted);
      continue;
    }
    busy.insert(wanted->nodes.begin(), wanted->nodes.end());
    wanted->number = ++asked_;
    running_.push_back(wanted);
    round.push_back({.number = wanted->number, .nodes = wanted->nodes, .purpose = wanted->purpose});
  }
  wanted_ = std::move(later);
  if (!round.empty()) ++rounds_;
  return round;
}

void Localiser::take(const Test& test, TestOutcome outcome) {
  const auto found = std::ranges::find(running_, test.number, &Wanted::number);
  if (found == running_.end() || (*found)->outcome)
    throw std::logic_error(fmt::format("test {} is not waited for", test.number));
  (*found)->outcome = outcome;
  if (!std::ranges::all_of(running_, [](const Wanted* wanted) { return wanted->outcome.has_value(); })) return;
  // The search goes on when the round is whole, so that it does not depend on who answers first.
  const auto round = std::exchange(running_, {});
  for (const Wanted* wanted : round) {
    tested_.push_back({.test = {.number = wanted->number, .nodes = wanted->nodes, .purpose = wanted->purpose},
                       .outcome = *wanted->outcome});
    if (wanted->outcome != TestOutcome::good) continue;
    for (const std::size_t node : wanted->nodes) ++trust_[node];
  }
  std::vector<std::coroutine_handle<>> waiters;
  for (const Wanted* wanted : round) waiters.push_back(wanted->waiter);
  for (const auto& waiter : waiters) waiter.resume();
}

Finding Localiser::finding() const {
  Finding found{.suspects = with_leaves(),
                .undecided = {},
                .complete = complete_,
                .budget_ended = budget_ended_,
                .tests = tested_,
                .rounds = rounds_};
  std::set<std::size_t> undecided = given_up_;
  if (!search_) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) undecided.insert(i);
  }
  for (const auto& lane : lanes_) undecided.insert(lane.open.begin(), lane.open.end());
  std::ranges::copy_if(undecided, std::back_inserter(found.undecided),
                       [&](std::size_t node) { return !accused_.contains(node); });
  return found;
}

std::vector<Suspect> Localiser::with_leaves() const {
  std::map<std::string, Suspect> leaves;
  std::map<std::string, std::size_t> sizes;
  for (const auto& node : nodes_) ++sizes[node.leaf];
  for (const auto& suspect : suspects_) {
    const std::string& leaf = nodes_[suspect.nodes.front()].leaf;
    if (suspect.fault != Fault::node || leaf.empty()) continue;
    Suspect& whole = leaves[leaf];
    whole.nodes.push_back(suspect.nodes.front());
    whole.tests.insert(whole.tests.end(), suspect.tests.begin(), suspect.tests.end());
    whole.unsteady = whole.unsteady || suspect.unsteady;
  }
  std::erase_if(leaves, [&](const auto& leaf) {
    return leaf.second.nodes.size() < 2 || leaf.second.nodes.size() < sizes.at(leaf.first);
  });
  std::vector<Suspect> all;
  for (const auto& suspect : suspects_) {
    if (suspect.fault != Fault::node || !leaves.contains(nodes_[suspect.nodes.front()].leaf)) all.push_back(suspect);
  }
  for (auto& [leaf, suspect] : leaves) {
    suspect.fault = Fault::leaf;
    suspect.leaf = leaf;
    std::ranges::sort(suspect.nodes);
    std::ranges::sort(suspect.tests);
    all.push_back(std::move(suspect));
  }
  std::ranges::stable_sort(all, {}, &Suspect::nodes);
  return all;
}

std::string suspect_words(const Suspect& suspect, const std::vector<Peer>& nodes) {
  const auto name = [&](std::size_t i) { return nodes[suspect.nodes[i]].name; };
  const char* unsteady = suspect.unsteady ? ", unsteady" : "";
  switch (suspect.fault) {
    case Fault::pair:
      return fmt::format("pair {} and {}{}: each meets the limit with other nodes; check the path between them",
                         name(0), name(1), unsteady);
    case Fault::leaf:
      return fmt::format("leaf {}{}: all of its {} nodes; check the switch and its uplinks", suspect.leaf, unsteady,
                         suspect.nodes.size());
    case Fault::node:
      break;
  }
  const std::string& leaf = nodes[suspect.nodes.front()].leaf;
  return fmt::format("node {}{}: misses the limit with every peer; check the node, its port and its cable{}", name(0),
                     unsteady, leaf.empty() ? "" : " to leaf " + leaf);
}

}  // namespace assay::judge
