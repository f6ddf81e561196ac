// pass_chance: an integral over the mean of a node and of its first attempts, or made-up cells where each has its own
// deviation. See pass_chance.h.
#include "orchestrator/plan/pass_chance.h"

#include <algorithm>
#include <array>
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
constexpr int kMadeUpCells = 20'000;
constexpr double kLeastDeviation = 1e-12;  // of a divisor

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
  constexpr double kDensity = 0.3989422804014327;  // 1 / sqrt(2 pi)
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
  if (repeats.steps >= kFewestPooledSteps || single) return;
  std::mt19937_64 random(1);  // whose numbers the standard defines
  const auto normal = [&random] { return normal_quantile((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53); };
  OwnGuard guard(risk_, stated);
  std::vector<double> values(static_cast<std::size_t>(repeats.attempts + repeats.more_attempts));
  const auto needed = [&](std::size_t count) {
    double mean = 0;
    for (std::size_t i = 0; i < count; ++i) mean += values[i] / static_cast<double>(count);
    return guard({values.data(), count}) - mean;
  };
  for (int cell = 0; cell < kMadeUpCells; ++cell) {
    for (double& value : values) value = fleet_.between_runs * normal();
    double least = needed(static_cast<std::size_t>(repeats.attempts));
    if (repeats.more_attempts > 0) least = std::min(least, needed(values.size()));
    needed_.push_back(least);
  }
  std::ranges::sort(needed_);
}

template <class OfNode>
double ChanceToPass::over_nodes(double margin, OfNode of_node) const {
  if (fleet_.between_nodes == 0) return of_node(margin);
  return normal_integral(kWidth, [&](double node) { return of_node(margin + node * fleet_.between_nodes); });
}

double ChanceToPass::passes_alone(double mean) const {
  const auto passing = std::ranges::upper_bound(needed_, mean) - needed_.begin();
  return static_cast<double>(std::max<std::ptrdiff_t>(passing, 1)) / kMadeUpCells;  // none of them shows no less
}

double ChanceToPass::guard(double deviation, int attempts, double degrees) const {
  if (attempts == 1) return guard_of_one(risk_, stated_);
  return pooled_quantile(risk_, degrees) * portable_hypot(deviation / std::sqrt(attempts), stated_.instrument);
}

/// The second stage adds attempts to the cells that did not pass. Their first means were low, so the sums of squares of
/// all their attempts are larger than those of the first: the pooled variance rises by the ratio of the expectations.
ChanceToPass::Guards ChanceToPass::guards(double margin, double deviation) const {
  const auto steps = static_cast<double>(repeats_.steps);
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  Guards result{.first = guard(deviation, n, std::max(1.0, steps * (n - 1)))};
  if (m == 0) {
    result.kept = result.first;
    return result;
  }
  const double of_first = fleet_.between_runs / std::sqrt(n);
  const double squares = over_nodes(margin, [&](double mean) {  // in variances between attempts
    const double decided = (result.first - mean) / of_first;
    const double fails = normal_cdf(decided);
    const double density = 0.3989422804014327 * portable_exp(-decided * decided / 2);
    const double of_means = (fails - decided * density) / n + fails / m;  // of the difference of both stages' means
    return (n - 1) + fails * (m - 1) + of_means * n * m / (n + m);
  });
  const double more_cells =
      over_nodes(margin, [&](double mean) { return normal_cdf((result.first - mean) / of_first); });
  const double degrees = (n - 1) + more_cells * m;
  const double later = deviation * std::sqrt(squares / degrees);
  result.kept = guard(later, n, std::max(1.0, steps * degrees));
  result.all = guard(later, n + m, std::max(1.0, steps * degrees));
  return result;
}

double ChanceToPass::passes(double mean, const Guards& guards) const {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double of_first = fleet_.between_runs / std::sqrt(n);
  const double decided = (guards.first - mean) / of_first;  // from here on the first stage passes
  const double kept = 1 - normal_cdf(std::max(decided, (guards.kept - mean) / of_first));
  if (m == 0) return kept;
  const double of_more = fleet_.between_runs / std::sqrt(m);
  return kept + normal_integral(decided, [&](double run) {
           const double needed = (guards.all * (n + m) - (mean + run * of_first) * n) / m;  // of the others' mean
           return normal_cdf((mean - needed) / of_more);
         });
}

double ChanceToPass::log_all(double margin, double good, double short_by, double bad) const {
  const auto log_of = [](double probability) { return portable_log(std::max(probability, 1e-300)); };
  if (!needed_.empty()) {
    return good * log_of(over_nodes(margin, [&](double mean) { return passes_alone(mean); })) +
           (bad > 0 ? bad * log_of(passes_alone(-short_by)) : 0);
  }
  const auto with = [&](double deviation) {
    const Guards all = guards(margin, deviation);
    return (good > 0 ? good * log_of(over_nodes(margin, [&](double mean) { return passes(mean, all); })) : 0) +
           (bad > 0 ? bad * log_of(passes(-short_by, all)) : 0);
  };
  const double degrees = static_cast<double>(repeats_.steps) * (repeats_.attempts - 1);
  constexpr double kKnown = 10'000;
  if (degrees == 0 || degrees > kKnown) return with(fleet_.between_runs);
  // The pooled variance over the true one, by Wilson and Hilferty (1931), at points of a normal variable.
  constexpr int kPoints = 5;
  constexpr double kApart = 1.2;
  double sum = 0, weights = 0, largest = 0;
  std::array<std::pair<double, double>, kPoints> points;
  for (int i = 0; i < kPoints; ++i) {
    const double z = (i - kPoints / 2) * kApart;
    const double spread = 2 / (9 * degrees);
    const double root = std::max(1 - spread + z * std::sqrt(spread), 0.0);
    points[static_cast<std::size_t>(i)] = {portable_exp(-z * z / 2),
                                           with(fleet_.between_runs * std::sqrt(root * root * root))};
    largest = i == 0 ? points[0].second : std::max(largest, points[static_cast<std::size_t>(i)].second);
  }
  for (const auto& [weight, log_probability] : points) {
    sum += weight * portable_exp(log_probability - largest);
    weights += weight;
  }
  return largest + portable_log(sum / weights);
}

double ChanceToPass::operator()(double margin) const { return portable_exp(log_all(margin, 1)); }

}  // namespace assay::plan
