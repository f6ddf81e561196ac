// rank_test: ranks are doubled, so that those of ties are whole numbers.
#include "reports/compare/rank_test.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::compare {
namespace {

constexpr double kEqual = 1e-9;  // relative: sums of the same terms in another order

/// The doubled ranks of the values of `stratum`, those of `a` first; ties share the mean of their ranks.
std::vector<std::size_t> doubled_ranks(const Stratum& stratum) {
  std::vector<double> all = stratum.a;
  all.insert(all.end(), stratum.b.begin(), stratum.b.end());
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all[i]; });
  std::vector<std::size_t> ranks(all.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && all[order[last + 1]] == all[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i)
      ranks[order[i]] = first + last + 2;  // twice the mean of first+1..last+1
    first = last + 1;
  }
  return ranks;
}

/// Probabilities of sums, from `least` on.
struct Distribution {
  std::size_t least = 0;
  std::vector<double> share{1.0};
};

/// How often `drawn` of `ranks` add up to each sum, when every choice is equally likely.
Distribution sums_of(const std::vector<std::size_t>& ranks, std::size_t drawn) {
  const std::size_t most = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  std::vector<std::vector<double>> ways(drawn + 1, std::vector<double>(most + 1));
  ways[0][0] = 1;
  std::size_t reached = 0;
  for (std::size_t taken = 0; taken < ranks.size(); ++taken) {
    reached += ranks[taken];
    for (std::size_t k = std::min(taken + 1, drawn); k > 0; --k) {
      for (std::size_t sum = reached; sum >= ranks[taken]; --sum) ways[k][sum] += ways[k - 1][sum - ranks[taken]];
    }
  }
  const auto& counts = ways[drawn];
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  Distribution found{.least = most, .share = {}};
  std::size_t last = 0;
  for (std::size_t sum = 0; sum <= most; ++sum) {
    if (counts[sum] == 0) continue;
    found.least = std::min(found.least, sum);
    last = sum;
  }
  for (std::size_t sum = found.least; sum <= last; ++sum) found.share.push_back(counts[sum] / all);
  return found;
}

/// The distribution of a sum of two independent ones.
Distribution added(const Distribution& one, const Distribution& other) {
  Distribution sum{.least = one.least + other.least,
                   .share = std::vector<double>(one.share.size() + other.share.size() - 1)};
  for (std::size_t i = 0; i < one.share.size(); ++i) {
    for (std::size_t j = 0; j < other.share.size(); ++j) sum.share[i + j] += one.share[i] * other.share[j];
  }
  return sum;
}

/// The probability of a sum at least `distance` away from `centre`.
double beyond(const Distribution& sums, double centre, double distance) {
  double p = 0;
  for (std::size_t i = 0; i < sums.share.size(); ++i) {
    if (std::abs(static_cast<double>(sums.least + i) - centre) >= distance * (1 - kEqual)) p += sums.share[i];
  }
  return std::min(p, 1.0);
}

/// Doubled rank sum of `b` over all strata, with its mean and variance under every dealing, and the strata's ranks.
struct Summed {
  double found = 0, mean = 0, variance = 0;
  std::size_t values = 0, largest = 0;
  std::vector<std::vector<std::size_t>> ranks;
};

Summed summed(std::span<const Stratum> strata) {
  Summed all;
  for (const auto& stratum : strata) {
    const auto ranks = doubled_ranks(stratum);
    const auto n = static_cast<double>(stratum.a.size());
    const auto m = static_cast<double>(stratum.b.size());
    const double mean = n + m + 1;  // of a doubled rank
    double squares = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto rank = static_cast<double>(ranks[i]);
      if (i >= stratum.a.size()) all.found += rank;
      squares += (rank - mean) * (rank - mean);
    }
    all.mean += m * mean;
    all.variance += n * m / ((n + m) * (n + m - 1)) * squares;  // of a sample without replacement
    all.values += ranks.size();
    all.largest = std::max(all.largest, ranks.size());
    all.ranks.push_back(ranks);
  }
  return all;
}

