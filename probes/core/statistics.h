// statistics: estimates from a few samples, and their confidence. Nothing here depends on the processor: see
// portable_math.h.
#pragma once

#include <optional>
#include <span>

namespace assay {

/// A confidence interval for a quantile and the coverage it really has.
struct Interval {
  double low = 0;
  double high = 0;
  double level = 0;  ///< actual coverage in 0..1 to 12 digits, never below the requested one by more than those
};

/// The median; the mean of the two middle samples when their number is even. `samples` must not be empty.
double median(std::span<const double> samples);

/// The quantile at `fraction` in 0..1 by linear interpolation (Hyndman & Fan 1996, type 7). Not empty.
double percentile(std::span<const double> samples, double fraction);

/// The median absolute deviation from the median, unscaled. Not empty.
double median_absolute_deviation(std::span<const double> samples);

/// Scaled MAD; 1.4826 makes it estimate sigma of a normal distribution (Iglewicz & Hoaglin 1993). Not empty.
double robust_sigma(std::span<const double> samples);

/// Mean and sample standard deviation by Welford's update (1962), which does not cancel on badly scaled data.
struct Moments {
  std::size_t count = 0;
  double mean = 0;
  double squares = 0;  ///< sum of squared deviations from the mean

  /// Takes one more sample in.
  void add(double sample);
  /// Sample standard deviation (n - 1); 0 for fewer than two samples.
  [[nodiscard]] double standard_deviation() const;
};

/// Mean and standard deviation of all `samples`.
Moments moments(std::span<const double> samples);

/// Distribution-free confidence interval of the quantile at `fraction` from order statistics: the ranks are chosen by
/// the exact binomial so that coverage is at least `confidence` (Conover 1999, ch. 3.2). For the median of 10 samples
/// at 0.95 these are ranks 2 and 9, coverage 0.979. Nothing if the samples are too few for any such interval.
std::optional<Interval> order_statistic_interval(std::span<const double> samples, double fraction, double confidence);

/// The order statistic that is at or below the quantile at `fraction` of the distribution that the samples are from,
/// with a probability of at least 1 - `risk` for any shape: the largest rank r with P(Binomial(n, fraction) < r) <=
/// `risk` (Conover 1999, ch. 3.2). Exact for independent samples. Nothing if they are too few.
std::optional<double> lower_quantile_bound(std::span<const double> samples, double fraction, double risk);

/// Its mirror image: at or above the quantile.
std::optional<double> upper_quantile_bound(std::span<const double> samples, double fraction, double risk);

/// The correlation of each sample with the one after it; 0 for fewer than three samples, and where all are alike.
double lag_one_correlation(std::span<const double> samples);

/// Standard normal distribution function, relative error below 1e-12: the series of Marsaglia (2004, "Evaluating the
/// normal distribution", eq. 1) near 0, Laplace's continued fraction (Abramowitz & Stegun 26.2.14) in the tails.
double normal_cdf(double z);

/// Its inverse for 0 < p < 1, absolute error below 1e-12 where 1 - p is known so well; -37 and 37 at most.
double normal_quantile(double p);

}  // namespace assay
