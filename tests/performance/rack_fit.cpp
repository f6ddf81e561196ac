// rack_fit [RACKS]: what the pairs of a rack name, over seeds: the product's own search (part_pairs.h) beside a fit of
// tray + GPU to the logarithms of the rates. Prints the table of docs/PERFORMANCE.md.
//
// The fit has no term for a plane of switches, because it cannot: every pair crosses all planes alike, so the column of
// a plane is that of the mean, and that of one link is that of its GPU. Rates are log r(i,j) = m + s(i) + t(j), fitted
// by medians in turn (Tukey's median polish); the term of a GPU is the mean of both, that of a tray the median of its
// GPUs'. A term is named when it is low by more than its noise, or by more than the limit as well.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/locate/part_pairs.h"
#include "orchestrator/simulate/random.h"
#include "probes/core/portable_math.h"
#include "probes/core/statistics.h"
#include "tests/unit/fixture.h"

namespace {

using namespace assay;  // NOLINT: one file, no header
using Names = std::set<std::string>;

constexpr std::size_t kTrays = 18, kEach = 4, kGpus = kTrays * kEach, kAttempts = 3;
constexpr double kNoise = 0.005;  // of one attempt of one pair
constexpr double kLimit = 0.95;   // of the median, as the profiles of racks have it
constexpr double kChance = 0.02;  // that a rack without a fault names something, as PairMatrix has it
constexpr double kLinkDown = 17.0 / 18;

/// A kind of rack: what is left of the GPUs chosen, of all, how unlike healthy GPUs are, and what is to be named.
struct Row {
  const char* name;
  std::size_t gpus = 0;  ///< at fault: of one tray, from its first on; 4 are the tray
  double left = 1;
  bool all = false;  ///< all GPUs, as one plane down
  double spread = 0;
};
constexpr Row kRows[] = {
    {.name = "one GPU at 0.8", .gpus = 1, .left = 0.8},
    {.name = "one link down: its GPU at 17/18", .gpus = 1, .left = kLinkDown},
    {.name = "two GPUs of a tray at 0.8", .gpus = 2, .left = 0.8},
    {.name = "a tray at 0.8", .gpus = kEach, .left = 0.8},
    {.name = "a tray at 17/18", .gpus = kEach, .left = kLinkDown},
    {.name = "one plane down: all at 17/18", .left = kLinkDown, .all = true},
    {.name = "one GPU at 0.97, within the limit", .gpus = 1, .left = 0.97},
    {.name = "healthy, GPUs alike"},
    {.name = "healthy, GPUs differ by 1 %", .spread = 0.01},
    {.name = "GPUs differ by 1 %, one at 0.8", .gpus = 1, .left = 0.8, .spread = 0.01},
};

std::string part(std::size_t gpu) { return fmt::format("n{}/g{}", gpu / kEach + 1, gpu % kEach); }

/// Attempts of every ordered pair, and what is at fault.
struct Rack {
  std::vector<std::vector<double>> each = std::vector<std::vector<double>>(kGpus * kGpus);
  Names at_fault;
};

Rack made(const Row& row, std::uint64_t seed) {
  simulate::SeededRandom random(seed, {row.name});
  const std::size_t tray = random.below(kTrays);
  Rack rack;
  std::vector<double> left(kGpus);
  for (std::size_t gpu = 0; gpu < kGpus; ++gpu) {
    const bool bad = row.all || (gpu / kEach == tray && gpu % kEach < row.gpus);
    left[gpu] = (1 + row.spread * random.normal()) * (bad ? row.left : 1);
    if (bad && !row.all && row.gpus < kEach) rack.at_fault.insert(part(gpu));
  }
  if (row.gpus == kEach) rack.at_fault.insert(fmt::format("n{}", tray + 1));
  if (row.all) rack.at_fault.insert("plane");
  for (std::size_t pair = 0; pair < kGpus * kGpus; ++pair) {
    for (std::size_t i = 0; i < kAttempts; ++i)
      rack.each[pair].push_back(std::min(left[pair / kGpus], left[pair % kGpus]) * (1 + kNoise * random.normal()));
  }
  return rack;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// What the product names.
Names by_pairs(const Rack& rack, const plan::Plan& plan) {
  std::vector<double> rates;
  for (std::size_t pair = 0; pair < rack.each.size(); ++pair)
    if (pair / kGpus != pair % kGpus) rates.push_back(mean(rack.each[pair]));
  const double limit = kLimit * median(rates);
  judge::Results results;
  for (std::size_t pair = 0; pair < rack.each.size(); ++pair) {
    const double rate = mean(rack.each[pair]);
    if (pair / kGpus == pair % kGpus) continue;
    results.push_back({.requirement = plan.profile.requirements.front().id,
                       .subject = {"pair", part(pair / kGpus) + ">" + part(pair % kGpus)},
                       .step = plan.steps.front().id,
                       .outcome = rate < limit ? judge::Outcome::fail : judge::Outcome::pass,
                       .unit = "B/s",
                       .value = rate,
                       .each = rack.each[pair],
                       .limit_low = limit});
  }
  Names names;
  for (const auto& one : judge::localise_parts(plan, results)) {
    for (const auto& culprit : one.culprits)
      names.insert(culprit.words.substr(5, culprit.words.find(':') - 5));  // after "part " or "node "
  }
  return names;
}

/// What the fit names: terms below -`least` that are beyond chance.
Names by_fit(const Rack& rack, double least) {
  std::vector<double> send(kGpus), receive(kGpus), left(kGpus), terms(kGpus), misfits;
  const auto rate = [&](std::size_t i, std::size_t j) { return portable_log(mean(rack.each[i * kGpus + j])); };
  const auto fit = [&](std::vector<double>& own, const std::function<double(std::size_t, std::size_t)>& misfit) {
    for (std::size_t i = 0; i < kGpus; ++i) {
      std::vector<double> all;
      for (std::size_t j = 0; j < kGpus; ++j)
        if (i != j) all.push_back(misfit(i, j));
      own[i] = median(all);
    }
  };
  for (int round = 0; round < 5; ++round) {
    fit(send, [&](std::size_t i, std::size_t j) { return rate(i, j) - receive[j]; });
    fit(receive, [&](std::size_t j, std::size_t i) { return rate(i, j) - send[i]; });
  }
  for (std::size_t i = 0; i < kGpus; ++i) left[i] = (send[i] + receive[i]) / 2;
  const double middle = median(left);
  for (std::size_t i = 0; i < kGpus; ++i) {
    terms[i] = left[i] - middle;
    for (std::size_t j = 0; j < kGpus; ++j)
      if (i != j) misfits.push_back(std::abs(rate(i, j) - send[i] - receive[j]));
  }
  constexpr double kSigmaOfMad = 1.4826, kEfficiency = 1.2533;  // of a median of normal numbers
  const double noise = kSigmaOfMad * median(misfits) * kEfficiency / std::sqrt(2.0 * kGpus);
  const double beyond = std::max(least, -normal_quantile(kChance / kGpus) * noise);
  Names names;
  for (std::size_t tray = 0; tray < kTrays; ++tray) {
    const auto own = std::span(terms).subspan(tray * kEach, kEach);
    if (std::ranges::all_of(own, [&](double term) { return term < -beyond; })) {
      names.insert(fmt::format("n{}", tray + 1));
      continue;
    }
    for (std::size_t i = 0; i < kEach; ++i)
      if (own[i] < -beyond) names.insert(part(tray * kEach + i));
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t racks = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100;
  const auto plan = plan::make_plan(
      fixture::profile({R"({"probe": "checked", "scope": "cluster", "metric": "bandwidth", "at": {"size": 1}, )"
                        R"("limit": {"at_least": 100, "unit": "B/s"}})",
                        R"({"probe": "checked", "scope": "cluster", "metric": "mismatches", "at": "every", )"
                        R"("statistic": "max", "repeat": {"n": 1}, "limit": {"at_most": 0, "unit": "1"}})"}),
      fixture::site(static_cast<int>(kTrays)), fixture::programs(), {});
  if (!plan) return fmt::print("{}\n", plan.error().text()), 1;
  const std::pair<const char*, std::function<Names(const Rack&)>> methods[] = {
      {"pairs", [&](const Rack& rack) { return by_pairs(rack, *plan); }},
      {"fit, beyond noise", [](const Rack& rack) { return by_fit(rack, 0); }},
      {"fit, beyond the limit", [](const Rack& rack) { return by_fit(rack, -std::log(kLimit)); }}};
  fmt::print("| rack | {} | {} | {} |\n|---|---|---|---|\n", methods[0].first, methods[1].first, methods[2].first);
  for (const Row& row : kRows) {
    fmt::print("| {} |", row.name);
    std::size_t right[3] = {}, wrong[3] = {};
    for (std::uint64_t seed = 1; seed <= racks; ++seed) {
      const Rack rack = made(row, seed);
      for (std::size_t i = 0; i < 3; ++i) {
        const Names named = methods[i].second(rack);
        right[i] += std::ranges::includes(named, rack.at_fault) ? 1 : 0;
        wrong[i] += std::ranges::includes(rack.at_fault, named) ? 0 : 1;
      }
    }
    for (std::size_t i = 0; i < 3; ++i) fmt::print(" {}, {} |", right[i], wrong[i]);
    fmt::print("\n");
  }
}
