// pair_matrix: suspects the node with the largest share of short pairs, removes it, and repeats until no node is short
// in most of its pairs; then lets go the suspects that chance explains. The rest are pairs. See pair_matrix.h.
//
// Example: eight nodes, five pairs each. With n5 at a sixteenth of the rate its 5 pairs are short, 15 are good: n5
// explains everything. On a busy machine 4 of the 15 are short as well, and n2 with 3 of its 5 is a second suspect: the
// pairs of n2 do not differ from those without n2 and n5, so it is let go; those of n5 are the five worst of 20, which
// chance gives once in 15,504, and it stays. With 15 of 20 short all over the fleet no node is worse: common cause.
#include "orchestrator/judge/locate/pair_matrix.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "probes/core/portable_math.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::judge {
namespace {

constexpr std::size_t kShortPairsToName = 2;  // with only one partner it may as well be the partner
constexpr double kChance = 0.02;              // that one matrix without a faulty node accuses one
constexpr std::size_t kFewestForMost = 3;     // pairs of which "most" can be said
constexpr std::size_t kAttemptsToName = 2;    // of a pair: once may be anything
constexpr double kChanceOfPair = 0.05;        // that one matrix without a faulty path has such a pair
constexpr std::size_t kPathOf = 10;           // more isolated pairs than one in so many are no matter of paths

/// ln of the number of ways to choose `part` of `all`.
double log_choices(std::size_t all, std::size_t part) {
  const auto log_factorial = [](std::size_t n) { return portable_log_gamma(static_cast<double>(n) + 1); };
  return log_factorial(all) - log_factorial(part) - log_factorial(all - part);
}

/// Pairs of which some are short.
struct Part {
  std::size_t bad = 0, all = 0;
};

/// Probability that of all the short pairs so many fall to `one` by chance: the upper tail of the hypergeometric
/// distribution (Fisher 1935).
double chance_of_count(const Part& one, const Part& other) {
  const std::size_t bad = one.bad + other.bad, all = one.all + other.all;
  double chance = 0;
  for (std::size_t i = one.bad; i <= std::min(one.all, bad); ++i) {
    if (bad - i <= other.all)
      chance += portable_exp(log_choices(one.all, i) + log_choices(other.all, bad - i) - log_choices(all, bad));
  }
  return std::min(chance, 1.0);
}

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
    accused.broken += pair.broken ? 1 : 0;
    if (shares.at(is_first ? second(pair) : first(pair)).good > 0) accused.steps.emplace_back(pair.step);
  }
  return accused;
}

/// Whether the suspects leave nothing open that the pairs have: see accuse().
bool PairMatrix::explains_all() const {
  std::set<std::size_t> nodes, suspects;
  for (const auto& one : accused_) {
    if (one.bad < one.all) return false;
    suspects.insert(one.end.first);
  }
  for (const auto& pair : pairs_) {
    if (pair.bad && counts(pair)) return false;
    nodes.insert({pair.a, pair.b});
  }
  return 2 * suspects.size() <= nodes.size();
}

/// Probability that the pairs of `suspect` with nodes that are not suspected (null: all pairs with a suspect) are as
/// short as they are if they do not differ from the pairs without any suspect.
double PairMatrix::chance_of(const End* suspect) const {
  Part with, without;
  double better = 0;  // pairs without a suspect that are worse than one with it, ties half
  for (auto next = by_share_.begin(); next != by_share_.end();) {
    const double share = (*next)->share;
    std::size_t tied_with = 0, tied_without = 0;
    for (; next != by_share_.end() && (*next)->share == share; ++next) {
      const SeenPair& pair = **next;
      const auto is_suspect = [&](const End& end) {
        return std::ranges::any_of(accused_, [&](const Accused& one) { return one.end == end; });
      };
      const End ends[] = {first(pair), second(pair)};
      const bool counted = counts(pair);
      const bool own = suspect == nullptr ? !counted
                                          : (ends[0] == *suspect && !is_suspect(ends[1])) ||
                                                (ends[1] == *suspect && !is_suspect(ends[0]));
      tied_with += own ? 1 : 0;
      tied_without += counted ? 1 : 0;
      with.bad += own && pair.bad ? 1 : 0;
      without.bad += counted && pair.bad ? 1 : 0;
    }
    better +=
        static_cast<double>(tied_with) * (static_cast<double>(without.all) + static_cast<double>(tied_without) / 2);
    with.all += tied_with;
    without.all += tied_without;
  }
  if (with.all == 0 || without.all == 0) return 1;
  const auto m = static_cast<double>(with.all), n = static_cast<double>(without.all);
  const double z = (m * n / 2 - better) / std::sqrt(m * n * (m + n + 1) / 12);
  return std::min(normal_cdf(-z), chance_of_count(with, without));
}

