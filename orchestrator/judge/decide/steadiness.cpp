// steadiness: finds two states, trends and stalls in the samples of a cell (tests and sources in steadiness.h), and
// opens the outcome of a cell that is not steady (note_findings()).
#include "orchestrator/judge/decide/steadiness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "probes/core/scale.h"
#include "probes/core/small_samples.h"

namespace assay::judge {
namespace {

// Thresholds of the two states and of the trend are those whose false alarms docs/PERFORMANCE.md has the rates of.
constexpr std::size_t kFewestForStates = 10;
constexpr double kLeastApart = 0.01;  // of the larger mean
constexpr double kTrendProbability = 1e-4;
constexpr std::size_t kFewestForTrend = 6;
constexpr double kDriftProbability = 1e-3;

double least_share_left(std::size_t samples) {
  constexpr std::size_t kFew = 24, kMany = 60;
  if (samples < kFew) return 0.06;
  return samples < kMany ? 0.10 : 0.15;
}

/// The smallest number of `samples` that is significantly more than 1 in 100 of them.
std::size_t fewest_stalls(std::size_t samples, double probability) {
  constexpr double kTolerated = 0.01;
  std::size_t few = 0, many = samples + 1;  // of the first chance has as many, of the second it has not
  while (many - few > 1) {
    const std::size_t middle = few + (many - few) / 2;
    (binomial_at_least(samples, kTolerated, middle) < probability ? many : few) = middle;
  }
  return many;
}

/// Samples far from their median, which a median does not show.
void look_for_stalls(std::vector<double> samples, Steadiness& seen) {
  constexpr double kOfRates = 0.05, kOfTimes = 0.001;
  const double middle = median(samples);
  const auto beyond = [&](auto is_beyond) {
    return static_cast<std::size_t>(std::ranges::count_if(samples, is_beyond));
  };
  seen.samples = samples.size();
  seen.mean = seen.mean_of_most = moments(samples).mean;
  seen.below_half = beyond([&](double sample) { return sample < middle / 2; });
  seen.above_twice = beyond([&](double sample) { return sample > 2 * middle; });
  if (seen.below_half + seen.above_twice == 0) return;
  std::ranges::sort(samples);
  if (const std::size_t fewest = fewest_stalls(samples.size(), kOfRates); seen.below_half >= fewest)
    seen.stall = samples[fewest - 1];
  const std::size_t fewest = fewest_stalls(samples.size(), kOfTimes);
  if (seen.above_twice >= fewest) seen.late = samples[samples.size() - fewest];
  const std::size_t most = samples.size() - std::min(seen.above_twice, fewest - 1);
  seen.mean_of_most = moments(std::span(samples).first(most)).mean;
}

/// The best split of samples into two groups, and the squares before and after it.
struct Split {
  double before = 0, after = 0;
  TwoStates means;
};

Split best_split(std::vector<double> samples) {
  std::ranges::sort(samples);
  const std::size_t n = samples.size();
  const std::size_t least = std::max<std::size_t>(2, (n + 4) / 5);
  const Moments all = moments(samples);
  Split split{.before = all.squares, .after = all.squares, .means = {.low = all.mean, .high = all.mean}};
  double sum = 0;  // of the deviations of the first i
  for (std::size_t i = 1; i < n; ++i) {
    sum += samples[i - 1] - all.mean;
    if (i < least || n - i < least) continue;
    const auto low = static_cast<double>(i), high = static_cast<double>(n - i);
    const double after = all.squares - sum * sum / low - sum * sum / high;
    if (after >= split.after) continue;
    split.after = std::max(after, 0.0);
    split.means = {.low = all.mean + sum / low, .high = all.mean - sum / high};
  }
  return split;
}

std::optional<TwoStates> two_states(std::span<const Measurement* const> attempts) {
  double before = 0, after = 0;
  std::size_t samples = 0;
  Split widest;
  for (const Measurement* attempt : attempts) {
    if (attempt->samples.size() < kFewestForStates) return std::nullopt;
    const Split split = best_split(attempt->samples);
    before += split.before;
    after += split.after;
    samples += attempt->samples.size();
    if (split.before > widest.before) widest = split;
  }
  if (!(before > 0) || after >= least_share_left(samples) * before) return std::nullopt;
  const double larger = std::max(std::abs(widest.means.low), std::abs(widest.means.high));
  if (widest.means.high - widest.means.low < kLeastApart * larger) return std::nullopt;
  return widest.means;
}

/// Counts pairs in which the later sample is smaller, by merge sort; sorts `values`.
double inversions(std::vector<double>& values, std::vector<double>& spare, std::size_t begin, std::size_t end) {
  if (end - begin < 2) return 0;
  const std::size_t middle = begin + (end - begin) / 2;
  double count = inversions(values, spare, begin, middle) + inversions(values, spare, middle, end);
  std::size_t left = begin, right = middle;
  for (std::size_t i = begin; i < end; ++i) {
    const bool take_right = left == middle || (right < end && values[right] < values[left]);
    if (take_right) count += static_cast<double>(middle - left);
    spare[i] = values[take_right ? right++ : left++];
  }
  std::copy(spare.begin() + static_cast<std::ptrdiff_t>(begin), spare.begin() + static_cast<std::ptrdiff_t>(end),
            values.begin() + static_cast<std::ptrdiff_t>(begin));
  return count;
}

/// Kendall's S and its variance, with ties (Kendall 1975, ch. 4).
struct Kendall {
  double s = 0, variance = 0;
};

Kendall kendall_of(std::vector<double> samples) {
  const auto n = static_cast<double>(samples.size());
  std::vector<double> spare(samples.size());
  const double falling = inversions(samples, spare, 0, samples.size());
  double tied_pairs = 0;
  double variance = n * (n - 1) * (2 * n + 5);
  for (std::size_t i = 0; i < samples.size();) {
    std::size_t next = i + 1;
    while (next < samples.size() && samples[next] == samples[i]) ++next;
    const auto tied = static_cast<double>(next - i);
    tied_pairs += tied * (tied - 1) / 2;
    variance -= tied * (tied - 1) * (2 * tied + 5);
    i = next;
  }
  return {.s = n * (n - 1) / 2 - tied_pairs - 2 * falling, .variance = variance / 18};
}

/// From the median of the first third to that of the last, whose middles are two thirds of the attempt apart.
double change_over(std::span<const double> samples) {
  const std::size_t third = samples.size() / 3;
  const auto n = static_cast<double>(samples.size());
  return (median(samples.last(third)) - median(samples.first(third))) * n / (n - static_cast<double>(third));
}

/// Residuals of a straight line through the samples: the sums of their squares and of the products of neighbours.
struct Residuals {
  double squares = 0, products = 0;
};

Residuals residuals_of(std::span<const double> samples) {
  const auto n = static_cast<double>(samples.size());
  const double mean = moments(samples).mean;
  const double middle = (n - 1) / 2;
  double slope = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) slope += (static_cast<double>(i) - middle) * (samples[i] - mean);
  slope *= 12 / (n * (n * n - 1));
  Residuals left;
  double before = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double residual = samples[i] - mean - slope * (static_cast<double>(i) - middle);
    left.squares += residual * residual;
    left.products += i > 0 ? before * residual : 0;
    before = residual;
  }
  return left;
}

