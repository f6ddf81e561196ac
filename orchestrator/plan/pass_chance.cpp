// pass_chance: the sums over few points that stand for the integrals which pass_chance.h names.
#include "orchestrator/plan/pass_chance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/plan/pass_guards.h"
#include "orchestrator/plan/repeat.h"
#include "probes/core/portable_math.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::plan {
namespace {

constexpr int kPooledParts = 12;                     // of the pooled variance
constexpr int kDraws = 64'000, kMostFleets = 4'000;  // of made-up fleets: 0.1 % of their variance
constexpr double kMostOfMedian = 9;                  // of a variance that is pooled, as the judge takes it
constexpr double kLeastProbability = 1e-300, kNegligible = 1e-6;
constexpr double kDensity = 0.3989422804014327;  // 1 / sqrt(2 pi)
constexpr double kUnsteady = 1e-3;   // of a cell, by the judge's test of its deviation against the pooled one
constexpr double kApart = 0.5;       // of numbers of steps that are summed, in standard deviations
constexpr int kIterations = 3;       // whose changes fall by more than half each
constexpr double kWidth = 6;         // standard deviations; 2e-9 is beyond
constexpr double kLeastMean = 0.01;  // of a fleet, as a share of the limit
double log_of(double probability) { return portable_log(std::max(probability, kLeastProbability)); }

/// About equal parts of `values`, which are a value and its weight, in few: of each its mean and its share.
std::vector<std::pair<double, double>> parts_of(std::vector<std::pair<double, double>> values) {
  constexpr double kThresholds = 200;
  std::ranges::sort(values);
  double all = 0, sum = 0, part = 0;
  for (const auto& [value, weight] : values) all += weight;
  std::vector<std::pair<double, double>> means;
  for (const auto& one : values) {
    sum += one.first * one.second;
    part += one.second;
    if (part * kThresholds < all && &one != &values.back()) continue;
    means.emplace_back(sum / part, part / all);
    sum = part = 0;
  }
  return means;
}

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
    take_own();
  } else {
    take_pooled();
    find_unsteady();
  }
}

/// Quantiles of the variance as a whole, times the share that the judge's limit of each step's variance leaves.
void ChanceToPass::take_pooled() {
  std::mt19937_64 random(2);  // whose numbers the standard defines
  const auto steps = static_cast<int>(repeats_.steps);
  const double of_step = repeats_.cells_per_step * (repeats_.attempts - 1);
  std::vector<std::pair<double, double>> fleets;  // sums of variances, and of them with the limit
  std::vector<double> variances(repeats_.steps);
  const int count = std::clamp(kDraws / steps, kPooledParts, kMostFleets) / kPooledParts * kPooledParts;
  for (int fleet = 0; fleet < count; ++fleet) {
    double all = 0, left = 0;
    for (double& one : variances) all += one = made_up_chi_squared(of_step, random);
    const double most = kMostOfMedian * median(variances);
    for (const double one : variances) left += std::min(one, most);
    fleets.emplace_back(all, left / all);
  }
  std::ranges::sort(fleets);
  const double degrees = of_step * steps;
  for (int part = 0; part < kPooledParts; ++part) {
    double left = 0;
    for (int i = 0; i < count / kPooledParts; ++i)
      left += fleets[static_cast<std::size_t>(part * (count / kPooledParts) + i)].second;
    pooled_.push_back(chi_squared((part + 0.5) / kPooledParts, degrees) / degrees * left * kPooledParts / count);
  }
}

