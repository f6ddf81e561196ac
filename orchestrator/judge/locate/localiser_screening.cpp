// localiser_screening: compares disjoint groups of one size and makes a lane of each: clean, or known to be short. If
// all are alike and short, groups of a quarter of the size are compared; if those are alike too, the search ends and
// accuses no node. Among few nodes the groups are pairs, in up to three rounds of a tournament.
#include <algorithm>
#include <map>
#include <string_view>

#include "orchestrator/judge/locate/localiser.h"
#include "orchestrator/judge/locate/node_lists.h"
#include "orchestrator/plan/pairing.h"

namespace assay::judge {
namespace {

constexpr std::size_t kPairRounds = 3;    // among few nodes
constexpr std::size_t kMostSmaller = 16;  // smaller groups that are compared, spread over all
constexpr std::size_t kSmallerBy = 4;     // than the groups before

}  // namespace

/// Compares groups of one size, and then smaller ones when those are alike and short. Whether there is a difference, or
/// all meet their limits.
Search<bool> Localiser::screen() {
  plan::Screening screening = plan::screening_of(nodes_.size());
  if (screening.size == 2) co_return co_await screen_pairs();
  for (int round = 0; round < kMostAlike; ++round) {
    lanes_ = groups_of(screening);
    const std::size_t most = round == 0 ? screening.groups : kMostSmaller;
    std::vector<Lane*> measured;
    std::size_t place = 0;
    for (auto& lane : lanes_) {
      // As many as are wanted, evenly spread; the remaining nodes are in no group.
      const bool chosen = place * most / screening.groups != (place + 1) * most / screening.groups;
      if (place < screening.groups && (most >= screening.groups || chosen)) measured.push_back(&lane);
      ++place;
    }
    co_await measure(measured);
    controls_.expect(screening.size);
    co_await best_again(screening.size);
    // Smaller groups that meet their limits where larger ones were alike and short say nothing of any node.
    if (differ(screening.size, round == 0)) co_return true;
    controls_.forget(screening.size);
    screening.size = std::max<std::size_t>(2, screening.size / kSmallerBy);
    screening.groups = nodes_.size() / screening.size;
  }
  lanes_.clear();
  alike_ = true;
  co_return false;
}

/// The same among few nodes: rounds of pairs.
Search<bool> Localiser::screen_pairs() {
  std::list<Lane> pairs;
  for (const auto& round : plan::tournament(nodes_.size(), kPairRounds)) {
    std::vector<Lane*> measured;
    for (const auto& [low, high] : round) {
      Lane& lane = pairs.emplace_back();
      lane.open.push_back(low);
      lane.open.push_back(high);
      measured.push_back(&lane);
    }
    co_await measure(measured);
    controls_.expect(2);
    lanes_ = pairs;
    if (pairs.size() > 1 && differ(2, true)) {
      make_lanes_of_pairs(lanes_);
      co_return true;
    }
  }
  lanes_.clear();
  alike_ = pairs.size() > 1;
  co_return false;
}

/// Disjoint groups with neighbours on one leaf side by side, so that a bad leaf spoils few; remaining nodes are last.
std::list<Localiser::Lane> Localiser::groups_of(plan::Screening screening) const {
  Nodes order(nodes_.size());
  std::map<std::string_view, std::size_t> leaves;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    order[i] = i;
    leaves.emplace(nodes_[i].leaf, leaves.size());
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t node) { return leaves.at(nodes_[node].leaf); });
  std::list<Lane> lanes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i % screening.size == 0) lanes.emplace_back();
    lanes.back().open.push_back(order[i]);
  }
  return lanes;
}

/// Tests each of `lanes`, which are of one size, side by side. Where faults show now and then, again until some are
/// short and others are not.
Search<bool> Localiser::measure(std::vector<Lane*> lanes) {
  for (int i = 0; i < repeats_; ++i) {
    std::vector<Search<bool>> each;
    for (Lane* lane : lanes) each.push_back(measure_once(*lane));
    co_await Search<bool>::all(each);
    std::size_t bad = 0;
    for (const Lane* lane : lanes) bad += was_short(*lane) ? 1 : 0;
    if (bad > 0 && bad < lanes.size()) break;
  }
  co_return true;
}