/// By how much the deviation of S is larger where samples follow each other. The mean of the lag-1 correlation of what
/// a line leaves of n samples is about (1 - 4 / n) r - 2 / n.
double widening(const Residuals& left, double samples) {
  constexpr double kFewest = 5, kMost = 0.97;
  if (!(left.squares > 0) || samples < kFewest) return 1;
  const double r = std::clamp((samples * left.products / left.squares + 2) / (samples - 4), 0.0, kMost);
  return std::sqrt((1 + r) / (1 - r));
}

/// S over some attempts, and the terms of its probability.
struct Trend {
  Kendall kendall;
  Residuals left;
  double change = 0, samples = 0, attempts = 0;

  void add(std::span<const double> taken) {
    const Kendall one = kendall_of({taken.begin(), taken.end()});
    kendall.s += one.s;
    kendall.variance += one.variance;
    const Residuals mine = residuals_of(taken);
    left.squares += mine.squares;
    left.products += mine.products;
    change += change_over(taken);
    samples += static_cast<double>(taken.size());
    ++attempts;
  }

  /// S in standard deviations, towards 0 by its step of one.
  [[nodiscard]] double z() const {
    if (!(kendall.variance > 0)) return 0;
    return std::copysign(std::max(std::abs(kendall.s) - 1, 0.0), kendall.s) / std::sqrt(kendall.variance);
  }

