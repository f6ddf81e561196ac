// localise_monte_carlo: how often the search for the faulty nodes of 232 finds them, accuses others, and how many tests
// it takes, over seeds. The search is the real one; the fabric that answers it is a model (tests/unit/judge/fabric.h).
//
//   localise_monte_carlo [runs of each row, 200 unless given] [rows whose name holds this text]
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/plan/search_budget.h"
#include "tests/unit/judge/fabric.h"

namespace {

using assay::fixture::Fabric;
using assay::simulate::SeededRandom;

constexpr std::size_t kNodes = 232;
constexpr std::size_t kPerLeaf = 16;

/// A kind of fault, and how the fabric around it behaves.
struct Row {
  std::string name;
  std::size_t nodes = 0, pairs = 0, in_leaf = 0, flapping = 0;
  Fabric fabric = {};
  int attempts = 3;  // of all nodes together, before the search
};

/// What the runs of a row gave.
struct Tally {
  std::size_t runs = 0, begun = 0, accepted = 0, whole = 0, falsely = 0, named_falsely = 0, common = 0;
  std::size_t faults = 0, found = 0, tests = 0, most_tests = 0, rounds = 0;
};

Fabric faulty(const Row& row, SeededRandom& random) {
  Fabric fabric = row.fabric;
  fabric.nodes = kNodes;
  fabric.per_leaf = kPerLeaf;
  const std::size_t leaf = random.below(kNodes / kPerLeaf);
  while (fabric.bad.size() < row.in_leaf) fabric.bad.insert(leaf * kPerLeaf + random.below(kPerLeaf));
  while (fabric.bad.size() < row.nodes + row.in_leaf) fabric.bad.insert(random.below(kNodes));
  while (fabric.flapping.size() < row.flapping) fabric.flapping.insert(random.below(kNodes));
  while (fabric.bad_pairs.size() < row.pairs) {
    const auto a = random.below(kNodes);
    const auto b = random.below(kNodes);
    if (a < b && !fabric.bad.contains(a) && !fabric.bad.contains(b)) fabric.bad_pairs.emplace(a, b);
  }
  return fabric;
}

/// One fleet: its attempts, and the search when their mean misses the limit.
void run(const Row& row, std::uint64_t seed, Tally& tally) {
  SeededRandom random(seed * 7919 + 17);
  Fabric fabric = faulty(row, random);
  fabric.seed = seed;
  const auto attempts = fabric.attempts(row.attempts, random);
  double mean = 0;
  for (const auto& one : attempts) mean += std::ranges::min(one.shares) / static_cast<double>(attempts.size());
  ++tally.runs;
  if (mean >= 1) {
    ++tally.accepted;
    return;
  }
  ++tally.begun;
  const auto found = fabric.search(assay::plan::budget_for(kNodes), attempts);
  tally.tests += found.tests.size();
  tally.most_tests = std::max(tally.most_tests, found.tests.size());
  tally.rounds += found.rounds;
  tally.common += found.alike && found.suspects.empty() ? 1 : 0;
  std::size_t right = 0;
  std::size_t wrong = 0;
  for (const auto node : assay::fixture::accused_nodes(found))
    ++(fabric.bad.contains(node) || fabric.flapping.contains(node) ? right : wrong);
  for (const auto& pair : assay::fixture::accused_pairs(found)) ++(fabric.bad_pairs.contains(pair) ? right : wrong);
  const std::size_t faults = fabric.bad.size() + fabric.flapping.size() + fabric.bad_pairs.size();
  tally.faults += faults;
  tally.found += right;
  tally.whole += right == faults ? 1 : 0;
  tally.falsely += wrong > 0 ? 1 : 0;
  tally.named_falsely += wrong;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const std::size_t count : {1U, 2U, 3U, 5U, 8U, 12U, 20U, 40U})
    all.push_back({.name = fmt::format("nodes: {}", count), .nodes = count});
  for (const std::size_t count : {1U, 2U, 3U, 5U, 8U})
    all.push_back({.name = fmt::format("pairs: {}", count), .pairs = count});
  for (const std::size_t count : {2U, 3U, 4U, 8U, 16U})
    all.push_back({.name = fmt::format("in one leaf: {}", count), .in_leaf = count});
  for (const double deviation : {0.005, 0.01}) {
    for (const double left : {0.95, 0.955, 0.96, 0.965})
      all.push_back(
          {.name = fmt::format("near: 3 nodes at {:+.1f} % of L, sd {:g} %", 104 * left - 100, deviation * 100),
           .nodes = 3,
           .fabric = {.left = left, .deviation = deviation}});
  }
  for (const double often : {0.8, 0.5, 0.2}) {
    for (const int attempts : {3, 5})
      all.push_back({.name = fmt::format("flapping: 1 node at p = {:g}, {} attempts", often, attempts),
                     .flapping = 1,
                     .fabric = {.often = often, .deviation = 0.005},
                     .attempts = attempts});
    all.push_back({.name = fmt::format("flapping: 1 pair at p = {:g}, 5 attempts", often),
                   .pairs = 1,
                   .fabric = {.often = often, .pairs_flap = true, .deviation = 0.005},
                   .attempts = 5});
  }
  for (const double margin : {0.0, -0.005, -0.01})
    all.push_back({.name = fmt::format("common: all alike at {:+.1f} % of L, sd 0.5 %", margin * 100),
                   .fabric = {.margin = margin, .deviation = 0.005}});
  for (const double margin : {0.005, 0.01})
    all.push_back({.name = fmt::format("common: all alike at {:+.1f} % of L, sd 1 %", margin * 100),
                   .fabric = {.margin = margin, .deviation = 0.01}});
  for (const double deviation : {0.005, 0.01})
    all.push_back({.name = fmt::format("common: -1 % a halving, all at -0.5 % of L, sd {:g} %", deviation * 100),
                   .fabric = {.margin = -0.005, .deviation = deviation, .per_halving = -0.01}});
  all.push_back({.name = "common: +1 % a halving, all at -0.5 % of L, sd 0.5 %",
                 .fabric = {.margin = -0.005, .deviation = 0.005, .per_halving = 0.01}});
  for (const auto& [per_halving, left] :
       {std::pair(0.01, 0.9), std::pair(0.01, 0.93), std::pair(0.02, 0.9), std::pair(0.03, 0.8), std::pair(-0.01, 0.9)})
    all.push_back({.name = fmt::format("size: {:+.0f} % a halving, 3 nodes at {:g}", per_halving * 100, left),
                   .nodes = 3,
                   .fabric = {.left = left, .deviation = 0.005, .per_halving = per_halving}});
  for (const std::size_t count : {0U, 1U, 3U}) {
    for (const double deviation : {0.005, 0.05, 0.2, 0.5})
      all.push_back({.name = fmt::format("second: {} nodes, a second figure at -30 % of L for all, sd {:g} %", count,
                                         deviation * 100),
                     .nodes = count,
                     .fabric = {.deviation = 0.005, .second = 0.7, .second_deviation = deviation}});
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t runs = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 200;
  const std::string wanted = argc > 2 ? argv[2] : "";
  fmt::print(
      "| fault | search begun % | found % | all found % of searches | false accusation % of searches | common "
      "cause % | tests mean / max | rounds |\n|---|---|---|---|---|---|---|---|\n");
  for (const auto& row : rows()) {
    if (row.name.find(wanted) == std::string::npos) continue;
    Tally tally;
    for (std::uint64_t seed = 0; seed < runs; ++seed) run(row, seed, tally);
    const auto share = [](std::size_t part, std::size_t of) {
      return of == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(of);
    };
    const auto each = [&](std::size_t part) { return share(part, tally.begun) / 100; };
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} ({}) | {:.1f} | {:.1f} / {} | {:.1f} |\n", row.name,
               share(tally.begun, tally.runs), share(tally.found, tally.faults), share(tally.whole, tally.begun),
               share(tally.falsely, tally.begun), tally.named_falsely, share(tally.common, tally.begun),
               each(tally.tests), tally.most_tests, each(tally.rounds));
    (void)std::fflush(stdout);
  }
  return 0;
}
