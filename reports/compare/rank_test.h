// rank_test: exact test of a difference between few values before and few after.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "probes/core/statistics.h"

namespace assay::compare {

/// Values of one subject in both runs; or those of all subjects of either, where the runs share none.
struct Stratum {
  std::vector<double> a, b;
};

/// Result of the test of `b` against `a`.
struct RankTest {
  double p = 1;                      ///< two-sided
  double smallest_p = 1;             ///< the least that any order of as many values, with the same ties, could give
  bool exact = true;                 ///< else by the normal approximation
  bool ratio = true;                 ///< `shift` is b over a; else b minus a, because a value is not above 0
  std::optional<double> shift;       ///< median over all pairs of a stratum (Hodges & Lehmann 1963)
  std::optional<Interval> interval;  ///< of `shift`; nothing if so few values have none at that confidence
};

/// Values that are counted out; with more, the sum of the ranks is as good as normal.
inline constexpr std::size_t kMostExact = 2000;       ///< in all strata
inline constexpr std::size_t kMostExactOfOne = 60;    ///< in one
inline constexpr std::size_t kMostPairs = 4'000'000;  ///< of values, for shift and interval; with more the ratio of
                                                      ///< the medians, without an interval

/// The stratified rank-sum test (Wilcoxon 1945; strata: van Elteren 1960 with equal weights): the ranks of `b` within
/// each stratum are added over all strata, and compared with every way to deal the same values out within the strata.
/// It assumes no distribution, keeps its level with any number of values, with ties and with outliers, and cannot
/// reject if there are too few: see smallest_p. A stratum without values on both sides is left out.
RankTest rank_test(std::span<const Stratum> strata, double confidence);

/// The largest p that counts as a difference when tests with these `smallest` p are made at once and none may find a
/// difference by chance with a probability over `alpha` (Tarone 1990): alpha / K, where K counts only tests that could
/// reach alpha / K at all.
double tarone_threshold(std::span<const double> smallest, double alpha);

}  // namespace assay::compare
