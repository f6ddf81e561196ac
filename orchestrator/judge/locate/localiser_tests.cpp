// localiser_tests: asks for a test, compares it with controls of its size (controls.h) or only with the limits, and
// keeps which nodes were good together. A test of a size without controls is filled up with trusted nodes to one that
// has them (filled()).
#include <algorithm>
#include <array>
#include <ranges>

#include "orchestrator/judge/locate/localiser.h"
#include "orchestrator/judge/locate/node_lists.h"

namespace assay::judge {
namespace {

constexpr std::size_t kControls = 2;      // of each size, before anything is compared with them
constexpr std::size_t kMostControls = 4;  // where the first ones are not alike
constexpr std::size_t kUnsteadyRepeats = 3;

}  // namespace

Localiser::Ask Localiser::ask(Nodes nodes, const char* purpose) {
  std::ranges::sort(nodes);
  return {.localiser = *this, .wanted = {.nodes = std::move(nodes), .purpose = purpose}};
}

void Localiser::Ask::await_suspend(std::coroutine_handle<> waiter) {
  wanted.waiter = waiter;
  localiser.wanted_.push_back(&wanted);
}
/// How often a test must be good to count as good.
int Localiser::repeats(bool steady) const { return steady ? repeats_ : std::max<int>(repeats_, kUnsteadyRepeats); }

/// Whether the test of this number was good by the controls of its size. Its nodes are then trusted.
bool Localiser::rule(std::size_t number) {
  Tested& test = tested_[number - 1];
  const auto compared = controls_.compare(test.test.nodes.size(), test.reading);
  test.outcome = test.reading.broken               ? TestOutcome::broken
                 : !compared || compared->is_short ? TestOutcome::short_of_limit
                                                   : TestOutcome::good;
  if (compared) {
    test.share = compared->share;
    test.control = compared->control;
  }
  if (test.outcome != TestOutcome::good) return false;
  remember(test.test.nodes);
  return true;
}

/// The same only by the limits, where no controls of its size can be had.
bool Localiser::rule_by_limit(std::size_t number) {
  Tested& test = tested_[number - 1];
  const bool meets = test.reading.meets();
  test.outcome = test.reading.broken ? TestOutcome::broken : meets ? TestOutcome::good : TestOutcome::short_of_limit;
  if (!test.reading.shares.empty()) test.share = std::ranges::min(test.reading.shares);
  if (!meets) return false;
  remember(test.test.nodes);
  return true;
}

/// Whether `nodes` are good together `times` times in a row.
Search<bool> Localiser::good(Nodes nodes, const char* purpose, int times) {
  if (nodes.size() < 2) co_return false;  // no other node is there to see it with
  bool controlled = controlled_.contains(nodes.size());
  if (!controlled) controlled = co_await control(nodes.size(), nodes);
  for (int i = 0; i < times; ++i) {
    const std::size_t number = co_await ask(nodes, purpose);
    const bool held = controlled ? rule(number) : rule_by_limit(number);
    if (!held) co_return false;
  }
  co_return true;
}

/// The same of `nodes` of `lane`, filled up with others than the lane's own. Where a pair across groups is searched,
/// the others must have been good with all of them: a pair of one of each would mislead the search.
Search<bool> Localiser::lane_good(Lane& lane, Nodes nodes, const char* purpose) {
  Nodes own = lane.open;
  own.insert(own.end(), lane.parked.begin(), lane.parked.end());
  own.insert(own.end(), lane.clean.begin(), lane.clean.end());
  Nodes together = filled(std::move(nodes), own, lane.crosses_groups);
  const bool held = co_await good(together, purpose, repeats(lane.steady()));
  if (!held) lane.shown = std::move(together);
  co_return held;
}

/// Makes control tests of `size` trusted nodes until there are enough that are alike; `without` these nodes if
/// possible. Whether there are.
Search<bool> Localiser::control(std::size_t size, Nodes without) {
  const Nodes none;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < kMostControls && controls_.count(size) < kControls; ++i) {
    Nodes near(1, begin % nodes_.size());
    Nodes spare = trusted(near, without);
    if (spare.size() < size) spare = trusted(near, none);
    if (spare.size() < size) co_return false;
    if (size == 2) {
      // As far apart as the peers of a suspect.
      Nodes first(1, spare.front());
      if (const auto peer = peer_for(first, without)) spare = {first.front(), *peer};
    } else if (Nodes together = good_together(size, i); !together.empty()) {
      spare = std::move(together);
    }
    spare.resize(size);
    const std::size_t number = co_await ask(spare, "control");
    (void)rule(number);  // by the others of its size: of the first there are none
    begin = spare.back() + 1;
  }
  if (controls_.count(size) < kControls) co_return false;
  controlled_.insert(size);
  co_return true;
}