/// Tests all of `lane` together.
Search<bool> Localiser::measure_once(Lane& lane) {
  Nodes together = lane.open;
  const std::size_t number = co_await ask(std::move(together), "screening");
  lane.measured.push_back(number);
  co_return true;
}

/// Whether all of `lane` together was short of the others in one of its tests.
bool Localiser::was_short(const Lane& lane) const {
  return std::ranges::any_of(lane.measured, [&](std::size_t number) {
    const Tested& test = tested_[number - 1];
    const auto compared = controls_.compare(test.test.nodes.size(), test.reading);
    return test.reading.broken || (compared && compared->is_short);
  });
}

/// One group that is better than all others may be so by chance: it is tested again.
Search<bool> Localiser::best_again(std::size_t size) {
  if (lanes_.size() < 3 || controls_.count(size) > 1) co_return false;
  Lane* best = nullptr;
  double most = 0;
  for (auto& lane : lanes_) {
    for (const std::size_t number : lane.measured) {
      const auto compared = controls_.compare(size, tested_[number - 1].reading);
      if (!compared || (best != nullptr && compared->share <= most)) continue;
      best = &lane;
      most = compared->share;
    }
  }
  if (best == nullptr) co_return false;
  co_await measure_once(*best);
  co_return true;
}

/// Rules on the groups of this size that were measured: those that are good become clean. Whether some are and some are
/// not, or all are and, if that is `enough`, meet their limits. Good groups that all hold the same node, or a single
/// one, must meet their limits: short of them, that node may be the fault and the tests of the others broken.
bool Localiser::differ(std::size_t size, bool enough) {
  std::size_t bad = 0;
  std::size_t held = 0;
  Nodes in_all_good;
  for (auto& lane : lanes_) {
    if (lane.measured.empty()) continue;
    if (was_short(lane)) {
      ++bad;
      continue;
    }
    if (held == 0)
      in_all_good = lane.open;
    else
      std::erase_if(in_all_good, [&](std::size_t node) { return !nodes::holds(lane.open, node); });
    ++held;
  }
  const bool meet = held > 0 && controls_.meet_limits(size);
  const bool differs = bad > 0 ? held > 0 && (in_all_good.empty() || meet) : enough && meet;
  for (auto& lane : lanes_) {
    bool clean = !lane.measured.empty();
    for (const std::size_t number : lane.measured) {
      const auto trust = trust_;
      if (!rule(number)) clean = false;
      if (!differs) trust_ = trust;
    }
    if (!differs || lane.measured.empty()) continue;
    lane.known_short = !clean;
    if (clean) {
      lane.clean = std::exchange(lane.open, {});
    } else {
      lane.shown = lane.open;
      for (const std::size_t node : lane.open) trust_[node] = 0;  // one of several readings of them may have been good
    }
  }
  if (differs) controlled_.insert(size);
  return differs;
}

/// Disjoint lanes from pairs that overlap: the good ones first, then nodes that are in none of those.
void Localiser::make_lanes_of_pairs(const std::list<Lane>& pairs) {
  std::list<Lane> lanes;
  std::set<std::size_t> placed;
  const auto is_free = [&](std::size_t node) { return !placed.contains(node); };
  for (const bool wanted_clean : {true, false}) {
    for (const auto& pair : pairs) {
      const Nodes& nodes = wanted_clean ? pair.clean : pair.open;
      if (nodes.empty()) continue;
      for (const std::size_t node : nodes) trust_[node] += wanted_clean ? 1 : 0;
      if (!std::ranges::all_of(nodes, is_free)) continue;
      placed.insert(nodes.begin(), nodes.end());
      lanes.push_back(pair);
    }
  }
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!is_free(node)) continue;
    lanes.emplace_back();
    (trust_[node] > 0 ? lanes.back().clean : lanes.back().open).push_back(node);
  }
  lanes_ = std::move(lanes);
}

}  // namespace assay::judge
