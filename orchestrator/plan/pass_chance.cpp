// pass_chance: an integral over the mean of a node and of its first attempts, or made-up cells where each has its own
// deviation. See pass_chance.h.
#include "orchestrator/plan/pass_chance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <random>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/plan/repeat.h"
#include "probes/core/portable_math.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::plan {
namespace {

constexpr int kIntervals = 32;  // of an integral over a normal density: its error is below 1e-5
constexpr double kWidth = 6;    // standard deviations to either side; 2e-9 is beyond
constexpr int kMadeUpCells = 20'000, kMadeUpFleets = 2'000;
constexpr int kOwnPart = 3;                // steps of an iteration whose changes fall by more than half each
constexpr int kPooledParts = 6;            // of made-up fleets
constexpr double kMostOfMedian = 9;        // of a variance that is pooled, as the judge takes it
constexpr double kLeastDeviation = 1e-12;  // of a divisor
constexpr double kLeastProbability = 1e-300, kNegligible = 1e-6;
constexpr double kDensity = 0.3989422804014327;  // 1 / sqrt(2 pi)
constexpr double kUnsteady = 1e-3;  // of a cell, by the judge's test of its deviation against the pooled one
constexpr double kFewSteps = 32;    // beyond which how many have a second stage is near its expectation

double made_up_normal(std::mt19937_64& random) {
  return normal_quantile((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53);
}

/// The integral of `inner` times the standard normal density from -kWidth to `end` (Simpson's rule).
template <class Inner>
double normal_integral(double end, Inner inner) {
  const double step = (std::min(end, kWidth) + kWidth) / kIntervals;
  if (step <= 0) return 0;
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double z = -kWidth + i * step;
    const double weight = i == 0 || i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * portable_exp(-z * z / 2) * inner(z);
  }
  return sum * step / 3 * kDensity;
}

/// Margin by which a single attempt must exceed the limit, as a share of it.
double guard_of_one(double risk, const StatedUncertainty& stated) {
  const double u = portable_hypot(std::max(stated.reproducibility, stated.between_runs), stated.instrument);
  return (stated.reproducibility > 0 ? -normal_quantile(risk) : student_quantile(1 - risk, 1)) * u;
}

/// Student's t at 1 - `risk` for 8 degrees of freedom or more, by its expansion around the normal quantile (Abramowitz
/// & Stegun 26.7.5); error below 1e-3.
double pooled_quantile(double risk, double degrees) {
  const double z = -normal_quantile(risk), square = z * z;
  const double first = z * (square + 1) / 4;
  const double second = z * (5 * square * square + 16 * square + 3) / 96;
  const double third = z * (3 * square * square * square + 19 * square * square + 17 * square - 15) / 384;
  return z + (first + (second + third / degrees) / degrees) / degrees;
}

/// The same of one cell's own attempts. Quantiles are taken once for degrees of freedom within 1 % of each other.
class OwnGuard {
 public:
  OwnGuard(double risk, const StatedUncertainty& stated) : risk_(risk), stated_(stated) {}

  double operator()(std::span<const double> attempts) {
    const auto count = static_cast<double>(attempts.size());
    if (attempts.size() == 1) return guard_of_one(risk_, stated_);
    const double between = moments(attempts).standard_deviation();
    const double of_mean = std::max(between, stated_.between_runs) / std::sqrt(count);
    const double u = portable_hypot(of_mean, stated_.instrument);
    if (between < stated_.between_runs || u == 0) return -normal_quantile(risk_) * u;
    const double share = of_mean / u;
    return quantile((count - 1) / (share * share * share * share)) * u;  // Welch and Satterthwaite
  }

 private:
  double quantile(double degrees) {
    constexpr double kNormal = 1e4;
    if (degrees > kNormal) return -normal_quantile(risk_);
    const int key = static_cast<int>(std::floor(portable_log(degrees) * 100));
    const auto [entry, fresh] = known_.try_emplace(key, 0);
    if (fresh) entry->second = student_quantile(1 - risk_, portable_exp(key / 100.0));
    return entry->second;
  }

