// small_samples: Student's t, Fisher's F and binomial tails, all from the incomplete beta function.
#include "probes/core/small_samples.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "probes/core/portable_math.h"
#include "probes/core/statistics.h"

namespace assay {
namespace {

constexpr double kHalfLogOfTwoPi = 0.91893853320467274178;
constexpr double kAsGoodAsNormal = 1e7;  // the quantiles differ by less than 1e-6 of themselves from here on

/// The continued fraction of the incomplete beta function without its factor.
double beta_fraction(double a, double b, double x) {
  constexpr int kMostSteps = 20'000;  // O(sqrt(max(a, b))) are needed
  constexpr double kTiny = 1e-300;
  constexpr double kEnough = 1e-16;
  const auto no_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / no_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m < kMostSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / no_zero(1 + even * d);
    c = no_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / no_zero(1 + odd * d);
    c = no_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < kEnough) break;
  }
  return fraction;
}

/// ln(Gamma(a + b) / (Gamma(a) Gamma(b))).
double log_of_inverse_beta(double a, double b) {
  return portable_log_gamma(a + b) - portable_log_gamma(a) - portable_log_gamma(b);
}

/// The incomplete beta function with `log_factor`, its log_of_inverse_beta.
double incomplete_beta(double a, double b, double x, double log_factor) {
  const double factor = portable_exp(log_factor + a * portable_log(x) + b * portable_log(1 - x));
  if (x < (a + 1) / (a + b + 2)) return factor * beta_fraction(a, b, x) / a;
  return 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

/// Student's t with `degrees`, at most kAsGoodAsNormal. The gamma functions are most of its cost and do not depend on
/// t.
class StudentsT {
 public:
  explicit StudentsT(double degrees)
      : degrees_(degrees),
        log_of_tail_(log_of_inverse_beta(degrees / 2, 0.5)),
        log_of_density_(portable_log_gamma((degrees + 1) / 2) - portable_log_gamma(degrees / 2) -
                        portable_log(degrees) / 2 - portable_log(3.14159265358979323846) / 2) {}

  /// P(T > t) for t >= 0.
  [[nodiscard]] double tail(double t) const {
    const double x = degrees_ / (degrees_ + t * t);
    if (!(x > 0)) return 0;
    return (x < 1 ? incomplete_beta(degrees_ / 2, 0.5, x, log_of_tail_) : 1) / 2;
  }
  [[nodiscard]] double density(double t) const {
    return portable_exp(log_of_density_ - (degrees_ + 1) / 2 * portable_log(1 + t * t / degrees_));
  }

 private:
  double degrees_, log_of_tail_, log_of_density_;
};

/// The t whose upper tail is `tail` < 0.5: Newton's steps, kept within a bracket that they narrow.
double upper_student_quantile(double tail, double degrees) {
  const StudentsT student(degrees);
  double low = 0;
  double high = std::max(1.0, -normal_quantile(tail));
  while (student.tail(high) > tail && high < 1e150) high *= 2;
  double t = high;
  constexpr int kMostSteps = 200;
  for (int i = 0; i < kMostSteps; ++i) {
    const double excess = student.tail(t) - tail;
    (excess > 0 ? low : high) = t;
    double next = t + excess / student.density(t);
    if (!(next > low && next < high)) next = (low + high) / 2;
    if (std::abs(next - t) <= 1e-14 * std::abs(next)) return next;
    t = next;
  }
  return t;
}

}  // namespace

double portable_log_gamma(double x) {
  constexpr double kFrom = 16;  // 43867 / (244188 x^17) is 6e-22 there
  // B(2k) / (2k (2k - 1)).
  static constexpr std::array<double, 7> kSeries = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                                    1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  double factor = 1;
  while (x < kFrom) {
    factor *= x;
    x += 1;
  }
  const double square = 1 / (x * x);
  double sum = 0;
  for (std::size_t i = kSeries.size(); i > 0; --i) sum = sum * square + kSeries[i - 1];
  return (x - 0.5) * portable_log(x) - x + kHalfLogOfTwoPi + sum / x - portable_log(factor);
}

double incomplete_beta(double a, double b, double x) {
  if (!(x > 0)) return 0;
  if (!(x < 1)) return 1;
  return incomplete_beta(a, b, x, log_of_inverse_beta(a, b));
}

double student_cdf(double t, double degrees) {
  const double tail = degrees > kAsGoodAsNormal ? normal_cdf(-std::abs(t)) : StudentsT(degrees).tail(std::abs(t));
  return t < 0 ? tail : 1 - tail;
}

double student_quantile(double p, double degrees) {
  if (p == 0.5) return 0;
  const double tail = std::min(p, 1 - p);
  const double t = degrees > kAsGoodAsNormal ? -normal_quantile(tail) : upper_student_quantile(tail, degrees);
  return to_12_digits(p < 0.5 ? -t : t);
}

double f_upper_tail(double f, double degrees_above, double degrees_below) {
  if (!(f > 0)) return 1;
  return incomplete_beta(degrees_below / 2, degrees_above / 2, degrees_below / (degrees_below + degrees_above * f));
}

double binomial_at_least(std::size_t n, double p, std::size_t least) {
  if (least == 0) return 1;
  if (least > n) return 0;
  return incomplete_beta(static_cast<double>(least), static_cast<double>(n - least + 1), p);
}

double share_at_most(std::size_t n, std::size_t seen, double confidence) {
  if (seen >= n) return 1;
  constexpr int kHalvings = 60;  // beyond the digits of a double
  double low = 0, high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (binomial_at_least(n, middle, seen + 1) < confidence ? low : high) = middle;
  }
  return high;
}

}  // namespace assay