/// A cell has its own deviation where its variance is over the pooled one, of which it is a part, by more than
/// F(0.999): the probability, and the guards in the middles of thirds of the tail of its variance.
void ChanceToPass::find_unsteady() {
  const double own = repeats_.attempts - 1.0, cells = repeats_.cells();
  const auto beyond = [&](double probability, double pooled) {  // by halving
    double low = 1, high = 1e6;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (f_upper_tail(middle, own, pooled) > probability ? low : high) = middle;
    }
    return low;
  };
  const double ratio = beyond(kUnsteady, own * static_cast<double>(repeats_.steps));
  // Of the pooled one it is the whole, or as much as is pooled of it.
  const double most = kMostOfMedian * chi_squared(0.5, own) / own * repeats_.cells_per_step;
  const double limited = ratio * (cells - 1 + most) / cells, others = own * (cells - 1);
  const double least = ratio < cells ? std::min(limited, ratio * (cells - 1) / (cells - ratio)) : limited;
  unsteady_share_ = f_upper_tail(least, own, others);
  OwnGuard guard(risk_, stated_, repeats_.bound);
  for (const double part : {1.0 / 6, 0.5, 5.0 / 6}) {
    const double variance = beyond(unsteady_share_ * part, others);
    unsteady_squares_ += own * std::max(variance - most, 0.0) / 3;
    unsteady_.push_back(guard(fleet_.between_runs * std::sqrt(variance), repeats_.attempts));
  }
}

/// Middles of equal parts of the variances of both stages, and points of d.
void ChanceToPass::take_own() {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double between = fleet_.between_runs;
  const int firsts = n == 1 ? 1 : m == 0 ? 500 : 100, mores = m < 2 ? 1 : 12;
  constexpr double kEnd = 4;  // of d, in its standard deviations
  const double of_d = m == 0 ? 0 : between * std::sqrt(static_cast<double>(m) / n / (n + m));
  std::vector<double> more;
  for (int i = 0; i < mores; ++i) more.push_back(chi_squared((i + 0.5) / mores, m - 1.0));
  OwnGuard guard(risk_, stated_, repeats_.bound);
  std::vector<std::pair<double, double>> first, all, both;
  for (int i = 0; i < firsts; ++i) {
    const double squares = chi_squared((i + 0.5) / firsts, n - 1.0);
    const double least = guard(n == 1 ? 0 : between * std::sqrt(squares / (n - 1)), n);
    if (m == 0) {
      first.emplace_back(least, 1);
      continue;
    }
    for (double z = -kEnd; z <= kEnd; z += kApart) {
      const double weight = portable_exp(-z * z / 2), kept = least + of_d * z;
      first.emplace_back(kept, weight);
      for (const double added : more) {
        const double of_all = guard(between * std::sqrt((squares + added + z * z) / (n + m - 1)), n + m);
        all.emplace_back(of_all, weight);
        both.emplace_back(std::max(of_all, kept), weight);
      }
    }
  }
  first_ = parts_of(std::move(first)), all_ = parts_of(std::move(all)), both_ = parts_of(std::move(both));
}

/// The share of cells that pass with these thresholds of the mean of all attempts.
double ChanceToPass::of_own(const Cells& cells, const Thresholds& thresholds) const {
  const double attempts = repeats_.attempts + repeats_.more_attempts;
  const double spread = portable_hypot(cells.spread, fleet_.between_runs / std::sqrt(attempts));
  double sum = 0;
  for (const auto& [least, share] : thresholds) sum += share * normal_cdf((cells.mean - least) / spread);
  return sum;
}

double ChanceToPass::guard(double deviation, int attempts, double degrees) const {
  const double of_mean = deviation / std::sqrt(attempts), u = portable_hypot(of_mean, stated_.instrument);
  const double share = of_mean / u;
  return margin_of(pooled_quantile(risk_, degrees / (share * share * share * share)) * u, repeats_.bound);
}

