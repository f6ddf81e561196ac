// pass_chance: an integral over the mean of a node and of its first attempts, or made-up cells where each has its own
// deviation. See pass_chance.h.
#include "orchestrator/plan/pass_chance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <random>
#include <span>

#include <fmt/format.h>

#include "orchestrator/plan/repeat.h"
#include "probes/core/portable_math.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::plan {
namespace {

constexpr int kIntervals = 48;  // of an integral over a normal density: its error is below 1e-7
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

/// The same of a mean of `attempts`, whose deviation is pooled.
double pooled_guard(double between_runs, int attempts, double risk, const StatedUncertainty& stated, double steps) {
  if (attempts == 1) return guard_of_one(risk, stated);
  const double u = portable_hypot(between_runs / std::sqrt(attempts), stated.instrument);
  return student_quantile(1 - risk, steps * (attempts - 1)) * u;
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
    : fleet_(fleet), repeats_(repeats) {
  const int stages = repeats.more_attempts > 0 ? 2 : 1;
  const int all = repeats.attempts + repeats.more_attempts;
  if (repeats.steps >= kFewestPooledSteps || (repeats.attempts == 1 && stages == 1)) {
    const auto steps = static_cast<double>(repeats.steps);
    first_ = pooled_guard(fleet.between_runs, repeats.attempts, risk / stages, stated, steps);
    second_ = pooled_guard(fleet.between_runs, all, risk / stages, stated, steps);
    return;
  }
  std::mt19937_64 random(1);  // whose numbers the standard defines
  const auto normal = [&random] { return normal_quantile((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53); };
  OwnGuard guard(risk / stages, stated);
  std::vector<double> values(static_cast<std::size_t>(all));
  const auto needed = [&](std::size_t count) {
    double mean = 0;
    for (std::size_t i = 0; i < count; ++i) mean += values[i] / static_cast<double>(count);
    return guard({values.data(), count}) - mean;
  };
  for (int cell = 0; cell < kMadeUpCells; ++cell) {
    for (double& value : values) value = fleet.between_runs * normal();
    double least = needed(static_cast<std::size_t>(repeats.attempts));
    if (stages == 2) least = std::min(least, needed(values.size()));
    needed_.push_back(least);
  }
  std::ranges::sort(needed_);
}

double ChanceToPass::operator()(double margin) const {
  if (needed_.empty()) return pooled(margin);
  const auto passing = [&](double mean) {
    const auto beyond = std::ranges::upper_bound(needed_, mean);
    return static_cast<double>(beyond - needed_.begin()) / kMadeUpCells;
  };
  if (fleet_.between_nodes == 0) return passing(margin);
  return normal_integral(kWidth, [&](double node) { return passing(margin + node * fleet_.between_nodes); });
}

double ChanceToPass::pooled(double margin) const {
  const int attempts = repeats_.attempts;
  const int more = repeats_.more_attempts;
  const double of_first = std::max(fleet_.between_runs / std::sqrt(attempts), kLeastDeviation);
  const auto of_node = [&](double mean) {
    if (more == 0) return normal_cdf((mean - first_) / of_first);
    const int all = attempts + more;
    const double of_more = std::max(fleet_.between_runs / std::sqrt(more), kLeastDeviation);
    const double decided = (first_ - mean) / of_first;  // from here on the first stage passes
    return 1 - normal_cdf(decided) + normal_integral(decided, [&](double run) {
             const double needed = (second_ * all - (mean + run * of_first) * attempts) / more;  // of the others' mean
             return normal_cdf((mean - needed) / of_more);
           });
  };
  if (fleet_.between_nodes == 0) return of_node(margin);
  return normal_integral(kWidth, [&](double node) { return of_node(margin + node * fleet_.between_nodes); });
}

}  // namespace assay::plan
