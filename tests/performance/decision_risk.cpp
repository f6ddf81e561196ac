// decision_risk: how often the decision rule passes a unit that lies exactly at its limit, and one that lies above it,
// by making up samples and deciding with the functions that the judge uses. docs/PERFORMANCE.md has what came out.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/decide/undecided_cell.h"
#include "probes/core/sampling.h"

namespace assay {
namespace {

constexpr double kLimit = 100;
constexpr int kAttempts = 3, kMore = 4;

enum class Shape { normal, lognormal_up, lognormal_down, bimodal_half, bimodal_part, heavy, cauchy };
/// Of the long-run values of runs, mean 0, deviation 1. low_state: three of ten runs in a state below the others.
/// low_tail: exponential to the low side.
enum class Runs { normal, low_state, low_tail };
constexpr double kLowShare = 0.3;

/// One kind of unit: where its long-run median lies, and how its samples and its runs scatter, as shares of the limit.
struct Unit {
  double median = 1;
  double within = 0.01;
  double between = 0;
  Runs runs = Runs::normal;
  Shape shape = Shape::normal;
  double follows = 0;  ///< correlation of neighbours, normal shape only
  double excess = 0;   ///< at the start of a run, that decays
  double decay = 1;    ///< samples until a third of it is left
  double instrument = 0;
  double spread = 0;  ///< of `between` from unit to unit
};

class Source {
 public:
  explicit Source(std::uint64_t seed) : engine_(seed) {}

  void begin_unit(const Unit& unit) {
    unit_ = unit;
    between_ = unit.between * std::max(0.0, 1 + unit.spread * normal_(engine_));
  }
  void begin_run() {
    run_ = between_ * of_run();
    last_ = normal_(engine_);
    taken_ = 0;
  }
  double next() {
    const double drift = unit_.excess * std::exp(-taken_++ / unit_.decay);
    return kLimit * (unit_.median + run_ + drift + unit_.within * noise());
  }

 private:
  double of_run() {
    if (unit_.runs == Runs::low_state) {
      const double apart = 1 / std::sqrt(kLowShare * (1 - kLowShare));
      return even_(engine_) < kLowShare ? -(1 - kLowShare) * apart : kLowShare * apart;
    }
    if (unit_.runs == Runs::low_tail) return 1 + std::log(1 - even_(engine_));
    return normal_(engine_);
  }
  /// Median 0, deviation about 1.
  double noise() {
    switch (unit_.shape) {
      case Shape::normal:
        if (unit_.follows == 0) return normal_(engine_);
        last_ = unit_.follows * last_ + std::sqrt(1 - unit_.follows * unit_.follows) * normal_(engine_);
        return last_;
      case Shape::lognormal_up:
        return std::exp(normal_(engine_)) - 1;
      case Shape::lognormal_down:
        return 1 - std::exp(normal_(engine_));
      case Shape::bimodal_half:
        return (even_(engine_) < 0.5 ? -1 : 1) + 0.1 * normal_(engine_);
      case Shape::bimodal_part:  // seven of ten in the upper state, whose lower part has the median
        return (even_(engine_) < 0.3 ? -2 : 0.0566) + 0.1 * normal_(engine_);
      case Shape::heavy:
        return heavy_(engine_);
      case Shape::cauchy:
        return cauchy_(engine_);
    }
    return 0;
  }

  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> even_;
  std::student_t_distribution<double> heavy_{2};
  std::cauchy_distribution<double> cauchy_;
  Unit unit_;
  double between_ = 0, run_ = 0, last_ = 0, taken_ = 0;
};

/// How the runs are measured and judged.
struct Method {
  int samples = 0;  ///< in each attempt; 0: the probes' stopping rule
  plan::Statistic statistic = plan::Statistic::median;
  int fleet = 1;  ///< units that are judged together
  int attempts = kAttempts, more = kMore;
  judge::StatedScatter stated = {};
  double figures = 1;  ///< that the run judges beside these
};

struct Tally {
  double pass = 0, fail = 0, opened = 0, second = 0, samples = 0, units = 0;

  [[nodiscard]] std::string text() const {
    return fmt::format("{:.1f} / {:.1f} / {:.1f}", 100 * pass / units, 100 * fail / units, 100 * opened / units);
  }
};

class Trial {
 public:
  Trial(const Unit& unit, const Method& method, Source& source) : unit_(unit), method_(method), source_(source) {
    requirement_.id = "r";
    requirement_.statistic = method.statistic;
    requirement_.limit = {.at_least = kLimit, .unit = "B/s"};
  }