  double risk_;
  StatedUncertainty stated_;
  std::map<int, double> known_;
};

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
    : fleet_(fleet), repeats_(repeats), stated_(stated), risk_(risk / (repeats.more_attempts > 0 ? 2 : 1)) {
  fleet_.between_runs = std::max(fleet.between_runs, kLeastDeviation);
  const bool single = repeats.attempts == 1 && repeats.more_attempts == 0;
  if (repeats.steps >= kFewestPooledSteps && repeats.attempts > 1) {
    if (repeats.more_attempts == 0) find_unsteady();
    if (static_cast<double>(repeats.steps) <= kFewSteps) make_up_pooled();
  }
  if (repeats.steps >= kFewestPooledSteps || single) return;
  std::mt19937_64 random(1);  // whose numbers the standard defines
  OwnGuard guard(risk_, stated);
  std::vector<double> values(static_cast<std::size_t>(repeats.attempts + repeats.more_attempts));
  const auto needed = [&](std::size_t count) {
    double mean = 0;
    for (std::size_t i = 0; i < count; ++i) mean += values[i] / static_cast<double>(count);
    return guard({values.data(), count}) - mean;
  };
  for (int cell = 0; cell < kMadeUpCells; ++cell) {
    for (double& value : values) value = fleet_.between_runs * made_up_normal(random);
    double least = needed(static_cast<std::size_t>(repeats.attempts));
    if (repeats.more_attempts > 0) least = std::min(least, needed(values.size()));
    needed_.push_back(least);
  }
  std::ranges::sort(needed_);
}

template <class OfNode>
double ChanceToPass::over(const Cells& cells, OfNode of_node) const {
  if (cells.spread == 0) return of_node(cells.mean);
  return normal_integral(kWidth, [&](double node) { return of_node(cells.mean + node * cells.spread); });
}

/// A cell has its own deviation where its variance is over the pooled one, of which it is a part, by more than
/// F(0.999): the probability, and the middles of thirds of the tail of its variance.
void ChanceToPass::find_unsteady() {
  const double own = repeats_.attempts - 1.0, steps = static_cast<double>(repeats_.steps);
  const auto beyond = [&](double probability, double pooled) {  // by halving
    double low = 1, high = 1e6;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (f_upper_tail(middle, own, pooled) > probability ? low : high) = middle;
    }
    return low;
  };
  const double ratio = beyond(kUnsteady, own * steps);
  if (ratio >= steps) return;
  const double others = own * (steps - 1);
  unsteady_share_ = f_upper_tail(ratio * (steps - 1) / (steps - ratio), own, others);
  for (const double part : {1.0 / 6, 0.5, 5.0 / 6}) unsteady_.push_back(beyond(unsteady_share_ * part, others));
}

/// The pooled deviation over the true one in made-up fleets, as the judge pools it: middles of equal parts.
void ChanceToPass::make_up_pooled() {
  std::mt19937_64 random(2);
  std::vector<double> all, variances(repeats_.steps);
  for (int fleet = 0; fleet < kMadeUpFleets; ++fleet) {
    for (double& one : variances) {
      one = 0;
      for (int i = 1; i < repeats_.attempts; ++i) {
        const double z = made_up_normal(random);
        one += z * z / (repeats_.attempts - 1);
      }
    }
    const double most = kMostOfMedian * median(variances);
    double sum = 0;
    for (const double one : variances) sum += std::min(one, most);
    all.push_back(std::sqrt(sum / static_cast<double>(repeats_.steps)));
  }
  std::ranges::sort(all);
  for (int part = 0; part < kPooledParts; ++part)
    pooled_.push_back(all[static_cast<std::size_t>((2 * part + 1) * kMadeUpFleets / (2 * kPooledParts))]);
}

double ChanceToPass::passes_alone(double mean) const {
  const auto passing = std::ranges::upper_bound(needed_, mean) - needed_.begin();
  return static_cast<double>(std::max<std::ptrdiff_t>(passing, 1)) / kMadeUpCells;  // none of them shows no less
}

double ChanceToPass::guard(double deviation, int attempts, double degrees) const {
  if (attempts == 1) return guard_of_one(risk_, stated_);
  return pooled_quantile(risk_, degrees) * portable_hypot(deviation / std::sqrt(attempts), stated_.instrument);
}

