// charts: the formulas of charts.h; limits are found by bisection.
#include "orchestrator/drift/charts.h"

#include <algorithm>
#include <cmath>

#include "probes/core/portable_math.h"
#include "probes/core/statistics.h"

namespace assay::drift {
namespace {

/// Excess of a chart over its limit when it crosses it, in deviations (Siegmund 1985).
constexpr double kExcess = 1.166;

/// Quantiles of the standard normal distribution at exp(-t * t / 2) for t in steps of 1 / kSteps, almost straight in t.
constexpr int kSteps = 64;
constexpr int kMostT = 12;

const std::vector<double>& quantile_table() {
  static const std::vector<double> kTable = [] {
    std::vector<double> table;
    for (int i = 0; i <= kSteps * kMostT + 2; ++i) {
      const double t = static_cast<double>(i) / kSteps;
      table.push_back(-normal_quantile(std::min(portable_exp(-t * t / 2), 1 - 0x1p-40)));
    }
    return table;
  }();
  return kTable;
}

/// -quantile(p) for p up to 0.5 by a parabola through three entries of the table.
double upper_score(double p) {
  const auto& table = quantile_table();
  const double t = std::min(std::sqrt(-2 * portable_log(p)) * kSteps, static_cast<double>(kSteps * kMostT));
  const auto i = static_cast<std::size_t>(t);
  const double u = t - static_cast<double>(i);
  const double first = table[i + 1] - table[i];
  const double second = table[i + 2] - 2 * table[i + 1] + table[i];
  return table[i] + u * first + u * (u - 1) / 2 * second;
}

}  // namespace

double run_length(double k, double h) {
  const double twice = 2 * k * (h + kExcess);
  return (portable_exp(twice) - twice - 1) / (2 * k * k);
}

double limit_for(double k, double visits) {
  double low = 1;
  double high = 300;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (run_length(k, middle) < visits ? low : high) = middle;
  }
  return to_12_digits(high);
}

std::vector<double> rank_scores(std::size_t count) {
  std::vector<double> scores(count);
  const auto all = static_cast<double>(count);
  for (std::size_t i = 0; i < count / 2; ++i) {
    scores[i] = upper_score((static_cast<double>(i) + 0.5) / all);
    scores[count - 1 - i] = -scores[i];
  }
  return scores;
}

double student_score(double t, double degrees) {
  const double size = std::sqrt(degrees * portable_log(1 + t * t / degrees)) * ((8 * degrees + 1) / (8 * degrees + 3));
  return t < 0 ? size : -size;
}

double poisson_tail(double mean, double least) {
  if (!(least > 0)) return 1;
  constexpr double kMostTerms = 10'000;
  if (least > kMostTerms) return least > 2 * mean ? 0 : 1;  // far beyond any budget, or not unusual
  double term = portable_exp(-mean);
  double below = 0;
  for (int i = 0; i < least; ++i) {
    below += term;
    term *= mean / (i + 1);
  }
  // Where little is left, the first terms of the tail itself: the difference from 1 would be rounding.
  if (below < 0.5) return 1 - below;
  double tail = 0;
  for (double i = least; i < least + kMostTerms && term > tail * 1e-17; i += 1) {
    tail += term;
    term *= mean / (i + 1);
  }
  return tail;
}

int cliff_history(double flags, double nights, double units, int times) {
  constexpr int kMost = 400;
  for (int n = 1; n < kMost; ++n) {
    double ways = 1;
    for (int i = 1; i <= times; ++i) ways *= static_cast<double>(n + i) / i;
    if (nights * units / ways <= flags) return n;
  }
  return kMost;
}

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace assay::drift