  void run(Tally& tally) {
    std::vector<std::vector<Measurement>> units(static_cast<std::size_t>(method_.fleet));
    for (auto& attempts : units) {
      source_.begin_unit(unit_);
      for (int i = 0; i < method_.attempts; ++i) attempts.push_back(attempt());
    }
    auto results = judged(units);
    bool more = false;
    for (std::size_t i = 0; i < units.size() && method_.more > 0; ++i) {
      if (results[i].outcome == judge::Outcome::pass) continue;
      more = true;
      ++tally.second;
      for (int extra = 0; extra < method_.more; ++extra) units[i].push_back(attempt());
    }
    if (more) results = judged(units);
    for (const auto& result : results) {
      ++tally.units;
      tally.pass += result.outcome == judge::Outcome::pass ? 1 : 0;
      tally.fail += result.outcome == judge::Outcome::fail ? 1 : 0;
      tally.opened += result.outcome == judge::Outcome::inconclusive ? 1 : 0;
    }
    tally.samples += static_cast<double>(units.front().front().samples.size());
  }

 private:
  Measurement attempt() {
    source_.begin_run();
    const auto next = [&] { return source_.next(); };
    Sampling taken =
        method_.samples > 0 ? sample_fixed(static_cast<std::size_t>(method_.samples), next) : sample({}, next);
    return {.metric = "m",
            .unit = "B/s",
            .subject = {},
            .at = {},
            .samples = std::move(taken.samples),
            .warmup = {},
            .stopped = taken.stopped};
  }

  judge::Results judged(const std::vector<std::vector<Measurement>>& units) {
    constexpr double kGuardFactor = 1.645;
    std::vector<judge::UndecidedCell> cells;
    judge::BetweenRuns between;
    for (std::size_t i = 0; i < units.size(); ++i) {
      std::vector<const Measurement*> attempts;
      for (const auto& one : units[i]) attempts.push_back(&one);
      judge::UndecidedCell cell{.result = {.step = fmt::format("{}", i), .unit = "B/s"}, .requirement = &requirement_};
      cell.risk = judge::risk_of(kGuardFactor, method_.more > 0);
      cell.instrument = unit_.instrument;
      cell.estimate = judge::estimate_attempts(attempts, method_.statistic, {0.95, cell.risk}).value();
      cell.seen = judge::steadiness_of(attempts, {.begin = static_cast<std::size_t>(method_.attempts),
                                                  .probability = judge::recurrence_probability(method_.figures)});
      between.add(cell.result.step, cell.estimate);
      cells.push_back(std::move(cell));
    }
    judge::Results results;
    judge::GuardFactors factors;
    for (auto& cell : cells) {
      judge::settle(cell, between.of(cell.estimate, method_.stated), factors);
      results.push_back(std::move(cell.result));
    }
    return results;
  }