/// Whether each suspect, and all together, are worse than the other pairs by more than chance; `weakest` becomes the
/// place of the one that chance explains best.
bool PairMatrix::stand_out(std::size_t& weakest) const {
  std::set<End> ends;
  for (const auto& pair : pairs_) ends.insert({first(pair), second(pair)});
  double most = 0;
  for (std::size_t i = 0; i < accused_.size(); ++i) {
    const double chance = chance_of(&accused_[i].end);
    if (chance < most) continue;
    most = chance;
    weakest = i;
  }
  if (most * static_cast<double>(ends.size()) >= kChance) return false;
  const double together = chance_of(nullptr);
  return together == 0 || portable_log(together) + log_choices(ends.size(), accused_.size()) < portable_log(kChance);
}

const std::set<std::size_t>& PairMatrix::accuse() {
  for (const auto& pair : pairs_) by_share_.push_back(&pair);
  std::ranges::stable_sort(by_share_, {}, &SeenPair::share);
  for (auto all = shares(); const auto end = worst(all); all = shares()) accused_.push_back(accused_at(*end, all));
  for (std::size_t weakest = 0; !accused_.empty() && !explains_all() && !stand_out(weakest);)
    accused_.erase(accused_.begin() + static_cast<std::ptrdiff_t>(weakest));
  for (const auto& suspect : std::exchange(accused_, {})) {  // again, without those that were let go
    accused_.push_back(accused_at(suspect.end, shares()));
    at_fault_.insert(suspect.end.first);
  }
  return at_fault_;
}

Culprit PairMatrix::culprit_of(std::size_t node, const std::string& name) const {
  Culprit culprit{.fault = Fault::node, .nodes = {name}};
  std::size_t bad = 0, broken = 0;
  for (const auto& accused : accused_) {
    if (accused.end.first != node) continue;
    bad += accused.bad;
    broken += accused.broken;
    culprit.unsteady = culprit.unsteady || accused.bad < accused.all;
    culprit.words += fmt::format("{}in {} of {} pairs{}", culprit.words.empty() ? "" : " and ", accused.bad,
                                 accused.all, role_of(accused.end.second));
    for (const auto& step : accused.steps) {
      if (std::ranges::find(culprit.tests, step) == culprit.tests.end()) culprit.tests.push_back(step);
    }
  }
  const char* how = broken == 0 ? "misses the limit" : broken == bad ? "breaks" : "breaks or misses the limit";
  const bool of_parts = of_ == Of::parts;
  culprit.words = fmt::format("{} {}: {} {}; check {}", of_parts ? "part" : "node", name, how, culprit.words,
                              of_parts ? "it and its links" : "the node, its port and its cable");
  return culprit;
}

bool PairMatrix::Left::is_common() const { return all >= kFewestForMost && 2 * bad > all; }

bool PairMatrix::Left::is_scattered() const {
  std::set<std::pair<std::size_t, std::size_t>> paths;
  for (const SeenPair* pair : isolated) paths.emplace(pair->a, pair->b);
  return paths.size() > std::max<std::size_t>(1, all / kPathOf);
}

