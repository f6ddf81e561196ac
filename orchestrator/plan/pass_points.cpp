// pass_points: the points of the integrals that pass_chance.h names, over the pooled deviation and over the squares of
// cells that have their own.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "orchestrator/plan/pass_chance.h"
#include "orchestrator/plan/pass_guards.h"
#include "probes/core/portable_math.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"

namespace assay::plan {
namespace {

constexpr int kDraws = 64'000, kMostFleets = 4'000;  // of made-up fleets: 0.1 % of their variance
constexpr double kMostOfMedian = 9;                  // of a variance that is pooled, as the judge takes it
constexpr double kUnsteady = 1e-3;  // of a cell, by the judge's test of its deviation against the pooled one

/// Squares of second attempts: their means if with `before` they are below `limit` or above, and how likely either is.
std::vector<Squares> second_squares(double degrees, double before, double limit) {
  const double above = chi_squared_tail(limit - before, degrees);
  const double mean = above > 0 ? degrees * chi_squared_tail(limit - before, degrees + 2) / above : 0;
  return {{above < 1 ? (degrees - above * mean) / (1 - above) : 0, 1 - above}, {mean, above}};
}

}  // namespace

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
  auto fleet = fleets.begin();
  for (int part = 0; part < kPooledParts; ++part) {
    double left = 0;
    for (int i = 0; i < count / kPooledParts; ++i, ++fleet) left += fleet->second;
    pooled_.push_back(chi_squared((part + 0.5) / kPooledParts, degrees) / degrees * left * kPooledParts / count);
  }
}

/// A cell has its own deviation where its variance is over the pooled one, of which it is a part, by more than
/// F(0.999): how likely, with these degrees of freedom of both, by more than `wider` times that.
double ChanceToPass::unsteady_share(double own, double pooled, double wider) const {
  constexpr double kLeastShare = 1e-9;  // below which nothing depends on it
  double low = 1, high = 1e6;           // by halving
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (f_upper_tail(middle, own, pooled) > kUnsteady ? low : high) = middle;
  }
  // Of the pooled one it is the whole, or as much as is pooled of it.
  const double ratio = low * wider, cells = repeats_.cells();
  const double most = kMostOfMedian * chi_squared(0.5, own) / own * repeats_.cells_per_step;
  const double limited = ratio * (cells - 1 + most) / cells;
  const double least = ratio < cells ? std::min(limited, ratio * (cells - 1) / (cells - ratio)) : limited;
  return std::max(f_upper_tail(least, own, own * (cells - 1)), kLeastShare);
}

/// Points of the squares of both stages and of d. With pooled deviations only those that are unsteady, in few.
void ChanceToPass::take_own(const UnsteadyShares& tails) {
  const int n = repeats_.attempts, m = repeats_.more_attempts;
  const double between = fleet_.between_runs;
  const bool pools = !pooled_.empty();
  constexpr int kParts = 24, kFewParts = 12;
  constexpr double kEnd = 4, kApart = 0.5;  // of d, in its standard deviations
  const double of_d = m == 0 ? 0 : between * std::sqrt(static_cast<double>(m) / n / (n + m));
  const double limit = pools ? chi_squared(1 - tails.first, n - 1.0) : 0;
  const double limit_all = pools && m > 0 ? chi_squared(1 - tails.all, n + m - 1.0) : 0;
  const double most = pools ? kMostOfMedian * chi_squared(0.5, n - 1.0) : 0;
  std::vector<Squares> mores = m == 0 ? std::vector<Squares>{{}} : squares_of(m - 1.0, 1, kFewParts);
  double densities = 0;  // of all points, which share the tails beyond the ends
  for (double z = -kEnd; z <= kEnd; z += kApart) densities += portable_exp(-z * z / 2);
  OwnGuard guard(risk_, stated_, repeats_.bound);
  std::map<std::array<int, 3>, OwnPoint> points;  // by the part of the first squares, the test of all, and d
  int part = 0;
  for (const Squares& one : squares_of(n - 1.0, pools ? tails.first : 1, kParts)) {
    const bool own = !pools || one.value >= limit;
    const double first = !own ? 0 : guard(n == 1 ? 0 : between * std::sqrt(one.value / (n - 1)), n);
    part += own ? 1 : 0;
    for (double z = m == 0 ? 0 : -kEnd; z <= (m == 0 ? 0 : kEnd); z += kApart) {
      const double density = m == 0 ? 1 : portable_exp(-z * z / 2) / densities;
      if (pools && m > 0) mores = second_squares(m - 1.0, one.value + z * z, limit_all);
      for (const Squares& added : mores) {
        const double squares = one.value + added.value + z * z, share = one.share * density * added.share;
        const bool own_all = m > 0 && (!pools || &added == &mores.back());
        if ((!own && !own_all) || share == 0) continue;
        const int at = static_cast<int>(pools ? std::lround(z) : points.size());
        OwnPoint& point = points[{own ? part : 0, own_all ? 1 : 0, at}];
        point.share += share;
        point.first += share * first;
        if (own_all) point.all += share * guard(between * std::sqrt(squares / (n + m - 1)), n + m);
        point.d += share * of_d * z;
        point.squares += share * (added.value + z * z + std::max(one.value - most, 0.0));
        point.own_first = own, point.own_all = own_all;
      }
    }
  }
  for (const auto& [key, sums] : points) {
    OwnPoint& point = own_.emplace_back(sums);
    for (double* sum : {&point.first, &point.all, &point.d, &point.squares}) *sum /= sums.share;
  }
}

}  // namespace assay::plan
