// statistics: medians, intervals and moments.
#include "probes/core/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "probes/core/portable_math.h"

namespace assay {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::ranges::sort(copy);
  return copy;
}

/// P(X <= k) for X ~ Binomial(n, p), k from 0 to n. Weights follow from their neighbour only by + - * /, outwards from
/// the most probable k, whose weight is 1: an underflow is far out in a tail, and n = 10^5 has an error below 1e-12.
std::vector<double> binomial_cdf(std::size_t n, double p) {
  std::vector<double> weights(n + 1);
  const double odds = p / (1 - p);
  const auto probable = std::min(n, static_cast<std::size_t>((static_cast<double>(n) + 1) * p));
  weights[probable] = 1;
  for (std::size_t k = probable; k < n; ++k) {
    weights[k + 1] = weights[k] * static_cast<double>(n - k) / static_cast<double>(k + 1) * odds;
  }
  for (std::size_t k = probable; k > 0; --k) {
    weights[k - 1] = weights[k] * static_cast<double>(k) / static_cast<double>(n - k + 1) / odds;
  }
  double sum = 0;
  for (double& weight : weights) weight = (sum += weight);
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Ranks at the two ends, 1-based: the largest whose order statistic is above the quantile with a probability of at
/// most `risk`, 0 when there is none, and its mirror image, n + 1 when there is none.
struct Ranks {
  std::size_t low = 0;
  std::size_t high = 0;
};

constexpr double kRounding = 1e-12;

Ranks ranks_of(const std::vector<double>& cdf, double risk) {
  const std::size_t n = cdf.size() - 1;
  Ranks ranks{.low = 0, .high = n + 1};
  while (ranks.low < n && cdf[ranks.low] <= risk + kRounding) ++ranks.low;
  while (ranks.high > 1 && 1 - cdf[ranks.high - 2] <= risk + kRounding) --ranks.high;
  return ranks;
}

constexpr double kInverseRootOfTwoPi = 0.39894228040143267794;

double normal_density(double z) { return kInverseRootOfTwoPi * portable_exp(-z * z / 2); }

}  // namespace

double percentile(std::span<const double> samples, double fraction) {
  const auto ordered = sorted(samples);
  const double position = fraction * static_cast<double>(ordered.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, ordered.size() - 1);
  if (ordered[below] == ordered[above]) return ordered[below];  // also infinities, whose difference is no number
  return ordered[below] + (ordered[above] - ordered[below]) * (position - static_cast<double>(below));
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
  const Ranks ranks = ranks_of(cdf, (1 - confidence) / 2);
  if (ranks.low < 1 || ranks.high > n) return std::nullopt;
  return Interval{.low = ordered[ranks.low - 1],
                  .high = ordered[ranks.high - 1],
                  .level = to_12_digits(cdf[ranks.high - 1] - cdf[ranks.low - 1])};
}

std::optional<double> lower_quantile_bound(std::span<const double> samples, double fraction, double risk) {
  if (samples.empty()) return std::nullopt;
  const std::size_t rank = ranks_of(binomial_cdf(samples.size(), fraction), risk).low;
  if (rank < 1) return std::nullopt;
  return sorted(samples)[rank - 1];
}

std::optional<double> upper_quantile_bound(std::span<const double> samples, double fraction, double risk) {
  if (samples.empty()) return std::nullopt;
  const std::size_t rank = ranks_of(binomial_cdf(samples.size(), fraction), risk).high;
  if (rank > samples.size()) return std::nullopt;
  return sorted(samples)[rank - 1];
}

double lag_one_correlation(std::span<const double> samples) {
  if (samples.size() < 3) return 0;
  const Moments all = moments(samples);
  if (!(all.squares > 0)) return 0;
  double sum = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) sum += (samples[i - 1] - all.mean) * (samples[i] - all.mean);
  return sum / all.squares;
}

double normal_cdf(double z) {
  constexpr double kSeriesUntil = 3;  // beyond it the series cancels, and before it the fraction is slow
  const double distance = std::abs(z);
  if (distance < kSeriesUntil) {
    constexpr double kNegligible = 1e-18;
    double term = z, sum = z;
    for (int i = 3; std::abs(term) > kNegligible; i += 2)
      sum += term *= z * z / i;  // halves every step from i = 2 z^2 on
    return 0.5 + normal_density(z) * sum;
  }
  constexpr int kLevels = 40;  // error at 3: 2e-14 of the tail
  double fraction = distance;
  for (int k = kLevels; k > 0; --k) fraction = distance + k / fraction;
  const double tail = normal_density(z) / fraction;
  return z < 0 ? tail : 1 - tail;
}

double normal_quantile(double p) {
  constexpr double kLeast = 1e-300;
  const double tail = std::max(std::min(p, 1 - p), kLeast);
  // Abramowitz & Stegun 26.2.23, error below 4.5e-4; each step of Halley's method makes three times as many digits of
  // it.
  const double t = std::sqrt(-2 * portable_log(tail));
  double z = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  constexpr int kSteps = 3;
  for (int i = 0; i < kSteps; ++i) {
    const double newton = (normal_cdf(z) - tail) / normal_density(z);
    z -= newton / (1 + z * newton / 2);
  }
  return p < 0.5 ? z : -z;
}

}  // namespace assay