  [[nodiscard]] double widened_z() const { return attempts > 0 ? z() / widening(left, samples / attempts) : 0; }

  [[nodiscard]] bool changes() const { return 2 * normal_cdf(-std::abs(z())) < kTrendProbability; }
  [[nodiscard]] bool drifts() const { return 2 * normal_cdf(-std::abs(widened_z())) < kDriftProbability; }
};

void look_for_trend(std::span<const Measurement* const> attempts, const Recurrence& second, Steadiness& seen) {
  Trend all, first, later;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const auto& samples = attempts[i]->samples;
    if (samples.size() < kFewestForTrend) return;
    all.add(samples);
    (i < second.begin ? first : later).add(samples);
  }
  if (!(all.kendall.variance > 0)) return;
  seen.length = all.samples / all.attempts;
  if (all.changes()) seen.change = all.change / all.attempts;
  if (all.drifts()) seen.drift = all.change / all.attempts;
  if (later.attempts == 0) return;
  const double same_way = std::copysign(1.0, all.kendall.s) * later.widened_z();
  seen.recurs = normal_cdf(-same_way) < recurrence_probability(second.figures, first.changes() || first.drifts());
}

/// Findings of one decided result.
class Findings {
 public:
  Findings(const Steadiness& seen, const AttemptsEstimate& estimate, Result& result)
      : seen_(seen), estimate_(estimate), result_(result) {}

  void states() {
    if (!seen_.states) return;
    const auto& [low, high] = *seen_.states;
    const double pair[] = {low, high};
    const Scale scale = scale_for(pair, result_.unit);
    add(FindingKind::two_states, is_between(low, high),
        fmt::format("the samples are of two states, around {} and {}", scale.text(low), scale.text(high)));
  }

  void trend() {
    constexpr double kLengths = 2.5;  // from the middle of an attempt to twice its length after its end
    constexpr double kAhead = 200;    // samples after its end: faster decays are seen, slower ones are not
    const double far = std::max(kLengths, 0.5 + kAhead / std::max(seen_.length, 1.0));
    const bool soon = seen_.change && reaches(kLengths * *seen_.change);
    const bool later = seen_.drift && reaches(far * *seen_.drift);
    if (!seen_.change && !later) return;
    const double change = seen_.change ? *seen_.change : *seen_.drift;
    add(FindingKind::trend, (soon || later) && seen_.recurs,
        fmt::format("the samples have a trend, {} by {} within an attempt{}", change > 0 ? "up" : "down",
                    for_people(std::abs(change), result_.unit),
                    seen_.recurs ? "" : ", which those of the second stage alone do not show"));
  }

  void widths() {
    constexpr double kFollowing = 0.7;
    if (!estimate_.interval) return;
    const double widened = std::sqrt((1 + estimate_.correlation) / (1 - estimate_.correlation));
    const bool wide = widened * (estimate_.interval->high - estimate_.interval->low) / 2 > distance() / 2;
    if (estimate_.correlation > kFollowing) {
      add(FindingKind::serial_correlation, wide,
          fmt::format("each sample follows the one before it (correlation {:.2f})", estimate_.correlation));
    }
    if (seen_.sample_cap)
      add(FindingKind::sample_cap, wide, "sampling ended at its most samples, before the median was known");
    if (seen_.time_cap)
      add(FindingKind::time_cap, wide, "sampling ended at its time limit, before the median was known");
  }

  void between_runs() {
    add(FindingKind::unsteady_between_runs, false, "its attempts lie further apart than those of the other subjects");
  }