ChanceToPass::CellChance ChanceToPass::cell_chance(const Cells& cells, const Guards& guards) const {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double of_first = portable_hypot(cells.spread, fleet_.between_runs / std::sqrt(n));
  const double least = std::max(guards.first, guards.kept);
  CellChance chance{.kept = normal_cdf((cells.mean - least) / of_first)};
  double of_unsteady = 0;
  for (const double own : unsteady_)
    of_unsteady += normal_cdf((cells.mean - own) / of_first) / static_cast<double>(unsteady_.size());
  chance.kept += unsteady_share_ * (of_unsteady - chance.kept);
  if (m == 0) return chance;
  const double of_all = portable_hypot(cells.spread, fleet_.between_runs / std::sqrt(n + m));
  const double of_d = fleet_.between_runs * std::sqrt(static_cast<double>(m) / n / (n + m));
  chance.all = normal_cdf((cells.mean - guards.all) / of_all);
  // m < g1 and x >= g3 are possible from this d on, in its standard deviations. Simpson's rule.
  constexpr int kIntervals = 20;
  constexpr double kEnd = 5;
  const double from = std::max((guards.all - guards.first) / of_d, -kEnd), step = (kEnd - from) / kIntervals;
  for (int i = 1; i <= kIntervals && step > 0; ++i) {
    const double z = from + i * step;
    const double weight = (i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2) * step / 3 * kDensity * portable_exp(-z * z / 2);
    const double share = normal_cdf((guards.first + of_d * z - cells.mean) / of_all) - (1 - chance.all);
    const double squares = m - 1 + z * z;  // on average
    chance.mended += weight * share;
    chance.first_moment += weight * share * squares;
    chance.second_moment += weight * share * (squares * squares + 2 * (m - 1));
  }
  const double added = m + unsteady_squares_;
  const double failing = unsteady_share_ * (1 - of_unsteady) * chance.all, steady = 1 - unsteady_share_;
  chance.mended = steady * chance.mended + failing;
  chance.first_moment = steady * chance.first_moment + failing * added;
  chance.second_moment = steady * chance.second_moment + failing * (added * added + 2 * m);
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
  double mean = 0, variance = 0;  // of those that met both
  for (const auto& [count, cell] : {std::pair{steps.good, &good}, {steps.bad, &bad}}) {
    const double met = cell->all - cell->mended;
    if (count == 0 || met < kLeastProbability) continue;
    const double of_cell = (cell->all * m - cell->first_moment) / met;
    mean += of_cell * count / cells;
    variance += ((cell->all * m * (m + 2) - cell->second_moment) / met - of_cell * of_cell) * count / (cells * cells);
  }
  const double second = all * (m * m + 2 * m / cells) - at_once * (mean * mean + variance);
  chance.squares = (all * m - at_once * mean) / chance.mended;
  chance.variance = second / chance.mended - chance.squares * chance.squares;
  if (!(chance.squares > 0 && chance.variance > 0)) chance.squares = m, chance.variance = 2 * m / cells;  // cancelled
  return chance;
}

double ChanceToPass::log_own(const Fleet& fleet) const {
  double sum = 0;
  for (const Steps& steps : {fleet.without, fleet.with}) {
    const auto of_step = [&](const Thresholds& thresholds) {
      return portable_exp((steps.good > 0 ? steps.good * log_of(of_own(fleet.good, thresholds)) : 0) +
                          (steps.bad > 0 ? steps.bad * log_of(of_own(fleet.bad, thresholds)) : 0));
    };
    if (steps.count == 0) continue;
    double passes = of_step(first_);
    if (repeats_.more_attempts > 0) passes += of_step(all_) - of_step(both_);
    sum += steps.count * log_of(passes);
  }
  return sum;
}

ChanceToPass::Chances ChanceToPass::chances(double pooled, const Fleet& fleet, double more, double squares) const {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double before = static_cast<double>(repeats_.steps) * (n - 1), degrees = before + more * m;
  const double deviation = fleet.between * std::sqrt((pooled * before + squares) / degrees);
  const Guards guards{.first = guard(fleet.between * std::sqrt(pooled), n, before),
                      .kept = guard(deviation, n, degrees),
                      .all = m == 0 ? 0 : guard(deviation, n + m, degrees)};
  const CellChance good = cell_chance(fleet.good, guards);
  const CellChance bad = fleet.with.count > 0 ? cell_chance(fleet.bad, guards) : CellChance{};
  return {step_chance(fleet.without, good, bad), step_chance(fleet.with, good, bad)};
}

