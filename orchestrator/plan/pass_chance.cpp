// pass_chance: the sums over few points that stand for the integrals which pass_chance.h names.
#include "orchestrator/plan/pass_chance.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "orchestrator/plan/pass_guards.h"
#include "orchestrator/plan/repeat.h"
#include "probes/core/portable_math.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::plan {
namespace {

constexpr double kLeastProbability = 1e-300, kNegligible = 1e-6;
constexpr double kApart = 0.5;       // of numbers of steps that are summed, in standard deviations
constexpr int kIterations = 3;       // whose changes fall by more than half each
constexpr double kWidth = 6;         // standard deviations; 2e-9 is beyond
constexpr double kLeastMean = 0.01;  // of a fleet, as a share of the limit

double log_of(double probability) { return portable_log(std::max(probability, kLeastProbability)); }

}  // namespace

std::expected<HealthyFleet, InputError> healthy_fleet(std::string_view text, const std::string& where) {
  double numbers[3] = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  const InputError odd{where, fmt::format("'{}' is not three numbers from 0 to 100", text),
                       "write the margin above the limits and the deviations between nodes and between runs in per "
                       "cent, such as 4,0.5,0.5"};
  for (int i = 0; i < 3; ++i) {
    const auto read = std::from_chars(at, end, numbers[i]);
    const bool last = i == 2;
    if (read.ec != std::errc{} || !(numbers[i] >= 0 && numbers[i] <= 100)) return std::unexpected(odd);
    if (last ? read.ptr != end : read.ptr == end || *read.ptr != ',') return std::unexpected(odd);
    at = last ? end : read.ptr + 1;
  }
  return HealthyFleet{.margin = numbers[0] / 100, .between_nodes = numbers[1] / 100, .between_runs = numbers[2] / 100};
}

ChanceToPass::ChanceToPass(const HealthyFleet& fleet, const Repeats& repeats, double risk,
                           const StatedUncertainty& stated)
    : fleet_(fleet), repeats_(repeats), stated_(stated) {
  constexpr double kSimple = 0.5;  // no guard band, whatever the stages
  risk_ = risk < kSimple && repeats.more_attempts > 0 ? risk / 2 : risk;
  fleet_.between_runs = std::max(fleet.between_runs, kLeastDeviation);
  if (repeats.steps < kFewestPooledSteps || repeats.attempts == 1) {
    take_own({.first = 1, .all = 1});
  } else {
    take_pooled();
    const int n = repeats.attempts, m = repeats.more_attempts;
    const double steps = static_cast<double>(repeats.steps), before = (n - 1) * steps;
    constexpr double kMeasuredAgain = 0.5;  // of the steps; their number has little influence on that test
    constexpr double kWider = 1.25;
    const double first = unsteady_share(n - 1, before, 1);
    unsteady_ = {.first = first,
                 .by_ratio = portable_log(unsteady_share(n - 1, before, kWider) / first) / (kWider - 1)};
    if (m > 0) {
      unsteady_.all = unsteady_share(n + m - 1, before + kMeasuredAgain * m * steps, 1);
      unsteady_.by_degrees =
          portable_log(unsteady_share(n - 1, before + m * steps, 1) / first) * (before + m * steps) / (m * steps);
    }
    take_own(unsteady_);
  }
}

double ChanceToPass::guard(double deviation, int attempts, double degrees) const {
  const double of_mean = deviation / std::sqrt(attempts), u = portable_hypot(of_mean, stated_.instrument);
  const double share = of_mean / u;
  return margin_of(pooled_quantile(risk_, degrees / (share * share * share * share)) * u, repeats_.bound);
}

void ChanceToPass::Sums::add(double points, double log_pass) {
  if (log_pass > scale) pass *= portable_exp(scale - log_pass), scale = log_pass;
  pass += points * portable_exp(log_pass - scale);
}

/// A relative square is the larger, the smaller its mean: cells that have their own deviation are more where the mean
/// is low, and have a lower one.
ChanceToPass::Cells ChanceToPass::cells_of(double mean, double spread, double usual) const {
  constexpr double kMostShare = 20;
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  Cells cells{.mean = mean,
              .usual = usual,
              .of_first = portable_hypot(spread, fleet_.between_runs / std::sqrt(n)),
              .of_all = portable_hypot(spread, fleet_.between_runs / std::sqrt(n + m)),
              .own = own_};
  const double sign = repeats_.bound == Bound::upper ? -1 : 1, figure = std::max(1 + sign * usual, kLeastMean);
  const double slope = 2 * unsteady_.by_ratio / figure * sign;  // of the share's logarithm with the mean
  const double of_first = slope * cells.of_first * cells.of_first, of_all = slope * cells.of_all * cells.of_all;
  const double more = std::min(portable_exp(slope * (mean - usual) + slope * of_first / 2), kMostShare);
  for (OwnPoint& point : cells.own) {
    if (point.own_first) point.share *= more;
    point.first = normal_cdf((mean + (point.own_first ? of_first : 0) - point.first - point.d) / cells.of_all);
    point.all = normal_cdf((mean + (point.own_first ? of_all : 0) - point.all) / cells.of_all);
  }
  return cells;
}

