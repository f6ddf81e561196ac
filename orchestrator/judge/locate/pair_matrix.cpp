// pair_matrix: accuses the node with the largest share of short pairs, removes it, and repeats until no node is short
// in most of its pairs; the rest are pairs. See pair_matrix.h.
#include "orchestrator/judge/locate/pair_matrix.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::judge {
namespace {

constexpr std::size_t kShortPairsToName = 2;  // with only one partner it may as well be the partner

const char* role_of(PairDirection direction) {
  switch (direction) {
    case PairDirection::forward:
      return " as the sender";
    case PairDirection::backward:
      return " as the receiver";
    case PairDirection::both:
      break;
  }
  return "";
}

/// Pairs that are short while both of their ends are good with others, by the names of their nodes; both directions of
/// one pair are one culprit.
void name_pair(Localised& found, const SeenPair& pair, const std::vector<std::string>& nodes) {
  const auto& a = nodes[pair.a];
  const auto& b = nodes[pair.b];
  for (auto& earlier : found.culprits) {
    if (earlier.fault != Fault::pair || earlier.nodes != std::vector<std::string>{a, b}) continue;
    earlier.words =
        fmt::format("pair {} and {}: each meets the limit with other nodes; check the path between them", a, b);
    if (earlier.tests.back() != pair.step) earlier.tests.emplace_back(pair.step);
    return;
  }
  const bool forward = pair.direction == PairDirection::forward;
  const std::string way =
      pair.direction == PairDirection::both ? "" : fmt::format(", from {} to {}", forward ? a : b, forward ? b : a);
  found.culprits.push_back(
      {.fault = Fault::pair,
       .nodes = {a, b},
       .leaf = "",
       .unsteady = false,
       .tests = {std::string(pair.step)},
       .words = fmt::format("pair {} and {}{}: each meets the limit with other nodes; check the path between them", a,
                            b, way)});
}

}  // namespace

void PairMatrix::add(const SeenPair& pair) { pairs_.push_back(pair); }

bool PairMatrix::has_bad() const { return std::ranges::any_of(pairs_, &SeenPair::bad); }

/// `forward` is the end that sends, `backward` the one that receives.
PairMatrix::End PairMatrix::first(const SeenPair& pair) { return {pair.a, pair.direction}; }

PairMatrix::End PairMatrix::second(const SeenPair& pair) {
  const PairDirection other = pair.direction == PairDirection::forward    ? PairDirection::backward
                              : pair.direction == PairDirection::backward ? PairDirection::forward
                                                                          : PairDirection::both;
  return {pair.b, other};
}

bool PairMatrix::counts(const SeenPair& pair) const {
  return std::ranges::none_of(accused_,
                              [&](const Accused& one) { return one.end == first(pair) || one.end == second(pair); });
}

/// Of each end, over the pairs that count.
std::map<PairMatrix::End, PairMatrix::Share> PairMatrix::shares() const {
  std::map<End, Share> all;
  std::vector<const SeenPair*> bad;
  for (const auto& pair : pairs_) {
    if (!counts(pair)) continue;
    if (pair.bad) bad.push_back(&pair);
    for (const End& end : {first(pair), second(pair)}) all[end].good += pair.bad ? 0 : 1;
  }
  for (const SeenPair* pair : bad) {
    Share& one = all[first(*pair)];
    Share& two = all[second(*pair)];
    const auto charge = [&](Share& share, const Share& partner) {
      ++share.bad;
      if (partner.good == 0) return;
      ++share.shown;
      share.sure = share.sure || pair->sure;
    };
    charge(one, two);
    charge(two, one);
  }
  return all;
}

/// The end that is short in the largest share of its pairs, when it is most of them and its partners are good with
/// others.
std::optional<PairMatrix::End> PairMatrix::worst(const std::map<End, Share>& shares) {
  std::optional<End> found;
  for (const auto& [end, share] : shares) {
    if (share.shown < kShortPairsToName || !share.sure || share.bad <= share.good) continue;
    // bad / (bad + good) without a division.
    if (found) {
      const Share& best = shares.at(*found);
      if (share.bad * (best.bad + best.good) <= best.bad * (share.bad + share.good)) continue;
    }
    found = end;
  }
  return found;
}