/// The nodes of a larger test that was good and has none of those found since; of the first such test where `place` is
/// even and of the last if it is odd, so that two controls differ. None if there is none.
Localiser::Nodes Localiser::good_together(std::size_t size, std::size_t place) const {
  const auto serves = [&](const Tested& one) {
    return one.outcome == TestOutcome::good && one.test.nodes.size() > size &&
           std::ranges::all_of(one.test.nodes, [&](std::size_t node) {
             return trust_[node] > 0 && !accused_.contains(node) && !parked_.contains(node) &&
                    !given_up_.contains(node);
           });
  };
  Nodes found;
  for (const Tested& one : tested_) {
    if (!serves(one)) continue;
    found = one.test.nodes;
    if (place % 2 == 0) return found;
  }
  std::ranges::reverse(found);
  return found;
}

/// Trusted nodes but `without`, those after `near` first.
Localiser::Nodes Localiser::trusted(const Nodes& near, const Nodes& without) const {
  std::vector<bool> out(nodes_.size());
  for (const std::size_t node : without) out[node] = true;
  Nodes found;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::size_t node = (i + near.front()) % nodes_.size();
    if (!out[node] && trust_[node] > 0 && !accused_.contains(node) && !parked_.contains(node) &&
        !given_up_.contains(node))
      found.push_back(node);
  }
  return found;
}

/// `nodes`, filled up with trusted ones to the next size that has controls; unchanged if there are too few of them.
/// - Never one of `without`: whether these are good is still open.
/// - Only such as were good with each other; where `known`, with all of `nodes` as well.
/// - First those that were good with all of `nodes` and `without`, then those that were good with all of `nodes`. The
///   order is otherwise the same for each part of these nodes, so that a bisection adds one node at a time.
Localiser::Nodes Localiser::filled(Nodes nodes, const Nodes& without, bool known) const {
  const auto size = controlled_.lower_bound(nodes.size());
  if (nodes.empty() || size == controlled_.end() || *size == nodes.size()) return nodes;
  Nodes others = without;
  others.insert(others.end(), nodes.begin(), nodes.end());
  if (*size == 2) {
    const auto peer = peer_for(nodes, others);
    if (peer) nodes.push_back(*peer);
    return nodes;
  }
  Nodes near(1, std::ranges::min(others));
  std::array<Nodes, 3> spare;  // by rank
  for (const std::size_t one : trusted(near, others))
    spare[were_good_with(one, others) ? 0 : were_good_with(one, nodes) ? 1 : 2].push_back(one);
  if (known) spare.back().clear();
  const std::size_t missing = *size - nodes.size();
  Nodes added;
  for (const std::size_t one : spare | std::views::join) {
    if (added.size() == missing) break;
    if (were_good_with(one, added)) added.push_back(one);
  }
  if (added.size() == missing) nodes.insert(nodes.end(), added.begin(), added.end());
  return nodes;
}

/// Takes down that these nodes were good together.
void Localiser::remember(const Nodes& nodes) {
  for (const std::size_t node : nodes) {
    ++trust_[node];
    if (good_with_[node].empty()) good_with_[node].resize(nodes_.size());
    for (const std::size_t other : nodes) good_with_[node][other] = true;
  }
}

bool Localiser::were_good(std::size_t a, std::size_t b) const { return !good_with_[a].empty() && good_with_[a][b]; }

bool Localiser::were_good_with(std::size_t one, const Nodes& all) const {
  return std::ranges::all_of(all, [&](std::size_t other) { return were_good(one, other); });
}

/// A node to test `nodes` with that was good before and is not one of `used`: of another leaf than they and those used
/// when it can be, because a bad leaf makes good nodes look bad; then the one that was good most often.
std::optional<std::size_t> Localiser::peer_for(const Nodes& nodes, const Nodes& used) const {
  constexpr int kEnough = 3;  // beyond it trust does not rank peers, and the load is spread
  std::optional<std::size_t> best;
  int best_score = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    // Each begins at another place, so that tests of one round do not all want the same peer.
    const std::size_t candidate = (i + 37 * (nodes.front() + 1)) % nodes_.size();
    if (trust_[candidate] == 0 || accused_.contains(candidate) || parked_.contains(candidate) ||
        given_up_.contains(candidate))
      continue;
    if (nodes::holds(nodes, candidate) || nodes::holds(used, candidate)) continue;
    const auto same_leaf = [&](std::size_t other) {
      return !nodes_[other].leaf.empty() && nodes_[other].leaf == nodes_[candidate].leaf;
    };
    const bool apart = std::ranges::none_of(nodes, same_leaf) && std::ranges::none_of(used, same_leaf);
    const int score = std::min(trust_[candidate], kEnough) + (apart ? kEnough + 1 : 0);
    if (score > best_score) {
      best = candidate;
      best_score = score;
    }
  }
  return best;
}

}  // namespace assay::judge