ChanceToPass::CellChance ChanceToPass::cell_chance(const Cells& cells, const Guards& guards) const {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double of_all = cells.of_all;
  const auto from_all = [&](double least) { return normal_cdf((cells.mean - least) / of_all); };
  CellChance chance;
  // A relative square is the less, the larger its cell's mean, here between these two.
  const double sign = repeats_.bound == Bound::upper ? -1 : 1;
  const auto relative = [&](double low, double high) {
    const double a = (low - cells.mean) / of_all, b = (high - cells.mean) / of_all;
    const double share = std::max(normal_cdf(b) - normal_cdf(a), kLeastProbability);
    const double mean = cells.mean + of_all * kDensity * (portable_exp(-a * a / 2) - portable_exp(-b * b / 2)) / share;
    return 1 - 2 * sign * (std::max(low, std::min(mean, high)) - cells.usual) /
                   std::max(1 + sign * cells.usual, kLeastMean);
  };
  const auto add_mended = [&](double share, double squares, double variance) {
    chance.mended += share;
    chance.first_moment += share * squares;
    chance.second_moment += share * (squares * squares + variance);
  };
  const bool second = guards.all > -kNever;
  const double steady_all = second ? from_all(guards.all) : 1;
  double own_first = 0, own_kept = 0;
  chance.all = steady_all;
  for (const OwnPoint& point : cells.own) {
    const double passes = point.own_all && second ? point.all : steady_all;
    if (point.own_all) chance.all += point.share * (passes - steady_all);
    if (point.own_first) {
      own_first += point.share, own_kept += point.share * point.first;
      add_mended(point.share * std::max(passes - point.first, 0.0), point.squares, 0);
    } else {  // less its part of the steady ones below
      const double first = from_all(guards.first + point.d);
      add_mended(point.share * (std::max(passes - first, 0.0) - std::max(steady_all - first, 0.0)), point.squares, 0);
    }
  }
  if (pooled_.empty()) return chance.kept = own_kept, chance;
  const double of_steady = normal_cdf((cells.mean - std::max(guards.first, guards.kept)) / cells.of_first);
  const double own = std::min(own_first * guards.own_share / unsteady_.first, 1.0);
  chance.kept = own * own_kept / own_first + (1 - own) * of_steady;
  if (m == 0) return chance;
  const double of_d = fleet_.between_runs * std::sqrt(static_cast<double>(m) / n / (n + m));
  // m < g1 and x >= g3 are possible from this d on, in its standard deviations. Simpson's rule.
  constexpr int kIntervals = 20;
  constexpr double kEnd = 5;
  const double from = std::max((guards.all - guards.first) / of_d, -kEnd), step = (kEnd - from) / kIntervals;
  for (int i = 1; i <= kIntervals && step > 0; ++i) {
    const double z = from + i * step;
    const double weight = (i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2) * step / 3 * kDensity * portable_exp(-z * z / 2);
    const double least = guards.first + of_d * z;
    const double squares = (m - 1 + z * z) * relative(guards.all, least) - 2 * (n - 1) * sign * of_d * z;
    add_mended((1 - own_first) * weight * (steady_all - from_all(least)), squares, 2 * (m - 1));
  }
  chance.squares = m * relative(guards.all, cells.mean + kWidth * of_all + std::max(guards.all, 0.0));
  return chance;
}

/// A step is measured again if one of its cells fails, and then all of them need the second guard: those that do, but
/// for those that also met the first. The judge takes the mean variance of the cells of a step.
ChanceToPass::StepChance ChanceToPass::step_chance(const Steps& steps, const CellChance& good,
                                                   const CellChance& bad) const {
  const double cells = steps.good + steps.bad, m = repeats_.more_attempts;
  const auto both = [&](double of_good, double of_bad) {
    return portable_exp((steps.good > 0 ? steps.good * log_of(of_good) : 0) +
                        (steps.bad > 0 ? steps.bad * log_of(of_bad) : 0));
  };
  StepChance chance{.kept = both(good.kept, bad.kept)};
  const double all = both(good.all, bad.all), at_once = both(good.all - good.mended, bad.all - bad.mended);
  chance.mended = std::max(all - at_once, kLeastProbability);
  double of_all = 0, mean = 0, variance = 0;  // the last two of those that met both
  for (const auto& [count, cell] : {std::pair{steps.good, &good}, {steps.bad, &bad}}) {
    const double met = cell->all - cell->mended;
    if (count == 0 || met < kLeastProbability) continue;
    const double of_cell = (cell->all * cell->squares - cell->first_moment) / met;
    of_all += cell->squares * count / cells;
    mean += of_cell * count / cells;
    variance += ((cell->all * cell->squares * (cell->squares + 2) - cell->second_moment) / met - of_cell * of_cell) *
                count / (cells * cells);
  }
  const double second = all * (of_all * of_all + 2 * of_all / cells) - at_once * (mean * mean + variance);
  chance.squares = (all * of_all - at_once * mean) / chance.mended;
  chance.variance = second / chance.mended - chance.squares * chance.squares;
  if (!(chance.squares > 0 && chance.variance > 0)) chance.squares = m, chance.variance = 2 * m / cells;  // cancelled
  return chance;
}

