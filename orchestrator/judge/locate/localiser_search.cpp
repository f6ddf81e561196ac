// localiser_search: the search after its screening: bisection in each short group, then all good nodes together. The
// method and its assumption are in localiser.h.
//
// Example: 16 nodes, all good but that 5 and 6 are slow together. Tests that name no other size are filled up to a size
// that has controls; the filling is in brackets.
//   screening     {0-3} {4-7} {8-11} {12-15} side by side: {4-7} is short of the others. 4 tests, one round.
//   control       two pairs of good nodes, so that a pair can be compared.
//   bisection     {4,5} good; {4,5,6 [8]} short: 6 is the first node without which those before it are good.
//   confirmation  6 with 8 and 6 with 9 are good, so 6 is not accused; {4,5,6 [8]} again is short.
//   partner       {4,6} good, {5,6} short, twice more short: the pair. 5 is good with 8, 9 and 0: so not only 5.
//   the rest      {4,5,7 [8]} good; all but 6 together good, twice; all but 5 good. The search is complete: 23 tests.
// A pair in two groups, such as 3 and 9, passes the screening. Then all together are short, the six halves of 16 are
// compared, and the one that is short of the others goes the same way: 32 tests.
//
// Why it ends: a bisection halves the open nodes. Each turn of extend() takes a node out of the open ones, as clean,
// accused or parked; a suspicion that is not confirmed puts it back, kMostRefuted times in one lane, then it is given
// up. whole() ends after kMostAlike comparisons without an accusation. A good outcome is repeated at most kMostRepeats
// times, a broken test kMostBroken times. Above all of them is the budget (plan/search_budget.h; for 16 nodes 64 tests,
// 15 more for each culprit, 256 at most): next() hands out no test beyond it, and open nodes stay undecided.
#include <algorithm>

#include "orchestrator/judge/locate/localiser.h"
#include "orchestrator/judge/locate/node_lists.h"
#include "orchestrator/plan/pairing.h"