  void stalls() {
    constexpr double kMost = 0.02, kWorse = 1.25;  // a stall may be a quarter worse another time
    const bool slow_mean = result_.limit_low && seen_.mean < (1 - kMost) * *result_.limit_low;
    const bool long_mean = result_.limit_high && seen_.mean_of_most > (1 + kMost) * *result_.limit_high;
    const bool stalled = result_.limit_low && seen_.stall;
    const bool late = result_.limit_high && seen_.late;
    const bool reaches =
        (stalled && *seen_.stall < kWorse * *result_.limit_low) || (late && kWorse * *seen_.late > *result_.limit_high);
    const bool of_mean = (slow_mean || long_mean) && !reaches;
    if (!of_mean && !stalled && !late) return;
    add_if_pass(FindingKind::stalled, of_mean || reaches,
                of_mean
                    ? fmt::format("the mean of {} samples is {}, beyond the limit by more than 2 %",
                                  slow_mean ? "all" : "nearly all",
                                  for_people(slow_mean ? seen_.mean : seen_.mean_of_most, result_.unit))
                    : fmt::format("{} of {} samples are {} the median", stalled ? seen_.below_half : seen_.above_twice,
                                  seen_.samples, stalled ? "under half of" : "over twice"));
  }

 private:
  /// Whether a limit is between them, so that one is on its good side and the other is not.
  [[nodiscard]] bool is_between(double low, double high) const {
    return (result_.limit_low && low < *result_.limit_low && *result_.limit_low <= high) ||
           (result_.limit_high && low <= *result_.limit_high && *result_.limit_high < high);
  }

  /// Whether a limit is between the value and the value after the change.
  [[nodiscard]] bool reaches(double change) const {
    const double later = estimate_.value + change;
    return is_between(std::min(estimate_.value, later), std::max(estimate_.value, later));
  }

  /// To the nearer limit.
  [[nodiscard]] double distance() const {
    double nearest = std::numeric_limits<double>::infinity();
    for (const auto& limit : {result_.limit_low, result_.limit_high}) {
      if (limit) nearest = std::min(nearest, std::abs(estimate_.value - *limit));
    }
    return nearest;
  }

  void add(FindingKind kind, bool reaches_across, std::string words) {
    const bool decided = result_.outcome == Outcome::pass || result_.outcome == Outcome::fail;
    const bool opens = reaches_across && decided;
    if (opens) {
      result_.outcome = Outcome::inconclusive;
      result_.reason = fmt::format("Not steady, and the limit is within reach: {}.", words);
    }
    result_.findings.push_back({.kind = kind, .opens = opens, .words = std::move(words)});
  }

  void add_if_pass(FindingKind kind, bool reaches_limit, std::string words) {
    const bool opens = reaches_limit && result_.outcome == Outcome::pass;
    if (opens) {
      result_.outcome = Outcome::inconclusive;
      result_.reason = fmt::format("Not decided: {}.", words);
    }
    result_.findings.push_back({.kind = kind, .opens = opens, .words = std::move(words)});
  }

  const Steadiness& seen_;
  const AttemptsEstimate& estimate_;
  Result& result_;
};

}  // namespace

double recurrence_probability(double figures, bool found) {
  constexpr double kOfRun = 0.05;
  return kOfRun / std::max(1.0, (found ? kDriftProbability : 1) * figures);
}

Steadiness steadiness_of(std::span<const Measurement* const> attempts, const Recurrence& second) {
  Steadiness seen{.states = two_states(attempts)};
  look_for_trend(attempts, second, seen);
  std::vector<double> all;
  for (const Measurement* attempt : attempts) {
    seen.sample_cap = seen.sample_cap || attempt->stopped == "sample_cap";
    seen.time_cap = seen.time_cap || attempt->stopped == "time_cap";
    all.insert(all.end(), attempt->samples.begin(), attempt->samples.end());
  }
  look_for_stalls(std::move(all), seen);
  return seen;
}

void note_findings(const Steadiness& seen, const AttemptsEstimate& estimate, bool unsteady_between_runs,
                   plan::Statistic statistic, Result& result) {
  if (estimate.extreme) return;
  Findings findings(seen, estimate, result);
  if (statistic == plan::Statistic::median) findings.stalls();
  findings.states();
  findings.trend();
  findings.widths();
  if (unsteady_between_runs) findings.between_runs();
}

}  // namespace assay::judge