ChanceToPass::Chances ChanceToPass::chances(double pooled, const Fleet& fleet, double more, double squares) const {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double before = static_cast<double>(repeats_.steps) * (n - 1), degrees = before + more * m;
  const double deviation = fleet.between * std::sqrt((pooled * before + squares) / degrees);
  const double ratio = deviation * deviation / (fleet.between * fleet.between * pooled);
  // Kept ones are tested again, against another deviation that is known better.
  const double own_share =
      unsteady_.first *
      portable_exp(std::max(0.0, unsteady_.by_ratio * (ratio - 1) + unsteady_.by_degrees * (1 - before / degrees)));
  const Guards guards{.first = guard(fleet.between * std::sqrt(pooled), n, before),
                      .kept = guard(deviation, n, degrees),
                      .all = m == 0 ? 0 : guard(deviation, n + m, degrees),
                      .own_share = own_share};
  return chances(fleet, guards);
}

ChanceToPass::Chances ChanceToPass::chances(const Fleet& fleet, const Guards& guards) const {
  const CellChance good = cell_chance(fleet.good, guards);
  const CellChance bad = fleet.with.count > 0 ? cell_chance(fleet.bad, guards) : CellChance{};
  return {step_chance(fleet.without, good, bad), step_chance(fleet.with, good, bad)};
}

ChanceToPass::Chances ChanceToPass::first_stage(double pooled, const Fleet& fleet) const {
  const double before = static_cast<double>(repeats_.steps) * (repeats_.attempts - 1);
  const double first = guard(fleet.between * std::sqrt(pooled), repeats_.attempts, before);
  auto [good, bad] = chances(fleet, {.first = first, .kept = first, .all = -kNever, .own_share = unsteady_.first});
  for (StepChance* one : {&good, &bad}) {  // points of an integral may add up to a little more or less than all
    const double all = one->kept + one->mended;
    one->kept /= all, one->mended /= all;
  }
  return {good, bad};
}

ChanceToPass::Sums ChanceToPass::with_more(double pooled, const Fleet& fleet, double more, const Chances& first) const {
  const auto mended = [&](const Steps& steps, const StepChance& of) {
    return steps.count * of.mended / (of.kept + of.mended);
  };
  const auto ways = [](double many, double few) {  // logarithm
    return portable_log_gamma(many + 1) - portable_log_gamma(few + 1) - portable_log_gamma(many - few + 1);
  };
  constexpr double kEnd = 3.2, kBetweenPoints = 0.8;
  // Points of Q: those of a gamma density at its own mean.
  double mean = more * repeats_.more_attempts, shape = 0, with = 0;
  for (int i = 0; i < kIterations; ++i) {
    const auto [good, bad] = chances(pooled, fleet, more, mean);
    const double of_good = mended(fleet.without, good), of_bad = mended(fleet.with, bad);
    const double scale = more / (of_good + of_bad);
    with = scale * of_bad;
    mean = scale * (of_good * good.squares + of_bad * bad.squares);
    shape = mean * mean / (scale * (of_good * good.variance + of_bad * bad.variance));
  }
  const double of_with = std::sqrt(with * (1 - with / more)), apart = std::max(1.0, std::floor(of_with * kApart));
  const double least = std::max({0.0, more - fleet.without.count, std::floor(with - kWidth * (of_with + 1))});
  const double most = std::min({more, fleet.with.count, std::ceil(with + kWidth * (of_with + 1))});
  const auto log_density = [&](double squares, double of_bad, const Chances& of) {
    const auto& [good, bad] = of;
    const double of_good = more - of_bad, here = of_good * good.squares + of_bad * bad.squares;
    const double scale = (of_good * good.variance + of_bad * bad.variance) / here, gamma = here / scale;
    return (gamma - 1) * portable_log(squares / scale) - squares / scale - portable_log_gamma(gamma) -
           portable_log(scale) + (fleet.without.count - of_good) * log_of(good.kept) + of_good * log_of(good.mended) +
           (fleet.with.count - of_bad) * log_of(bad.kept) + of_bad * log_of(bad.mended);
  };
  Sums sums;
  const double spread = std::sqrt(1 / (9 * shape));
  for (double z = -kEnd; z <= kEnd; z += kBetweenPoints) {
    const double root = 1 - spread * spread + z * spread;
    if (root <= 0) continue;
    const double squares = mean * root * root * root;
    const Chances passing = chances(pooled, fleet, more, squares);
    const double of_point = kBetweenPoints * 3 * mean * root * root * spread;
    for (double of_bad = least; of_bad <= most; of_bad += apart) {
      const double of_ways = ways(fleet.without.count, more - of_bad) + ways(fleet.with.count, of_bad);
      const double log_whole = log_density(squares, of_bad, first) + of_ways;
      sums.whole += apart * of_point * portable_exp(log_whole);
      sums.add(apart * of_point, std::min(log_density(squares, of_bad, passing) + of_ways, log_whole));
    }
  }
  return sums;
}