/// Of the cells that do not pass in the first stage: their share, and the sum of squares that their further attempts
/// add, in variances between attempts. Their first means were low, so it is larger than that of other attempts.
ChanceToPass::Failing ChanceToPass::failing(const Cells& cells, double guard) const {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double of_first = fleet_.between_runs / std::sqrt(n);
  Failing result;
  result.share = over(cells, [&](double mean) { return normal_cdf((guard - mean) / of_first); });
  result.squares = over(cells, [&](double mean) {
    const double decided = (guard - mean) / of_first;
    const double fails = normal_cdf(decided);
    const double density = kDensity * portable_exp(-decided * decided / 2);
    const double of_means = (fails - decided * density) / n + fails / m;  // of the difference of both stages' means
    return fails * (m - 1) + of_means * n * m / (n + m);
  });
  return result;
}

/// The guards when `more` cells had more attempts, which added so many `squares`.
ChanceToPass::Guards ChanceToPass::guards_after(double first, double deviation, double more, double squares) const {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double before = static_cast<double>(repeats_.steps) * (n - 1), degrees = std::max(1.0, before + more * m);
  const double sum = deviation * deviation * before + fleet_.between_runs * fleet_.between_runs * squares;
  const double later = std::sqrt(sum / degrees);
  const double of_means = more > 0 ? squares / more - (m - 1) : 0;
  return {.first = first,
          .kept = guard(later, n, degrees),
          .all = guard(later, n + m, degrees),
          .factor = pooled_quantile(risk_, degrees),
          .others = std::max(0.0, sum - fleet_.between_runs * fleet_.between_runs * of_means),
          .degrees = degrees};
}

/// The share of cells that pass at once and when the whole is judged, and that of the others that pass with all
/// attempts.
ChanceToPass::Passing ChanceToPass::passing(const Cells& cells, const Guards& guards, bool few) const {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double of_first = fleet_.between_runs / std::sqrt(n);
  Passing result;
  result.kept =
      over(cells, [&](double mean) { return 1 - normal_cdf((std::max(guards.first, guards.kept) - mean) / of_first); });
  if (m == 0) return result;
  const double of_more = fleet_.between_runs / std::sqrt(m);
  result.mended = over(cells, [&](double mean) {
    return normal_integral((guards.first - mean) / of_first, [&](double run) {
      const double first = mean + run * of_first;
      const auto needed = [&](double all) { return (all * (n + m) - first * n) / m; };  // of the others' mean
      double least = needed(guards.all);
      for (int i = 0; i < kOwnPart && few; ++i) {  // the cell's own difference is a part of the pooled deviation
        const double squares = (first - least) * (first - least) * n * m / (n + m);
        const double deviation = std::sqrt((guards.others + squares) / guards.degrees / (n + m));
        least = needed(guards.factor * portable_hypot(deviation, stated_.instrument));
      }
      return normal_cdf((mean - least) / of_more);
    });
  });
  return result;
}

/// A cell whose attempts scatter far more than those of the others, by chance, is judged by its own deviation.
double ChanceToPass::passes_unsteady(const Cells& cells) const {
  const int n = repeats_.attempts;
  double sum = 0;
  for (const double ratio : unsteady_) {
    const double own = fleet_.between_runs * std::sqrt(ratio);
    const double u = portable_hypot(own / std::sqrt(n), stated_.instrument);
    const double needed = student_quantile(1 - risk_, n - 1.0) * u;
    sum += over(cells, [&](double mean) { return normal_cdf((mean - needed) / (fleet_.between_runs / std::sqrt(n))); });
  }
  return sum / static_cast<double>(unsteady_.size());
}

