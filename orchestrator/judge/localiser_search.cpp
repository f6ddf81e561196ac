// localiser_search: the search itself, as one reads it.
#include <algorithm>

#include "orchestrator/judge/localiser.h"
#include "orchestrator/plan/pairing.h"

namespace assay::judge {
namespace {

constexpr int kShortToAccuse = 2;       // one outcome may be wrong
constexpr int kGoodToDrop = 2;          // without any short one between them
constexpr int kGoodToDropMixed = 3;     // beside a short one
constexpr int kGoodToDropUnsteady = 4;  // where outcomes contradicted each other before: five confirming tests at most
constexpr int kRepeats = 3;             // of a good outcome, where outcomes contradicted each other before
constexpr int kLastRepeats = 2;         // of the last one, of everything together: it is what acquits
constexpr int kMostRefuted = 4;         // suspicions in one lane; beyond it the outcomes contradict each other too much
constexpr std::size_t kMostPartners = 3;     // a node that is short with so many others is itself at fault
constexpr std::size_t kLeafAccusations = 3;  // of one leaf, before the rest of it is tested node by node
constexpr std::size_t kAnchorRounds = 3;     // of pairs, to find two that are good together

using Nodes = std::vector<std::size_t>;

// g++ 12 mixes up the frames of coroutines with braced temporaries in them; these have names. Delete them with g++ 13.
Nodes just(std::size_t node) { return Nodes(1, node); }
Nodes pair_of(std::size_t a, std::size_t b) { return {a, b}; }

Nodes joined(Nodes first, const Nodes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Nodes front(const Nodes& nodes, std::size_t count) {
  return {nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// How many good outcomes refute a suspicion.
int good_to_drop(bool steady, int bad) {
  return !steady ? kGoodToDropUnsteady : bad == 0 ? kGoodToDrop : kGoodToDropMixed;
}

bool holds_node(const Nodes& nodes, std::size_t node) { return std::ranges::find(nodes, node) != nodes.end(); }

}  // namespace

Search<bool> Localiser::main() {
  if (nodes_.size() < 2) co_return false;
  lanes_ = chunks();
  std::vector<Search<bool>> screening;
  for (auto& lane : lanes_) screening.push_back(extend(lane));
  co_await Search<bool>::all(screening);

  Lane whole;
  whole.clean = lanes_.front().clean;
  for (std::size_t i = 1; i < lanes_.size(); ++i) whole.open = joined(std::move(whole.open), lanes_[i].clean);
  if (whole.clean.empty()) std::swap(whole.clean, whole.open);
  for (const auto& lane : lanes_) whole.parked = joined(std::move(whole.parked), lane.parked);
  lanes_.resize(1);
  lanes_.front() = std::move(whole);
  co_await extend(lanes_.front());
  const Nodes parked(parked_.begin(), parked_.end());
  for (const std::size_t node : parked) co_await check_parked(node, lanes_.front().clean);
  complete_ = given_up_.empty();
  co_return true;
}

/// Moves every open node of `lane` to the clean ones, but for those that are at fault.
Search<bool> Localiser::extend(Lane& lane) {
  const bool last = lanes_.size() == 1;
  const Nodes nobody;
  while (!lane.open.empty()) {
    if (!lane.known_short) {
      Nodes together = joined(lane.clean, lane.open);
      if (together.size() == 1) {
        const auto peer = peer_for(together, nobody);
        if (!peer) break;
        together.push_back(*peer);
      }
      const int times = !lane.steady() ? kRepeats : last ? kLastRepeats : 1;
      if (co_await good(std::move(together), last ? "everything together" : "screening", times)) {
        lane.clean = joined(std::move(lane.clean), lane.open);
        lane.open.clear();
        break;
      }
    }
    lane.known_short = false;
    const auto first = co_await bisect(lane);
    if (!first) {
      if (lane.clean.empty() && !has_peer(lane.open.front())) break;
      lane.known_short = true;  // now there is somebody to test with
      continue;
    }
    lane.clean = joined(std::move(lane.clean), front(lane.open, *first));
    const std::size_t suspect = lane.open[*first];
    lane.open.erase(lane.open.begin(), lane.open.begin() + static_cast<std::ptrdiff_t>(*first) + 1);
    const Ruling ruling = co_await classify(suspect, lane.clean, lane.steady());
    if (ruling == Ruling::paired) lane.parked.push_back(suspect);
    if (ruling == Ruling::refuted) co_await refute(lane, suspect);
    reopen_parked(lane);
    std::erase_if(lane.clean, [&](std::size_t node) { return accused_.contains(node); });
    std::set<std::string> leaves;
    for (const std::size_t node : accused_) leaves.insert(nodes_[node].leaf);
    for (const auto& leaf : leaves) {
      if (leaf_looks_bad(leaf)) co_await sweep(lane, leaf);
    }
  }
  given_up_.insert(lane.open.begin(), lane.open.end());
  lane.open.clear();
  co_return true;
}

/// Opens whoever was left out for a partner that has since been accused by itself.
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
    if (together.size() > 1) clean = co_await good(std::move(together), "confirmation", kRepeats);
  }
  if (clean) co_return true;
  lane.open = joined(std::move(lane.clean), lane.open);
  lane.clean.clear();
  lane.known_short = true;
  co_return true;
}

/// Whether `nodes` are good together `times` times in a row.
Search<bool> Localiser::good(Nodes nodes, const char* purpose, int times) {
  for (int i = 0; i < times; ++i) {
    if (!co_await ask(nodes, purpose)) co_return false;
  }
  co_return true;
}

/// The first open node of `lane` with which those before it and the clean ones are short, when all together are.
/// Nothing when there is nobody to tell two nodes apart with; then two that are good together are searched, and made
/// clean.
Search<std::optional<std::size_t>> Localiser::bisect(Lane& lane) {
  const Nodes nobody;
  std::size_t low = 0;
  std::size_t high = lane.open.size();
  while (high - low > 1) {
    std::size_t middle = low + (high - low) / 2;
    Nodes together = joined(lane.clean, front(lane.open, middle));
    if (together.size() == 1) {
      if (const auto peer = peer_for(together, nobody)) {
        together.push_back(*peer);
      } else if (high > 2) {
        middle = 2;
        together = front(lane.open, middle);
      } else {
        co_await anchor(lane);
        co_return std::nullopt;
      }
    }
    const bool held = co_await good(std::move(together), "bisection", lane.steady() ? 1 : kRepeats);
    (held ? low : high) = middle;
  }
  co_return low;
}

/// Makes two open nodes that are good together clean.
Search<bool> Localiser::anchor(Lane& lane) {
  const Nodes nodes = lane.open;
  for (const auto& round : plan::tournament(nodes.size(), kAnchorRounds)) {
    for (const auto& [low, high] : round) {
      if (has_peer(nodes[low])) co_return true;  // another chunk has found some meanwhile
      Nodes two = pair_of(nodes[low], nodes[high]);
      if (!co_await ask(two, "screening")) continue;
      lane.clean = two;
      std::erase_if(lane.open, [&](std::size_t node) { return holds_node(two, node); });
      co_return true;
    }
  }
  co_return false;
}

/// Tests `suspects` until short outcomes accuse or good ones acquit: one node with another peer each time, two with
/// each other.
Search<Localiser::Count> Localiser::confirm(Nodes suspects, bool steady) {
  Count count;
  Nodes used;
  while (count.bad < kShortToAccuse && count.good < good_to_drop(steady, count.bad)) {
    Nodes together = suspects;
    if (suspects.size() == 1) {
      const auto peer = peer_for(suspects, used);
      if (!peer) break;
      used.push_back(*peer);
      together.push_back(*peer);
    }
    Ask test = ask(std::move(together), "confirmation");
    ++(co_await test ? count.good : count.bad);
    count.tests.push_back(test.wanted.number);
  }
  co_return count;
}

/// Rules on a node that was short together with the clean nodes `together`.
Search<Localiser::Ruling> Localiser::classify(std::size_t suspect, Nodes together, bool steady) {
  Nodes alone = just(suspect);
  Count count = co_await confirm(std::move(alone), steady);
  if (count.bad >= kShortToAccuse) {
    accuse_node(suspect, std::move(count));
    co_return Ruling::accused;
  }
  if (together.empty()) co_return Ruling::refuted;
  Nodes again = joined(together, just(suspect));
  if (co_await good(std::move(again), "confirmation", steady ? 1 : kRepeats)) co_return Ruling::refuted;
  co_return co_await partner(suspect, std::move(together), steady);
}

/// Finds with whom of `among` the suspect, which is good with others, falls short.
Search<Localiser::Ruling> Localiser::partner(std::size_t suspect, Nodes among, bool steady) {
  while (among.size() > 1) {
    Nodes half = front(among, among.size() / 2);
    Nodes rest(among.begin() + static_cast<std::ptrdiff_t>(half.size()), among.end());
    Nodes together = joined(half, just(suspect));
    const bool held = co_await good(std::move(together), "partner search", steady ? 1 : kRepeats);
    among = held ? std::move(rest) : std::move(half);
  }
  const std::size_t other = among.front();
  Nodes both = pair_of(suspect, other);
  Count count = co_await confirm(both, steady);
  if (count.bad < kShortToAccuse) co_return Ruling::refuted;
  // What was good in a crowd may have been so by chance: the partner is heard alone, too.
  Nodes alone = just(other);
  Count heard = co_await confirm(std::move(alone), steady);
  if (heard.bad >= kShortToAccuse) {
    accuse_node(other, std::move(heard));
    co_return Ruling::refuted;
  }
  count.tests.insert(count.tests.end(), heard.tests.begin(), heard.tests.end());
  accuse_pair(suspect, other, std::move(count));
  co_return Ruling::paired;
}

/// Every node of `leaf` in `lane` by itself: a leaf that is bad as a whole would cost a bisection for each of its
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
  Nodes alone = just(node);
  Count count = co_await confirm(std::move(alone), true);
  if (count.bad < kShortToAccuse) co_return true;
  accuse_node(node, std::move(count));
  co_return false;
}

/// A parked node with everybody but its partners: it may be short with more than one.
Search<bool> Localiser::check_parked(std::size_t node, Nodes others) {
  while (parked_.contains(node)) {
    for (const auto& suspect : suspects_) {
      if (suspect.fault != Fault::pair || !holds_node(suspect.nodes, node)) continue;
      std::erase_if(others, [&](std::size_t other) { return holds_node(suspect.nodes, other); });
    }
    std::erase_if(others, [&](std::size_t other) { return accused_.contains(other); });
    Nodes together = joined(others, just(node));
    if (others.empty()) co_return true;
    if (co_await ask(std::move(together), "everything together")) co_return true;
    const Ruling ruling = co_await partner(node, others, true);
    if (ruling == Ruling::refuted && !accused_.contains(node)) {
      given_up_.insert(node);
      co_return false;
    }
  }
  co_return false;
}

/// Accuses the pair, and leaves `parked` out from now on; a node with too many partners is accused by itself.
void Localiser::accuse_pair(std::size_t parked, std::size_t other, Count shown) {
  const std::vector<std::size_t> nodes = {std::min(parked, other), std::max(parked, other)};
  suspects_.push_back(
      {.fault = Fault::pair, .nodes = nodes, .leaf = "", .unsteady = shown.good > 0, .tests = std::move(shown.tests)});
  parked_.insert(parked);
  for (const std::size_t node : nodes) {
    const auto is_of_node = [&](const Suspect& suspect) {
      return suspect.fault == Fault::pair && holds_node(suspect.nodes, node);
    };
    if (static_cast<std::size_t>(std::ranges::count_if(suspects_, is_of_node)) < kMostPartners) continue;
    Count all{.bad = 0, .good = 1, .tests = {}};  // it was good with some, too
    for (const auto& suspect : suspects_) {
      if (is_of_node(suspect)) all.tests = joined(std::move(all.tests), suspect.tests);
    }
    std::erase_if(suspects_, is_of_node);
    accuse_node(node, std::move(all));
    std::erase_if(parked_, [&](std::size_t one) {
      return one == node || std::ranges::none_of(suspects_, [&](const Suspect& left) {
               return left.fault == Fault::pair && holds_node(left.nodes, one);
             });
    });
  }
}

bool Localiser::has_peer(std::size_t node) const { return peer_for({node}, {}).has_value(); }

void Localiser::accuse_node(std::size_t node, Count shown) {
  if (!accused_.insert(node).second) return;
  suspects_.push_back(
      {.fault = Fault::node, .nodes = {node}, .leaf = "", .unsteady = shown.good > 0, .tests = std::move(shown.tests)});
}

bool Localiser::leaf_looks_bad(const std::string& leaf) const {
  if (leaf.empty() || swept_.contains(leaf)) return false;
  const auto accused = std::ranges::count_if(accused_, [&](std::size_t node) { return nodes_[node].leaf == leaf; });
  return static_cast<std::size_t>(accused) >= kLeafAccusations;
}

/// Somebody to test `nodes` with who was good before and is not one of `used`: of another leaf than they and those used
/// when it can be, because a bad leaf makes good nodes look bad; then whoever was good most often.
std::optional<std::size_t> Localiser::peer_for(const Nodes& nodes, const Nodes& used) const {
  constexpr int kEnough = 3;  // beyond it trust does not tell peers apart, and the load is spread
  std::optional<std::size_t> best;
  int best_score = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    // Each begins at another place, so that tests of one round do not all want the same peer.
    const std::size_t candidate = (i + 37 * (nodes.front() + 1)) % nodes_.size();
    if (trust_[candidate] == 0 || accused_.contains(candidate) || parked_.contains(candidate)) continue;
    if (holds_node(nodes, candidate) || holds_node(used, candidate)) continue;
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