double ChanceToPass::log_all_with(double pooled, const Fleet& fleet) const {
  const auto all = [&](double without, double with) {
    return (fleet.without.count > 0 ? fleet.without.count * log_of(without) : 0) +
           (fleet.with.count > 0 ? fleet.with.count * log_of(with) : 0);
  };
  const auto [good, bad] = chances(pooled, fleet, 0, 0);
  const double kept = all(good.kept, bad.kept);
  if (repeats_.more_attempts == 0) return kept;
  if (pooled_.empty()) return all(good.kept + good.mended, bad.kept + bad.mended);
  // How many steps are measured again of those of which all pass.
  double more = 0, squares = 0;
  for (int i = 0; i < kIterations; ++i) {
    const auto [g, b] = chances(pooled, fleet, more, squares);
    const double of_good = fleet.without.count * g.mended / (g.kept + g.mended);
    const double of_bad = fleet.with.count * b.mended / (b.kept + b.mended);
    more = of_good + of_bad;
    squares = of_good * g.squares + of_bad * b.squares;
  }
  const Chances first = first_stage(pooled, fleet);
  Sums sums;
  const double none_again = all(first.first.kept, first.second.kept);
  sums.whole = portable_exp(none_again);
  sums.add(1, std::min(kept, none_again));
  const double steps = static_cast<double>(repeats_.steps);
  const double spread = std::sqrt(more * (1 - more / steps)), apart = std::max(1.0, std::floor(spread * kApart));
  for (double count = std::max(1.0, std::floor(more - kWidth * (spread + 1))); count <= steps; count += apart) {
    const Sums term = with_more(pooled, fleet, count, first);
    sums.add(apart * term.pass, term.scale), sums.whole += apart * term.whole;
    if (count > more && apart * term.pass * portable_exp(term.scale - sums.scale) <= kNegligible * sums.pass) break;
  }
  return sums.scale + log_of(sums.pass / std::max(sums.whole, 1.0));
}

double ChanceToPass::log_mean(double margin, double short_by, double bad, double root) const {
  const double steps = static_cast<double>(repeats_.steps), cells = repeats_.cells_per_step;
  const double with = std::min(bad, steps), each = with > 0 ? bad / with : 0;
  const double sign = repeats_.bound == Bound::upper ? -1 : 1;
  const double usual = (margin * (repeats_.cells() - bad) - short_by * bad) / repeats_.cells();
  const double between_nodes = portable_hypot(fleet_.between_nodes, stated_.instrument);
  const Fleet fleet{.good = cells_of(margin, between_nodes, usual),
                    .bad = with > 0 ? cells_of(-short_by, stated_.instrument, usual) : Cells{},
                    .without = {.count = steps - with, .good = cells},
                    .with = {.count = with, .good = cells - each, .bad = each},
                    .between = fleet_.between_runs / std::max(1 + sign * usual, kLeastMean)};
  if (pooled_.empty()) return log_all_with(1, fleet) / root;
  std::vector<double> logs;
  for (const double pooled : pooled_) logs.push_back(log_all_with(pooled, fleet) / root);
  const double largest = *std::ranges::max_element(logs);
  double sum = 0;
  for (const double one : logs) sum += portable_exp(one - largest) / kPooledParts;
  return largest + portable_log(sum);
}

double ChanceToPass::log_all(double margin, double short_by, double bad) const {
  return log_mean(margin, short_by, bad, 1);
}

double ChanceToPass::operator()(double margin) const { return portable_exp(log_mean(margin, 0, 0, repeats_.cells())); }

}  // namespace assay::plan