  Unit unit_;
  Method method_;
  Source& source_;
  plan::Requirement requirement_;
};

std::size_t trials = 4000;

/// Percent passed, failed and opened of `unit`.
Tally measure(const Unit& unit, const Method& method) {
  constexpr std::uint64_t kSeed = 20261122;
  Source source(kSeed);
  Tally tally;
  while (tally.units < static_cast<double>(trials)) Trial(unit, method, source).run(tally);
  return tally;
}

void row(const std::string& title, const std::vector<Tally>& tallies) {
  fmt::print("| {} |", title);
  for (const auto& tally : tallies) fmt::print(" {} |", tally.text());
  fmt::print("\n");
}

void shapes() {
  const std::vector<std::pair<std::string, Shape>> all = {{"normal", Shape::normal},
                                                          {"lognormal up", Shape::lognormal_up},
                                                          {"lognormal down", Shape::lognormal_down},
                                                          {"two states 50/50", Shape::bimodal_half},
                                                          {"two states 30/70", Shape::bimodal_part},
                                                          {"t, 2 degrees", Shape::heavy},
                                                          {"Cauchy", Shape::cauchy}};
  for (const double between : {0.0, 0.01}) {
    fmt::print("\n## Shapes, within 1 %, between runs {} %, n = 6, 10, 20, 40; then 32 units together, n = 10\n",
               between * 100);
    for (const auto& [name, shape] : all) {
      std::vector<Tally> tallies;
      for (const int n : {6, 10, 20, 40})
        tallies.push_back(measure({.between = between, .shape = shape}, {.samples = n}));
      tallies.push_back(measure({.between = between, .shape = shape}, {.samples = 10, .fleet = 32}));
      row(name, tallies);
    }
  }
}

void stopping() {
  fmt::print("\n## Stopping rule, by deviation within: normal, lognormal down, normal with 1 % between runs\n");
  for (const double within : {0.002, 0.005, 0.01, 0.0125, 0.015, 0.02, 0.03, 0.05, 0.1}) {
    const auto normal = measure({.within = within}, {});
    row(fmt::format("{} %, mean n of the first attempt {:.1f}", within * 100, normal.samples / normal.units),
        {normal, measure({.within = within, .shape = Shape::lognormal_down}, {}),
         measure({.within = within, .between = 0.01}, {})});
  }
}

void correlated() {
  fmt::print("\n## Samples that follow each other, stopping rule, instrument 0.1 %: within 0.2, 1, 3 %\n");
  for (const double follows : {0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95}) {
    std::vector<Tally> tallies;
    for (const double within : {0.002, 0.01, 0.03})
      tallies.push_back(measure({.within = within, .follows = follows, .instrument = 0.001}, {}));
    row(fmt::format("{}", follows), tallies);
  }
}

void between_runs() {
  fmt::print(
      "\n## Between runs, within 0.2 %, n = 10: 3 attempts; 3 and 4 more; 32 units together, without and with more; "
      "the same, deviation between runs differing by 30 % from unit to unit\n");
  for (const double between : {0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03}) {
    const Unit unit{.within = 0.002, .between = between};
    Unit uneven = unit;
    uneven.spread = 0.3;
    row(fmt::format("{} %", between * 100),
        {measure(unit, {.samples = 10, .more = 0}), measure(unit, {.samples = 10}),
         measure(unit, {.samples = 10, .fleet = 32, .more = 0}), measure(unit, {.samples = 10, .fleet = 32}),
         measure(uneven, {.samples = 10, .fleet = 32})});
  }
}

void percentiles() {
  using enum plan::Statistic;
  fmt::print("\n## Percentiles, between runs 0.5 %: independent samples, and following with 0.9\n");
  // The quantile of the unit lies at the limit: normal quantiles 1.6449 and 2.3263.
  for (const auto& [name, statistic, n, z] :
       std::vector<std::tuple<std::string, plan::Statistic, int, double>>{{"p05, n = 72", p05, 72, -1.6448536},
                                                                          {"p05, n = 400", p05, 400, -1.6448536},
                                                                          {"p95, n = 72", p95, 72, 1.6448536},
                                                                          {"p01, n = 400", p01, 400, -2.3263479},
                                                                          {"p99, n = 400", p99, 400, 2.3263479}}) {
    Unit unit{.median = 1 - 0.01 * z, .between = 0.005};
    Unit following = unit;
    following.follows = 0.9;
    row(name, {measure(unit, {.samples = n, .statistic = statistic}),
               measure(following, {.samples = n, .statistic = statistic}),
               measure(unit, {.samples = n, .statistic = statistic, .fleet = 32})});
  }
}

void power() {
  fmt::print("\n## Units above the limit, within 0.2 %, n = 10, by deviation between runs: one unit; 32 together\n");
  for (const double above : {0.01, 0.02, 0.03, 0.05}) {
    for (const double between : {0.002, 0.005, 0.01, 0.02}) {
      const Unit unit{.median = 1 + above, .within = 0.002, .between = between};
      row(fmt::format("+{} %, {} %", above * 100, between * 100),
          {measure(unit, {.samples = 10}), measure(unit, {.samples = 10, .fleet = 32})});
    }
  }
}

void healthy() {
  fmt::print("\n## Healthy units 5 % above the limit: opened\n");
  const std::vector<std::pair<std::string, Unit>> units = {
      {"within 0.2 %, between 0.5 %", {.median = 1.05, .within = 0.002, .between = 0.005}},
      {"within 1 %, between 0.5 %", {.median = 1.05, .within = 0.01, .between = 0.005}},
      {"within 1 %, between 1 %", {.median = 1.05, .within = 0.01, .between = 0.01}},
      {"within 2 %, between 0.5 %", {.median = 1.05, .within = 0.02, .between = 0.005}}};
  for (const auto& [name, unit] : units) {
    for (const int n : {10, 20, 0}) {
      const Tally tally = measure(unit, {.samples = n});
      fmt::print("| {}, {} | {:.0f} of {:.0f} |\n", name, n == 0 ? "stopping rule" : fmt::format("n = {}", n),
                 tally.opened, tally.units);
    }
  }
}

void unsteady() {
  fmt::print("\n## A decaying excess: the steady state at the limit, stopping rule\n");
  for (const double figures : {1.0, 1e5}) {
    for (const double excess : {0.02, 0.05, 0.1}) {
      std::vector<Tally> tallies;
      for (const double decay : {10.0, 30.0, 100.0, 1000.0}) {
        tallies.push_back(
            measure({.within = 0.002, .between = 0.002, .excess = excess, .decay = decay}, {.figures = figures}));
      }
      row(fmt::format("{} %, in a run of {:g} figures", excess * 100, figures), tallies);
    }
  }
}

void stated() {
  fmt::print("\n## One attempt with a stated reproducibility of 1 %: between runs 0.5, 1 and 2 %\n");
  std::vector<Tally> tallies;
  for (const double between : {0.005, 0.01, 0.02}) {
    tallies.push_back(measure({.within = 0.002, .between = between},
                              {.samples = 10, .attempts = 1, .more = 0, .stated = {.reproducibility = 0.01}}));
  }
  row("", tallies);
}

/// Runs that are not normal, with and without a least deviation of their size.
void states() {
  fmt::print(
      "\n## Runs in two states or with a tail, the mean at the limit, within 0.2 %, n = 10: 3 attempts without and "
      "with the least deviation; 3 and 4 alike; 32 units together\n");
  for (const auto& [name, runs] : std::vector<std::pair<std::string, Runs>>{
           {"two states", Runs::low_state}, {"low tail", Runs::low_tail}, {"normal", Runs::normal}}) {
    for (const double between : {0.0046, 0.0092, 0.0137, 0.0183}) {
      const Unit unit{.within = 0.002, .between = between, .runs = runs};
      const judge::StatedScatter stated{.least = between};
      row(fmt::format("{}, {:.2f} %", name, between * 100),
          {measure(unit, {.samples = 10, .more = 0}), measure(unit, {.samples = 10, .more = 0, .stated = stated}),
           measure(unit, {.samples = 10}), measure(unit, {.samples = 10, .stated = stated}),
           measure(unit, {.samples = 10, .fleet = 32, .stated = stated})});
    }
  }
  fmt::print("\n## The same with least deviations of half and twice the size, 3 and 4 attempts\n");
  for (const auto runs : {Runs::low_state, Runs::low_tail, Runs::normal}) {
    const Unit unit{.within = 0.002, .between = 0.01, .runs = runs};
    row("", {measure(unit, {.samples = 10, .stated = {.least = 0.005}}),
             measure(unit, {.samples = 10, .stated = {.least = 0.02}})});
  }
  fmt::print("\n## Power: above the limit, 1 % between runs, least deviation 0, 1 and 2 %, 3 and 4 attempts\n");
  for (const double above : {0.01, 0.02, 0.03}) {
    std::vector<Tally> tallies;
    for (const double least : {0.0, 0.01, 0.02}) {
      tallies.push_back(measure({.median = 1 + above, .within = 0.002, .between = 0.01},
                                {.samples = 10, .stated = {.least = least}}));
    }
    row(fmt::format("+{} %", above * 100), tallies);
  }
  fmt::print("\n## One attempt, least deviation 1 %, at the limit, between runs 1, 2, 4 and 8 %\n");
  std::vector<Tally> tallies;
  for (const double between : {0.01, 0.02, 0.04, 0.08}) {
    tallies.push_back(measure({.within = 0.002, .between = between},
                              {.samples = 10, .attempts = 1, .more = 0, .stated = {.least = 0.01}}));
  }
  row("", tallies);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const std::vector<std::pair<std::string, std::function<void()>>> sections = {
      {"shapes", assay::shapes},        {"stopping", assay::stopping},       {"correlated", assay::correlated},
      {"between", assay::between_runs}, {"percentiles", assay::percentiles}, {"power", assay::power},
      {"healthy", assay::healthy},      {"unsteady", assay::unsteady},       {"stated", assay::stated},
      {"states", assay::states}};
  if (argc > 2) assay::trials = std::strtoul(argv[2], nullptr, 10);
  fmt::print("pass / fail / opened in %, {} units each\n", assay::trials);
  for (const auto& [name, section] : sections) {
    if (argc < 2 || name == argv[1]) section();
  }
  return 0;
}