PairMatrix::Accused PairMatrix::accused_at(const End& end, const std::map<End, Share>& shares) const {
  Accused accused{.end = end, .steps = {}};
  for (const auto& pair : pairs_) {
    const bool is_first = first(pair) == end;
    if ((!is_first && second(pair) != end) || !counts(pair)) continue;
    ++accused.all;
    if (!pair.bad) continue;
    ++accused.bad;
    if (shares.at(is_first ? second(pair) : first(pair)).good > 0) accused.steps.emplace_back(pair.step);
  }
  return accused;
}

const std::set<std::size_t>& PairMatrix::accuse() {
  for (auto all = shares(); const auto end = worst(all); all = shares()) {
    accused_.push_back(accused_at(*end, all));
    at_fault_.insert(end->first);
  }
  return at_fault_;
}

Culprit PairMatrix::culprit_of(std::size_t node, const std::string& name) const {
  Culprit culprit{.fault = Fault::node, .nodes = {name}, .leaf = "", .unsteady = false, .tests = {}, .words = ""};
  for (const auto& accused : accused_) {
    if (accused.end.first != node) continue;
    culprit.unsteady = culprit.unsteady || accused.bad < accused.all;
    culprit.words += fmt::format("{}in {} of {} pairs{}", culprit.words.empty() ? "" : " and ", accused.bad,
                                 accused.all, role_of(accused.end.second));
    for (const auto& step : accused.steps) {
      if (std::ranges::find(culprit.tests, step) == culprit.tests.end()) culprit.tests.push_back(step);
    }
  }
  culprit.words =
      fmt::format("node {}: misses the limit {}; check the node, its port and its cable", name, culprit.words);
  return culprit;
}

/// The short pairs that none of `at_fault` explains.
std::vector<SeenPair> PairMatrix::left(const std::set<std::size_t>& at_fault) const {
  std::vector<SeenPair> left;
  for (const auto& pair : pairs_) {
    if (pair.bad && !at_fault.contains(pair.a) && !at_fault.contains(pair.b)) left.push_back(pair);
  }
  return left;
}

Localised PairMatrix::found(const std::vector<std::string>& nodes, const std::set<std::size_t>& known_bad) const {
  Localised found;
  for (const auto& accused : accused_) {
    const auto& name = nodes[accused.end.first];
    if (std::ranges::none_of(found.culprits, [&](const Culprit& one) { return one.nodes.front() == name; }))
      found.culprits.push_back(culprit_of(accused.end.first, name));
  }
  const auto all_shares = shares();
  std::set<std::string> open;
  std::map<std::size_t, std::vector<std::string>> explained;  // steps by the node that explains them
  std::size_t unsure = 0;
  const auto is_good = [&](const End& end) { return all_shares.at(end).good > 0; };
  for (const auto& pair : left(at_fault_)) {
    const bool bad_a = known_bad.contains(pair.a), bad_b = known_bad.contains(pair.b);
    if ((!bad_a && !is_good(first(pair))) || (!bad_b && !is_good(second(pair)))) {
      open.insert({nodes[pair.a], nodes[pair.b]});
    } else if (bad_a || bad_b) {
      if (bad_a) explained[pair.a].emplace_back(pair.step);
      if (bad_b) explained[pair.b].emplace_back(pair.step);
    } else if (!pair.sure) {
      ++unsure;
    } else {
      name_pair(found, pair, nodes);
    }
  }
  for (const auto& [node, steps] : explained) {
    found.culprits.push_back({.fault = Fault::node,
                              .nodes = {nodes[node]},
                              .leaf = "",
                              .unsteady = true,
                              .tests = steps,
                              .words = fmt::format("node {}: suspected because of another test", nodes[node])});
  }
  found.undecided.assign(open.begin(), open.end());
  if (!found.culprits.empty()) found.state = SearchState::found;
  found.reason = fmt::format(
      "{} of {} pairs miss the limit{}{}{}.", std::ranges::count_if(pairs_, &SeenPair::bad), pairs_.size(),
      std::ranges::all_of(pairs_, [](const auto& pair) { return pair.direction == PairDirection::both; })
          ? ""
          : ", each direction counted",
      open.empty() ? "" : "; too few good pairs to name a node",
      unsure == 0
          ? ""
          : fmt::format("; {} of them by less than the guard band, which is not enough to name a node or a pair",
                        unsure));
  return found;
}

}  // namespace assay::judge