PairMatrix::Left PairMatrix::left(const std::set<std::size_t>& known_bad) const {
  Left left;
  Part attempts;
  const auto all_shares = shares();
  const auto is_good = [&](const End& end) { return all_shares.at(end).good > 0; };
  for (const auto& pair : pairs_) {
    if (at_fault_.contains(pair.a) || at_fault_.contains(pair.b)) continue;
    ++left.all;
    attempts.bad += pair.missed;
    attempts.all += pair.attempts;
    if (!pair.bad) continue;
    ++left.bad;
    const bool bad_a = known_bad.contains(pair.a), bad_b = known_bad.contains(pair.b);
    if ((!bad_a && !is_good(first(pair))) || (!bad_b && !is_good(second(pair)))) {
      left.open.insert({pair.a, pair.b});
    } else if (bad_a || bad_b) {
      for (const std::size_t node : {pair.a, pair.b}) {
        if (!known_bad.contains(node)) continue;
        auto& steps = left.explained[node];  // of several figures
        if (std::ranges::find(steps, pair.step) == steps.end()) steps.emplace_back(pair.step);
      }
    } else if (!pair.sure) {
      ++left.unsure;
    } else {
      left.isolated.push_back(&pair);
    }
  }
  left.unconfirmed = std::erase_if(left.isolated, [&](const SeenPair* pair) {
    if (pair->attempts < kAttemptsToName || pair->missed < pair->attempts) return true;
    const Part own{.bad = pair->missed, .all = pair->attempts};
    const double chance = chance_of_count(own, {.bad = attempts.bad - own.bad, .all = attempts.all - own.all});
    return chance * static_cast<double>(left.all) >= kChanceOfPair;
  });
  return left;
}

/// How many miss the limit, and the part of it that names nothing.
std::string PairMatrix::reason(const Left& left) const {
  const auto broken = static_cast<std::size_t>(std::ranges::count_if(pairs_, &SeenPair::broken));
  const auto bad = static_cast<std::size_t>(std::ranges::count_if(pairs_, &SeenPair::bad));
  std::string text = broken == pairs_.size()
                         ? fmt::format("{} of {} pairs broke, so nothing was measured", broken, broken)
                         : fmt::format("{} of {}{} pairs miss the limit", bad - broken, pairs_.size() - broken,
                                       broken == 0 ? "" : " measured");
  if (std::ranges::any_of(pairs_, [](const auto& pair) { return pair.direction != PairDirection::both; }))
    text += ", each direction counted";
  if (broken > 0 && broken < pairs_.size()) text += fmt::format("; {} more broke", broken);
  if (left.is_common())
    return fmt::format("Common cause: {}, {} of {} with no node worse than the others; no {}node is accused.", text,
                       left.bad, left.all, at_fault_.empty() ? "" : "other ");
  if (!left.open.empty()) text += "; too few good pairs to name a node";
  if (left.unsure > 0)
    text += fmt::format("; {} of them by less than the guard band, which is not enough to name a node or a pair",
                        left.unsure);
  if (left.unconfirmed > 0)
    text += fmt::format("; {} of them not in every attempt, or in too few, so no path is named: measure again",
                        left.unconfirmed);
  if (left.is_scattered())
    text += fmt::format("; {} of them are of nodes all over the fleet, so no path is named", left.isolated.size());
  return text + ".";
}

Localised PairMatrix::found(const std::vector<std::string>& nodes, const std::set<std::size_t>& known_bad) const {
  Localised found;
  for (const auto& accused : accused_) {
    const auto& name = nodes[accused.end.first];
    if (std::ranges::none_of(found.culprits, [&](const Culprit& one) { return one.nodes.front() == name; }))
      found.culprits.push_back(culprit_of(accused.end.first, name));
  }
  const Left others = left(known_bad);
  found.reason = reason(others);
  for (const std::size_t node : others.open) found.undecided.push_back(nodes[node]);
  std::ranges::sort(found.undecided);
  if (!others.is_common()) {
    if (!others.is_scattered()) {
      for (const SeenPair* pair : others.isolated) name_pair(found, *pair, nodes);
    }
    for (const auto& [node, steps] : others.explained) {
      found.culprits.push_back({.fault = Fault::node,
                                .nodes = {nodes[node]},
                                .unsteady = true,
                                .tests = steps,
                                .words = fmt::format("node {}: suspected because of another test", nodes[node])});
    }
  }
  if (!found.culprits.empty())
    found.state = SearchState::found;
  else if (others.is_common())
    found.state = SearchState::common_cause;
  return found;
}

}  // namespace assay::judge