/// The probability that all pass of which `more` steps are measured again.
double ChanceToPass::with_more(double pooled, const Fleet& fleet, double more, double log_scale) const {
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
  double sum = 0;
  const double spread = std::sqrt(1 / (9 * shape));
  for (double z = -kEnd; z <= kEnd; z += kBetweenPoints) {
    const double root = 1 - spread * spread + z * spread;
    if (root <= 0) continue;
    const double squares = mean * root * root * root;
    const auto [good, bad] = chances(pooled, fleet, more, squares);
    const double of_point = kBetweenPoints * 3 * mean * root * root * spread;
    for (double of_bad = least; of_bad <= most; of_bad += apart) {
      const double of_good = more - of_bad;
      const double here = of_good * good.squares + of_bad * bad.squares;
      const double scale = (of_good * good.variance + of_bad * bad.variance) / here, gamma = here / scale;
      const double density = (gamma - 1) * portable_log(squares / scale) - squares / scale - portable_log_gamma(gamma);
      sum += apart * of_point / scale *
             portable_exp(density - log_scale + ways(fleet.without.count, of_good) + ways(fleet.with.count, of_bad) +
                          (fleet.without.count - of_good) * log_of(good.kept) + of_good * log_of(good.mended) +
                          (fleet.with.count - of_bad) * log_of(bad.kept) + of_bad * log_of(bad.mended));
    }
  }
  return sum;
}

double ChanceToPass::log_all_with(double pooled, const Fleet& fleet) const {
  const auto all = [&](double without, double with) {
    return (fleet.without.count > 0 ? fleet.without.count * log_of(without) : 0) +
           (fleet.with.count > 0 ? fleet.with.count * log_of(with) : 0);
  };
  const auto [good, bad] = chances(pooled, fleet, 0, 0);
  const double kept = all(good.kept, bad.kept);
  if (repeats_.more_attempts == 0) return kept;
  // How many steps are measured again of those of which all pass.
  double more = 0, squares = 0, log_sum = kept;
  for (int i = 0; i < kIterations; ++i) {
    const auto [g, b] = chances(pooled, fleet, more, squares);
    const double of_good = fleet.without.count * g.mended / (g.kept + g.mended);
    const double of_bad = fleet.with.count * b.mended / (b.kept + b.mended);
    more = of_good + of_bad;
    squares = of_good * g.squares + of_bad * b.squares;
    log_sum = all(g.kept + g.mended, b.kept + b.mended);
  }
  double sum = portable_exp(kept - log_sum);
  const double spread = std::sqrt(more), apart = std::max(1.0, std::floor(spread * kApart));
  for (double count = std::max(1.0, std::floor(more - kWidth * spread)); count <= static_cast<double>(repeats_.steps);
       count += apart) {
    const double term = apart * with_more(pooled, fleet, count, log_sum);
    sum += term;
    if (count > more && term < kNegligible * sum) break;
  }
  return log_sum + log_of(sum);
}

double ChanceToPass::log_mean(double margin, double short_by, double bad, double root) const {
  const double steps = static_cast<double>(repeats_.steps), cells = repeats_.cells_per_step;
  const double with = std::min(bad, steps), each = with > 0 ? bad / with : 0;
  const double sign = repeats_.bound == Bound::upper ? -1 : 1;
  const double mean = 1 + sign * (margin * (repeats_.cells() - bad) - short_by * bad) / repeats_.cells();
  const Fleet fleet{.good = {.mean = margin, .spread = portable_hypot(fleet_.between_nodes, stated_.instrument)},
                    .bad = {.mean = -short_by, .spread = stated_.instrument},
                    .without = {.count = steps - with, .good = cells},
                    .with = {.count = with, .good = cells - each, .bad = each},
                    .between = fleet_.between_runs / std::max(mean, kLeastMean)};
  if (pooled_.empty()) return log_own(fleet) / root;
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