namespace assay::judge {
namespace {

constexpr int kLastRepeats = 2;  // of the last test, of everything together: it acquits
constexpr int kMostRefuted = 4;  // suspicions in one lane; beyond it the outcomes contradict each other too much
constexpr std::size_t kEighths = 8;
constexpr std::size_t kQuarters = 4;  // of which any two are together in one of three ways to halve

}  // namespace

Search<bool> Localiser::main() {
  if (nodes_.size() < 2) co_return false;
  const bool screened = co_await screen();
  if (!screened) co_return false;
  std::vector<Search<bool>> searches;
  // Once there are nodes to make controls with, suspects are tested with one node each.
  const Nodes none;
  if (std::ranges::any_of(lanes_, [](const Lane& lane) { return !lane.open.empty(); })) co_await control(2, none);
  for (auto& lane : lanes_) searches.push_back(extend(lane));
  co_await Search<bool>::all(searches);
  co_await whole();
  co_return true;
}

/// Moves every open node of `lane` to the clean ones, but for those that are at fault.
Search<bool> Localiser::extend(Lane& lane) {
  while (!lane.open.empty()) {
    if (!lane.known_short) {
      Nodes together = nodes::joined(lane.clean, lane.open);
      if (co_await lane_good(lane, std::move(together), "screening")) {
        lane.clean = nodes::joined(std::move(lane.clean), lane.open);
        lane.open.clear();
        break;
      }
    }
    lane.known_short = false;
    const std::size_t first = co_await bisect(lane);
    lane.clean = nodes::joined(std::move(lane.clean), nodes::front(lane.open, first));
    const std::size_t suspect = lane.open[first];
    lane.open.erase(lane.open.begin(), lane.open.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    Nodes together = lane.shown;
    std::erase(together, suspect);
    const Ruling ruling = co_await classify(suspect, std::move(together), lane.steady());
    if (ruling == Ruling::paired) lane.parked.push_back(suspect);
    if (ruling == Ruling::refuted) co_await refute(lane, suspect);
    reopen_parked(lane);
    std::erase_if(lane.clean, [&](std::size_t node) { return accused_.contains(node); });
    std::erase_if(lane.open, [&](std::size_t node) { return accused_.contains(node); });
    std::set<std::string> leaves;
    for (const std::size_t node : accused_) leaves.insert(nodes_[node].leaf);
    for (const auto& leaf : leaves) {
      if (leaf_looks_bad(leaf)) co_await sweep(lane, leaf);
    }
  }
  co_return true;
}

/// Opens the nodes that were left out for a partner that has since been accused on its own.
void Localiser::reopen_parked(Lane& lane) const {
  for (const std::size_t node : std::exchange(lane.parked, {})) {
    if (!accused_.contains(node)) (parked_.contains(node) ? lane.parked : lane.open).push_back(node);
  }
}

/// Takes back a suspicion that was not borne out: some outcome before it was wrong, and it may have been one that made
/// the clean nodes clean.
Search<bool> Localiser::refute(Lane& lane, std::size_t suspect) {
  bool clean = true;
  if (++lane.refuted > kMostRefuted) {
    given_up_.insert(suspect);
  } else {
    lane.open.insert(lane.open.begin(), suspect);
    Nodes together = lane.clean;
    if (together.size() > 1) clean = co_await lane_good(lane, std::move(together), "confirmation");
  }
  if (clean) co_return true;
  lane.open = nodes::joined(std::move(lane.clean), lane.open);
  lane.clean.clear();
  lane.known_short = true;
  co_return true;
}

/// The first open node of `lane` with which those before it and the clean ones are short, when all together are.
Search<std::size_t> Localiser::bisect(Lane& lane) {
  std::size_t low = 0;
  std::size_t high = lane.open.size();
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    Nodes together = nodes::joined(lane.clean, nodes::front(lane.open, middle));
    const bool held = co_await lane_good(lane, std::move(together), "bisection");
    (held ? low : high) = middle;
  }
  co_return low;
}

/// Everything that is clean together, and the search for pairs across lanes while that is short.
Search<bool> Localiser::whole() {
  int in_vain = 0;
  bool differs = false;
  bool held = co_await everything();
  while (!held && in_vain < kMostAlike) {
    const std::size_t known = suspects_.size();
    differs = co_await compare_unions(in_vain == 0 ? kQuarters : kEighths);
    in_vain = suspects_.size() > known ? 0 : in_vain + 1;
    held = co_await everything();
  }
  alike_ = !held && !differs;
  const Nodes parked(parked_.begin(), parked_.end());
  for (const std::size_t node : parked) {
    if (held) co_await check_parked(node, clean_nodes());
  }
  complete_ = held && given_up_.empty();
  co_return true;
}

/// The nodes that were good with others, and neither accused nor left out since.
Localiser::Nodes Localiser::clean_nodes() const {
  Nodes all;
  for (const auto& lane : lanes_) {
    for (const Nodes* some : {&lane.clean, &lane.parked}) {
      std::ranges::copy_if(*some, std::back_inserter(all),
                           [&](std::size_t node) { return !accused_.contains(node) && !parked_.contains(node); });
    }
  }
  return all;
}

/// Whether all clean nodes together meet their limits, again and again.
Search<bool> Localiser::everything() {
  const Nodes all = clean_nodes();
  if (all.size() < 2) co_return true;
  for (int i = 0; i < std::max(kLastRepeats, repeats_); ++i) {
    const std::size_t number = co_await ask(all, "everything together");
    if (!rule_by_limit(number)) co_return false;
  }
  co_return true;
}

/// Compares every two of `parts` parts of the clean nodes: six halves, or more of a smaller size, in one of which any
/// two nodes are together. In one that is short of the others there is a pair to be found. Whether there is one.
Search<bool> Localiser::compare_unions(std::size_t parts) {
  const Nodes all = clean_nodes();
  if (all.size() < 2 * parts) parts = kQuarters;
  if (all.size() < parts) co_return false;
  std::vector<Lane> unions = unions_of(all, parts);
  const std::size_t size = unions.front().open.size();
  std::vector<Lane*> measured;
  for (auto& both : unions) measured.push_back(&both);
  co_await measure(measured);
  std::vector<std::size_t> bad;
  std::size_t place = 0;
  for (const auto& both : unions) {
    const auto held = std::ranges::count_if(both.measured, [&](std::size_t number) { return rule(number); });
    if (static_cast<std::size_t>(held) < both.measured.size()) bad.push_back(place);
    ++place;
  }
  if (bad.empty() || bad.size() == unions.size()) co_return false;
  controlled_.insert(size);
  for (const std::size_t i : bad) {
    Lane& lane = lanes_.emplace_back();
    lane.crosses_groups = true;
    lane.known_short = i == bad.front();  // of the others, findings in the first may have been the cause
    lane.shown = unions[i].open;
    std::ranges::copy_if(unions[i].open, std::back_inserter(lane.open),
                         [&](std::size_t node) { return !accused_.contains(node) && !parked_.contains(node); });
    co_await extend(lane);
    // Its nodes are clean in their own lanes, but for those that were found or given up here.
    for (auto& other : lanes_) std::erase_if(other.clean, [&](std::size_t node) { return given_up_.contains(node); });
    lanes_.pop_back();
  }
  co_return true;
}

/// Every two of `parts` parts of `all`, made equal in size with nodes of the others. Any two nodes are together in one.
std::vector<Localiser::Lane> Localiser::unions_of(const Nodes& all, std::size_t parts) const {
  const std::size_t part = (all.size() + parts - 1) / parts;
  std::vector<Lane> unions;
  for (const auto& round : plan::tournament(parts, parts)) {
    for (const auto& [a, b] : round) {
      Lane& both = unions.emplace_back();
      Nodes others;
      for (std::size_t i = 0; i < all.size(); ++i)
        (i / part == a || i / part == b ? both.open : others).push_back(all[i]);
      others.resize(2 * part - both.open.size());
      both.open = nodes::joined(std::move(both.open), others);
    }
  }
  return unions;
}

/// A parked node with all but its partners: it may be short with more than one.
Search<bool> Localiser::check_parked(std::size_t node, Nodes others) {
  while (parked_.contains(node)) {
    for (const auto& suspect : suspects_) {
      if (suspect.fault != Fault::pair || !nodes::holds(suspect.nodes, node)) continue;
      std::erase_if(others, [&](std::size_t other) { return nodes::holds(suspect.nodes, other); });
    }
    std::erase_if(others, [&](std::size_t other) { return accused_.contains(other); });
    Nodes together = nodes::joined(others, nodes::just(node));
    if (others.empty()) co_return true;
    const std::size_t number = co_await ask(std::move(together), "everything together");
    if (rule_by_limit(number)) co_return true;
    const Ruling ruling = co_await partner(node, others, true);
    if (ruling == Ruling::refuted && !accused_.contains(node)) {
      given_up_.insert(node);
      co_return false;
    }
  }
  co_return false;
}

}  // namespace assay::judge
