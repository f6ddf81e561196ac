// pairs: the worst node first, until what is left is no node's.
#include "orchestrator/judge/pairs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "orchestrator/judge/searches.h"

namespace assay::judge {
namespace {

constexpr std::size_t kShortPairsToName = 2;  // with one partner alone it may as well be the partner

/// A planned pair that was measured, by index of its nodes.
struct SeenPair {
  std::size_t a = 0, b = 0;
  bool bad = false;
  bool sure = true;  ///< not within the guard band, where the measurement itself cannot tell
  std::string_view step;

  [[nodiscard]] std::size_t other(std::size_t node) const { return node == a ? b : a; }
  [[nodiscard]] bool has(std::size_t node) const { return node == a || node == b; }
};

/// The pairs of one requirement on one rail: another rail is other ports and cables.
struct Matrix {
  std::vector<std::string> nodes;
  std::vector<SeenPair> pairs;
  std::string rail = {};
  std::set<std::size_t> accused = {};

  [[nodiscard]] bool counts(const SeenPair& pair) const {
    return !accused.contains(pair.a) && !accused.contains(pair.b);
  }

  /// Of each node: in how many pairs it is good.
  [[nodiscard]] std::vector<std::size_t> good() const {
    std::vector<std::size_t> count(nodes.size());
    for (const auto& pair : pairs) {
      if (pair.bad || !counts(pair)) continue;
      ++count[pair.a];
      ++count[pair.b];
    }
    return count;
  }

  /// The node that is short in the largest share of its pairs, when it is most of them and its partners are good with
  /// others.
  [[nodiscard]] std::optional<std::size_t> worst(const std::vector<std::size_t>& good) const {
    std::vector<std::size_t> bad(nodes.size()), shown(nodes.size());
    std::vector<bool> sure(nodes.size());
    for (const auto& pair : pairs) {
      if (!pair.bad || !counts(pair)) continue;
      for (const std::size_t node : {pair.a, pair.b}) {
        ++bad[node];
        if (good[pair.other(node)] == 0) continue;
        ++shown[node];
        if (pair.sure) sure[node] = true;
      }
    }
    std::optional<std::size_t> found;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (shown[node] < kShortPairsToName || !sure[node] || bad[node] <= good[node]) continue;
      // bad / (bad + good) without a division.
      if (!found || bad[node] * (bad[*found] + good[*found]) > bad[*found] * (bad[node] + good[node])) found = node;
    }
    return found;
  }
};

bool is_short(const Result& result) { return misses_limit(result) || result.outcome == Outcome::error; }

Culprit node_at_fault(const Matrix& matrix, std::size_t node, const std::vector<std::size_t>& good) {
  Culprit culprit{
      .fault = Fault::node, .nodes = {matrix.nodes[node]}, .leaf = "", .unsteady = false, .tests = {}, .words = ""};
  std::size_t all = 0;
  std::size_t bad = 0;
  for (const auto& pair : matrix.pairs) {
    if (!pair.has(node) || !matrix.counts(pair)) continue;
    ++all;
    if (!pair.bad) continue;
    ++bad;
    if (good[pair.other(node)] > 0) culprit.tests.emplace_back(pair.step);
  }
  culprit.unsteady = bad < all;
  culprit.words = fmt::format("node {}: misses the limit in {} of {} pairs; check the node, its port and its cable",
                              matrix.nodes[node], bad, all);
  return culprit;
}

Localised localise(const std::string& requirement, Matrix matrix) {
  Localised found{.requirements = {requirement},
                  .step = "",
                  .rail = matrix.rail,
                  .state = SearchState::undecided,
                  .reason = "",
                  .budget = 0,
                  .excluded = {},
                  .undecided = {},
                  .culprits = {},
                  .tests = {}};
  const auto bad_pairs = std::ranges::count_if(matrix.pairs, &SeenPair::bad);
  auto good = matrix.good();
  while (const auto node = matrix.worst(good)) {
    found.culprits.push_back(node_at_fault(matrix, *node, good));
    matrix.accused.insert(*node);
    good = matrix.good();
  }
  std::set<std::string> open;
  std::size_t unsure = 0;
  for (const auto& pair : matrix.pairs) {
    if (!pair.bad || !matrix.counts(pair)) continue;
    const auto& a = matrix.nodes[pair.a];
    const auto& b = matrix.nodes[pair.b];
    if (good[pair.a] == 0 || good[pair.b] == 0) {
      open.insert({a, b});
      continue;
    }
    if (!pair.sure) {
      ++unsure;
      continue;
    }
    found.culprits.push_back(
        {.fault = Fault::pair,
         .nodes = {a, b},
         .leaf = "",
         .unsteady = false,
         .tests = {std::string(pair.step)},
         .words =
             fmt::format("pair {} and {}: each meets the limit with other nodes; check the path between them", a, b)});
  }
  found.undecided.assign(open.begin(), open.end());
  if (!found.culprits.empty()) found.state = SearchState::found;
  found.reason = fmt::format(
      "{}{} of {} pairs miss the limit{}{}.", matrix.rail.empty() ? "" : fmt::format("On rail {}: ", matrix.rail),
      bad_pairs, matrix.pairs.size(),
      open.empty() ? "" : "; for some nodes too few pairs are good to tell which node of a pair is at fault",
      unsure == 0
          ? ""
          : fmt::format("; {} of them by less than the guard band, which is not enough to name a node or a pair",
                        unsure));
  return found;
}

}  // namespace

std::vector<Localised> localise_pairs(const plan::Plan& plan, const std::vector<Result>& results,
                                      const std::set<std::string>& lost) {
  std::set<std::string_view> wanted;
  for (const auto& requirement : plan.profile.requirements) {
    if (requirement.scope == plan::JudgedScope::pair) wanted.insert(requirement.id);
  }
  if (wanted.empty()) return {};
  std::map<std::string_view, std::map<std::string_view, Matrix>> matrices;  // by requirement, then by rail
  std::unordered_map<std::string_view, std::size_t> index;
  std::vector<std::string> names;
  for (const auto& node : plan.site.nodes) {
    index.emplace(node.name, names.size());
    names.push_back(node.name);
  }
  std::unordered_map<std::string_view, const plan::Step*> steps;
  for (const auto& step : plan.steps) {
    if (step.nodes.size() == 2) steps.emplace(step.id, &step);
  }
  for (const auto& result : results) {
    const auto step = steps.find(result.step);
    if (!wanted.contains(result.requirement) || step == steps.end() || (!result.value && !is_short(result))) continue;
    // A pair that broke because one of its nodes went away says nothing of the other.
    if (result.outcome == Outcome::error &&
        std::ranges::any_of(step->second->nodes, [&](const std::string& node) { return lost.contains(node); }))
      continue;
    matrices[result.requirement][step->second->rail].pairs.push_back(
        {.a = index.at(step->second->nodes[0]),
         .b = index.at(step->second->nodes[1]),
         .bad = is_short(result),
         .sure = result.outcome != Outcome::conditional_fail,
         .step = step->first});
  }
  std::vector<Localised> all;
  for (const auto& requirement : plan.profile.requirements) {
    for (auto& [rail, matrix] : matrices[requirement.id]) {
      if (std::ranges::none_of(matrix.pairs, &SeenPair::bad)) continue;
      matrix.nodes = names;
      matrix.rail = rail;
      all.push_back(localise(requirement.id, std::move(matrix)));
    }
  }
  return all;
}

}  // namespace assay::judge
