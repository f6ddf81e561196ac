// statistics: medians, intervals and moments.
#include "probes/core/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace assay {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::ranges::sort(copy);
  return copy;
}

/// P(X <= k) for X ~ Binomial(n, p), k from 0 to n; summed in logs so that n = 10^5 does not underflow.
std::vector<double> binomial_cdf(std::size_t n, double p) {
  std::vector<double> cdf(n + 1);
  const double count = static_cast<double>(n);
  double sum = 0;
  for (std::size_t k = 0; k <= n; ++k) {
    const double x = static_cast<double>(k);
    const double log_choose = std::lgamma(count + 1) - std::lgamma(x + 1) - std::lgamma(count - x + 1);
    sum += std::exp(log_choose + x * std::log(p) + (count - x) * std::log1p(-p));
    cdf[k] = std::min(sum, 1.0);
  }
  return cdf;
}

}  // namespace

double percentile(std::span<const double> samples, double fraction) {
  const auto ordered = sorted(samples);
  const double position = fraction * static_cast<double>(ordered.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, ordered.size() - 1);
  return std::lerp(ordered[below], ordered[above], position - static_cast<double>(below));
}

double median(std::span<const double> samples) { return percentile(samples, 0.5); }

double median_absolute_deviation(std::span<const double> samples) {
  const double centre = median(samples);
  std::vector<double> deviations(samples.begin(), samples.end());
  for (double& deviation : deviations) deviation = std::abs(deviation - centre);
  return median(deviations);
}

double robust_sigma(std::span<const double> samples) { return 1.4826 * median_absolute_deviation(samples); }

void Moments::add(double sample) {
  ++count;
  const double step = sample - mean;
  mean += step / static_cast<double>(count);
  squares += step * (sample - mean);
}

double Moments::standard_deviation() const {
  return count < 2 ? 0 : std::sqrt(squares / static_cast<double>(count - 1));
}

Moments moments(std::span<const double> samples) {
  Moments result;
  for (const double sample : samples) result.add(sample);
  return result;
}

std::optional<Interval> order_statistic_interval(std::span<const double> samples, double fraction, double confidence) {
  const std::size_t n = samples.size();
  if (n < 2 || fraction <= 0 || fraction >= 1) return std::nullopt;
  const auto ordered = sorted(samples);
  const auto cdf = binomial_cdf(n, fraction);
  // Ranks (r, s), 1-based, cover with probability cdf[s-1] - cdf[r-1]. Each tail gets at most half of the risk, so
  // the interval is the narrowest with both tails bounded.
  const double tail = (1 - confidence) / 2;
  constexpr double kRounding = 1e-12;
  std::size_t low_rank = 0;
  while (low_rank < n && cdf[low_rank] <= tail + kRounding) ++low_rank;
  std::size_t high_rank = n + 1;
  while (high_rank > 1 && 1 - cdf[high_rank - 2] <= tail + kRounding) --high_rank;
  if (low_rank < 1 || high_rank > n) return std::nullopt;
  return Interval{
      .low = ordered[low_rank - 1], .high = ordered[high_rank - 1], .level = cdf[high_rank - 1] - cdf[low_rank - 1]};
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double normal_quantile(double p) {
  double low = -40;  // normal_cdf(-40) is 0 in double precision
  double high = 40;
  constexpr int kBisections = 80;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = std::midpoint(low, high);
    (normal_cdf(middle) < p ? low : high) = middle;
  }
  return std::midpoint(low, high);
}

}  // namespace assay
