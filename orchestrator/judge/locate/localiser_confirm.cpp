// localiser_confirm: classifies a suspect as a node at fault, one of a bad pair, or a false alarm.
//   confirm()   the suspect with another good node each time: two short outcomes accuse it, two good ones clear it
//               (more where outcomes contradict each other).
//   classify()  cleared, and good in the group that was short when that is tested again: a false alarm.
//   partner()   cleared, and the group is short again: bisection among the group for the node with which it is short;
//               the two together must be short twice, and the partner must be good with others.
//   sweep()     after three accused nodes of one leaf, its other nodes one by one.
#include <algorithm>

#include "orchestrator/judge/locate/localiser.h"
#include "orchestrator/judge/locate/node_lists.h"

namespace assay::judge {
namespace {

constexpr int kShortToAccuse = 2;       // one outcome may be wrong
constexpr int kGoodToDrop = 2;          // without any short one between them
constexpr int kGoodToDropMixed = 3;     // next to a short one
constexpr int kGoodToDropUnsteady = 4;  // where outcomes contradicted each other before: five confirming tests at most
constexpr std::size_t kMostPartners = 3;     // a node that is short with so many others is itself at fault
constexpr std::size_t kLeafAccusations = 3;  // of one leaf, before the rest of it is tested node by node

/// How many good outcomes refute a suspicion.
int good_to_drop(bool steady, int bad) {
  return !steady ? kGoodToDropUnsteady : bad == 0 ? kGoodToDrop : kGoodToDropMixed;
}

}  // namespace

/// Tests `suspects` until short outcomes accuse or good ones acquit: one node with another peer each time, two with
/// each other.
Search<Localiser::Count> Localiser::confirm(Nodes suspects, bool steady) {
  Count count;
  Nodes used;
  bool controlled = controlled_.contains(2);
  if (!controlled) controlled = co_await control(2, suspects);
  if (!controlled) co_return count;  // no node is accused only by the limit
  while (count.bad < kShortToAccuse && count.good < std::max(good_to_drop(steady, count.bad), repeats(steady))) {
    Nodes together = suspects;
    if (suspects.size() == 1) {
      const auto peer = peer_for(suspects, used);
      if (!peer) break;
      used.push_back(*peer);
      together.push_back(*peer);
    }
    const std::size_t number = co_await ask(std::move(together), "confirmation");
    ++(rule(number) ? count.good : count.bad);
    count.tests.push_back(number);
  }
  co_return count;
}

/// Rules on a node that was short together with the clean nodes `together`.
Search<Localiser::Ruling> Localiser::classify(std::size_t suspect, Nodes together, bool steady) {
  Nodes alone = nodes::just(suspect);
  Count count = co_await confirm(std::move(alone), steady);
  if (count.bad >= kShortToAccuse) {
    accuse_node(suspect, std::move(count));
    co_return Ruling::accused;
  }
  if (together.empty()) co_return Ruling::refuted;
  Nodes again = nodes::joined(together, nodes::just(suspect));
  if (co_await good(std::move(again), "confirmation", repeats(steady))) co_return Ruling::refuted;
  co_return co_await partner(suspect, std::move(together), steady);
}

/// Finds the nodes of `among` with which the suspect, which is good with others, falls short.
Search<Localiser::Ruling> Localiser::partner(std::size_t suspect, Nodes among, bool steady) {
  while (among.size() > 1) {
    Nodes half = nodes::front(among, among.size() / 2);
    Nodes rest(among.begin() + static_cast<std::ptrdiff_t>(half.size()), among.end());
    Nodes together = filled(nodes::joined(half, nodes::just(suspect)), rest, true);
    const bool held = co_await good(std::move(together), "partner search", repeats(steady));
    among = held ? std::move(rest) : std::move(half);
  }
  const std::size_t other = among.front();
  Nodes both = nodes::pair_of(suspect, other);
  Count count = co_await confirm(both, steady);
  if (count.bad < kShortToAccuse) co_return Ruling::refuted;
  // A good result in a large group may be chance: the partner is tested in a pair, too, and if faults are intermittent
  // the suspect once more.
  if (repeats_ > 1) {
    Nodes itself = nodes::just(suspect);
    Count once_more = co_await confirm(std::move(itself), steady);
    if (once_more.bad >= kShortToAccuse) {
      accuse_node(suspect, std::move(once_more));
      co_return Ruling::accused;
    }
  }
  Nodes alone = nodes::just(other);
  Count heard = co_await confirm(std::move(alone), steady);
  if (heard.bad >= kShortToAccuse) {
    accuse_node(other, std::move(heard));
    co_return Ruling::refuted;
  }
  count.tests.insert(count.tests.end(), heard.tests.begin(), heard.tests.end());
  accuse_pair(suspect, other, std::move(count));
  co_return Ruling::paired;
}

/// Every node of `leaf` in `lane` separately: a leaf that is bad as a whole would cost a bisection for each of its
/// nodes.
Search<bool> Localiser::sweep(Lane& lane, std::string leaf) {
  swept_.insert(leaf);
  Nodes nodes;
  for (Nodes* some : {&lane.clean, &lane.open}) {
    std::ranges::copy_if(*some, std::back_inserter(nodes), [&](std::size_t node) { return nodes_[node].leaf == leaf; });
  }
  std::vector<Search<bool>> each;
  for (const std::size_t node : nodes) each.push_back(holds(node));
  co_await Search<bool>::all(each);
  for (Nodes* some : {&lane.clean, &lane.open})
    std::erase_if(*some, [&](std::size_t node) { return accused_.contains(node); });
  co_return true;
}

/// Whether `node` is good with peers; accuses it when it is not.
Search<bool> Localiser::holds(std::size_t node) {
  Nodes alone = nodes::just(node);
  Count count = co_await confirm(std::move(alone), true);
  if (count.bad < kShortToAccuse) co_return true;
  accuse_node(node, std::move(count));
  co_return false;
}

/// Accuses the pair, and leaves `parked` out from now on; a node with too many partners is accused in place of its
/// pairs.
void Localiser::accuse_pair(std::size_t parked, std::size_t other, Count shown) {
  const std::vector<std::size_t> nodes = {std::min(parked, other), std::max(parked, other)};
  suspects_.push_back(
      {.fault = Fault::pair, .nodes = nodes, .unsteady = shown.good > 0, .tests = std::move(shown.tests)});
  parked_.insert(parked);
  for (const std::size_t node : nodes) {
    const auto is_of_node = [&](const Suspect& suspect) {
      return suspect.fault == Fault::pair && nodes::holds(suspect.nodes, node);
    };
    if (static_cast<std::size_t>(std::ranges::count_if(suspects_, is_of_node)) < kMostPartners) continue;
    Count all{.good = 1};  // it was good with some, too
    for (const auto& suspect : suspects_) {
      if (is_of_node(suspect)) all.tests = nodes::joined(std::move(all.tests), suspect.tests);
    }
    std::erase_if(suspects_, is_of_node);
    accuse_node(node, std::move(all));
    std::erase_if(parked_, [&](std::size_t one) {
      return one == node || std::ranges::none_of(suspects_, [&](const Suspect& left) {
               return left.fault == Fault::pair && nodes::holds(left.nodes, one);
             });
    });
  }
}

void Localiser::accuse_node(std::size_t node, Count shown) {
  if (!accused_.insert(node).second) return;
  suspects_.push_back(
      {.fault = Fault::node, .nodes = {node}, .unsteady = shown.good > 0, .tests = std::move(shown.tests)});
}

bool Localiser::leaf_looks_bad(const std::string& leaf) const {
  if (leaf.empty() || swept_.contains(leaf)) return false;
  const auto accused = std::ranges::count_if(accused_, [&](std::size_t node) { return nodes_[node].leaf == leaf; });
  return static_cast<std::size_t>(accused) >= kLeafAccusations;
}

}  // namespace assay::judge