double ChanceToPass::log_all_with(double deviation, const Cells& good, const Cells& bad) const {
  const auto log_of = [](double probability) { return portable_log(std::max(probability, kLeastProbability)); };
  const auto steps = static_cast<double>(repeats_.steps);
  const double first = guard(deviation, repeats_.attempts, std::max(1.0, steps * (repeats_.attempts - 1)));
  const auto both = [&](const auto& of) {
    return (good.count > 0 ? good.count * log_of(of(good)) : 0) + (bad.count > 0 ? bad.count * log_of(of(bad)) : 0);
  };
  if (repeats_.more_attempts == 0)
    return both([&](const Cells& cells) {
      const double steady = passing(cells, {.first = first, .kept = first}).kept;
      return unsteady_.empty() ? steady : steady + unsteady_share_ * (passes_unsteady(cells) - steady);
    });
  const Failing of_good = failing(good, first), of_bad = failing(bad, first);
  const double more = good.count * of_good.share + bad.count * of_bad.share;
  const double squares = good.count * of_good.squares + bad.count * of_bad.squares;
  if (good.count + bad.count != steps || steps > kFewSteps) {
    const double of_step = steps / (good.count + bad.count);
    const Guards all = guards_after(first, deviation, more * of_step, squares * of_step);
    return both([&](const Cells& cells) {
      const Passing of = passing(cells, all);
      return of.kept + of.mended;
    });
  }
  // Few steps: by how many of them have a second stage, for it is their attempts that change the guards.
  const auto one_of = [](double of, double many, double other, double few) {  // that so many of so many are `few`
    return portable_exp(portable_log_gamma(many + 1) - portable_log_gamma(few + 1) -
                        portable_log_gamma(many - few + 1) + few * other + (many - few) * of);
  };
  double sum = 0;
  for (double count = 0; count <= steps; ++count) {
    const Guards all = guards_after(first, deviation, count, more > 0 ? count * squares / more : 0);
    const Guards here = count == 0 ? Guards{.first = first, .kept = first, .all = first} : all;
    const Passing g = passing(good, here, count > 0), b = passing(bad, here, count > 0);
    double term = 0;
    for (double of_them = std::max(0.0, count - good.count); of_them <= std::min(count, bad.count); ++of_them)
      term += one_of(log_of(g.kept), good.count, log_of(g.mended), count - of_them) *
              one_of(log_of(b.kept), bad.count, log_of(b.mended), of_them);
    sum += term;
    if (count > more && term < kNegligible * sum) break;
  }
  return log_of(sum);
}

double ChanceToPass::log_all(double margin, double good_cells, double short_by, double bad_cells) const {
  const Cells good{
      .count = good_cells, .mean = margin, .spread = portable_hypot(fleet_.between_nodes, stated_.instrument)};
  const Cells bad{.count = bad_cells, .mean = -short_by, .spread = stated_.instrument};
  if (!needed_.empty()) {
    const auto log_of = [&](const Cells& cells) {
      return portable_log(std::max(over(cells, [&](double mean) { return passes_alone(mean); }), kLeastProbability));
    };
    return good.count * log_of(good) + (bad.count > 0 ? bad.count * log_of(bad) : 0);
  }
  const double degrees = static_cast<double>(repeats_.steps) * (repeats_.attempts - 1);
  constexpr double kKnown = 10'000;
  if (degrees == 0 || degrees > kKnown) return log_all_with(fleet_.between_runs, good, bad);
  std::vector<std::pair<double, double>> points;  // weights, logarithms of probabilities
  for (const double one : pooled_) points.emplace_back(1, log_all_with(fleet_.between_runs * one, good, bad));
  // Of many steps the pooled variance over the true one, by Wilson and Hilferty (1931), at points of a normal variable.
  constexpr double kApart = 1.2, kSpread = 2.0 / 9;
  for (const double z : {-2 * kApart, -kApart, 0.0, kApart, 2 * kApart}) {
    if (!pooled_.empty()) break;
    const double root = std::max(1 - kSpread / degrees + z * std::sqrt(kSpread / degrees), 0.0);
    points.emplace_back(portable_exp(-z * z / 2),
                        log_all_with(fleet_.between_runs * std::sqrt(root * root * root), good, bad));
  }
  const double largest = std::ranges::max_element(points, {}, &std::pair<double, double>::second)->second;
  double sum = 0, weights = 0;
  for (const auto& [weight, log_probability] : points) {
    sum += weight * portable_exp(log_probability - largest);
    weights += weight;
  }
  return largest + portable_log(sum / weights);
}

double ChanceToPass::operator()(double margin) const { return portable_exp(log_all(margin, 1)); }

}  // namespace assay::plan
