// localiser: hands out the tests of each round, takes their readings, and states the findings. The search itself is a
// coroutine (search_task.h) in localiser_screening, _search, _confirm and _tests; it waits in ask() for the outcome of
// a test and is resumed by take() once the whole round is in. An example is in localiser_search.cpp.
#include "orchestrator/judge/locate/localiser.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace assay::judge {
namespace {

constexpr double kMissed = 0.05;  // probability that a fault shows in none of the repeats
constexpr int kMostRepeats = 14;  // enough for a fault that shows in one of five tests
constexpr int kMostBroken = 3;    // where the shortfall is not that it breaks

/// How often a test must be good before a fault that shows in `shown` of `all` tests would have been seen with a
/// probability of 95 %: ln 0.05 / ln(1 - p).
int repeats_for(std::size_t shown, std::size_t all) {
  if (shown == 0 || shown == all) return 1;
  const double hidden = 1 - static_cast<double>(shown) / static_cast<double>(all);
  int repeats = 0;
  for (double missed = 1; missed > kMissed && repeats < kMostRepeats; missed *= hidden) ++repeats;
  return repeats;
}

}  // namespace

Localiser::Localiser(std::vector<Peer> nodes, plan::SearchBudget budget, const std::vector<Reading>& attempts)
    : nodes_(std::move(nodes)), budget_(budget), trust_(nodes_.size()), good_with_(nodes_.size()) {
  for (const auto& attempt : attempts) controls_.add(nodes_.size(), attempt);
  if (std::ranges::none_of(attempts, &Reading::broken)) most_broken_ = kMostBroken;
  std::size_t shown = 0;
  for (const auto& attempt : attempts) {
    const auto compared = controls_.compare(nodes_.size(), attempt);
    if (attempt.broken || (compared && compared->is_short)) ++shown;
  }
  repeats_ = repeats_for(shown, attempts.size());
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
    if (asked_ == allowed()) budget_ended_ = true;
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

void Localiser::take(const Test& test, Reading reading) {
  const auto found = std::ranges::find(running_, test.number, &Wanted::number);
  if (found == running_.end() || (*found)->reading)
    throw std::logic_error(fmt::format("test {} is not waited for", test.number));
  (*found)->reading = std::move(reading);
  if (!std::ranges::all_of(running_, [](const Wanted* wanted) { return wanted->reading.has_value(); })) return;
  // The search continues when the round is whole, so that it does not depend on the order of answers.
  const auto round = std::exchange(running_, {});
  for (const Wanted* wanted : round) {
    tested_.push_back({.test = {.number = wanted->number, .nodes = wanted->nodes, .purpose = wanted->purpose},
                       .reading = *wanted->reading,
                       .outcome = wanted->reading->broken ? TestOutcome::broken : TestOutcome::good});
    controls_.add(wanted->nodes.size(), *wanted->reading);
  }
  std::vector<std::coroutine_handle<>> waiters;
  for (Wanted* wanted : round) {
    if (wanted->reading->broken && ++wanted->broken < most_broken_) {
      wanted->reading.reset();
      wanted_.push_back(wanted);
    } else {
      waiters.push_back(wanted->waiter);
    }
  }
  for (const auto& waiter : waiters) waiter.resume();
}

Finding Localiser::finding() const {
  Finding found{.suspects = with_leaves(),
                .complete = complete_,
                .alike = alike_,
                .budget_ended = budget_ended_,
                .budget = allowed(),
                .tests = tested_,
                .rounds = rounds_};
  std::set<std::size_t> undecided = given_up_;
  if (lanes_.empty()) {
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