/// The largest count c with P(pairs in which b is greater <= c) <= risk, without ties; nothing if there is none. Values
/// shifted by a number that is none of the ratios have no ties.
std::optional<std::size_t> pairs_outside(std::span<const Stratum> strata, bool exact, double risk) {
  double mean = 0, variance = 0;
  Distribution pairs;
  for (const auto& stratum : strata) {
    const auto n = static_cast<double>(stratum.a.size());
    const auto m = static_cast<double>(stratum.b.size());
    mean += n * m / 2;
    variance += n * m * (n + m + 1) / 12;
    if (!exact) continue;
    std::vector<std::size_t> ranks(stratum.a.size() + stratum.b.size());
    std::iota(ranks.begin(), ranks.end(), std::size_t{1});
    Distribution one = sums_of(ranks, stratum.b.size());
    one.least = 0;  // Mann and Whitney's count is the rank sum less its least
    pairs = added(pairs, one);
  }
  if (!exact) {
    const double count = std::floor(mean + normal_quantile(risk) * std::sqrt(variance) - 0.5);
    return count < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(count));
  }
  std::optional<std::size_t> count;
  double p = 0;
  for (std::size_t i = 0; i < pairs.share.size(); ++i) {
    p += pairs.share[i];
    if (p > risk * (1 + kEqual)) break;
    count = i;
  }
  return count;
}

/// Shift and interval from every pair within a stratum.
void estimate(std::span<const Stratum> strata, double confidence, RankTest& test) {
  const auto step = [&](double a, double b) { return test.ratio ? b / a : b - a; };
  std::size_t pairs = 0;
  for (const auto& stratum : strata) pairs += stratum.a.size() * stratum.b.size();
  if (pairs > kMostPairs) {
    std::vector<double> of_medians;
    for (const auto& stratum : strata) of_medians.push_back(step(median(stratum.a), median(stratum.b)));
    test.shift = median(of_medians);
    return;
  }
  std::vector<double> steps;
  steps.reserve(pairs);
  for (const auto& stratum : strata) {
    for (const double a : stratum.a) {
      for (const double b : stratum.b) steps.push_back(step(a, b));
    }
  }
  std::ranges::sort(steps);
  test.shift = median(steps);
  const auto outside = pairs_outside(strata, test.exact, (1 - confidence) / 2);
  if (!outside || 2 * *outside + 1 >= steps.size()) return;
  test.interval = Interval{.low = steps[*outside], .high = steps[steps.size() - 1 - *outside], .level = confidence};
}

}  // namespace

RankTest rank_test(std::span<const Stratum> given, double confidence) {
  std::vector<Stratum> strata;
  RankTest test;
  for (const auto& stratum : given) {
    if (stratum.a.empty() || stratum.b.empty()) continue;
    const auto positive = [](double value) { return value > 0; };
    test.ratio = test.ratio && std::ranges::all_of(stratum.a, positive) && std::ranges::all_of(stratum.b, positive);
    strata.push_back(stratum);
  }
  if (strata.empty()) return test;
  const Summed sum = summed(strata);
  const double distance = std::abs(sum.found - sum.mean);
  test.exact = sum.values <= kMostExact && sum.largest <= kMostExactOfOne;
  if (test.exact) {
    Distribution all;
    for (std::size_t i = 0; i < strata.size(); ++i) all = added(all, sums_of(sum.ranks[i], strata[i].b.size()));
    const double least = static_cast<double>(all.least);
    const double most = static_cast<double>(all.least + all.share.size() - 1);
    test.p = distance == 0 ? 1 : beyond(all, sum.mean, distance);
    test.smallest_p = most == least ? 1 : beyond(all, sum.mean, std::max(most - sum.mean, sum.mean - least));
  } else {
    test.p = sum.variance > 0 ? std::min(1.0, 2 * normal_cdf(-distance / std::sqrt(sum.variance))) : 1;
    test.smallest_p = sum.variance > 0 ? 0 : 1;  // with so many values any level can be reached
  }
  estimate(strata, confidence, test);
  return test;
}

double tarone_threshold(std::span<const double> smallest, double alpha) {
  for (std::size_t k = 1; k < smallest.size(); ++k) {
    const double threshold = alpha / static_cast<double>(k);
    const auto able = std::ranges::count_if(smallest, [&](double p) { return p <= threshold * (1 + kEqual); });
    if (static_cast<std::size_t>(able) <= k) return threshold;
  }
  return smallest.empty() ? alpha : alpha / static_cast<double>(smallest.size());
}

}  // namespace assay::compare
