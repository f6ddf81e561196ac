// level: how the figures of one metric of class level are judged in one night; state is in level.h.
//
// All arithmetic is on logarithms, signed so that smaller is worse. For every cohort, that is units that are alike:
//   shift     the median over the cohort of figure - own mean (`now.mean`), from 4 units on: what the night did to all
//             of them. A unit is compared with its own level: adjusted = figure - shift. A unit that is new among
//             learned ones is compared with theirs in its first five visits.
//   residual  adjusted - own mean. The mean is of the unit's own earlier visits and grows with each of them
//             ("self-starting"): there is no phase in which a baseline is measured, only `warmup` visits.
//   variance  the unit's own one pooled with the cohort's median one, which counts as `nu0` visits; doubled for 5
//             visits after a change of cohort. T = residual / sqrt(variance (1 + 1 / n)). Where residuals of one night
//             follow those of the night before (rho), the part that the last one predicts is taken out first. rho is
//             the median over the series of sum(e_t e_t-1) / sum(e_t-1^2), on the safe side (serial_correlation()).
//   score     z: by rank among the night's peers from 100 of them on, else by Student's t and cut at `clip`
//             (charts.h). That of a healthy unit is standard normal: by rank for any noise, by t if it is
//             Gaussian. A fall is above 0.
//   charts    two one-sided CUSUMs, C = max(0, C + z - slack), with slacks 0.5 and 1 for shifts of 1 and of 2
//             deviations; their limits follow from the budget of false flags (limit_for()). They begin with the sixth
//             visit; a flag before `warmup` visits is watched only, and rho is 0.3 at least until then.
// Rules in their order (level_flags.cpp): a new unit below its cohort (compare_with_fleet()); a constant series that
// fell; the large chart; the small chart; too many bad scores among the last visits; a cliff, which is a figure below
// all earlier ones that fresh tests repeat. Without a flag the visit joins the reference, its residual cut to `winsor`
// deviations, so that one outlier does not move it. A flag holds the reference, that of a chart as it was when the
// chart last left 0 (hold()): later visits are compared with it and do not change it, until release().
//
// Example: deviation 0.01, 12 visits so far, nu0 = 20. Tonight the median unit of the cohort is 0.03 below its own
// mean, and this one is 0.05 below. shift = -0.03, residual = -0.02, T = -0.02 / (0.01 x 1.04) = -1.92; Student's t of
// 31 degrees of freedom gives z = 1.85. The charts grow by 1.35 and 0.85.
// Measured rates of false flags and nights to a flag: docs/PERFORMANCE.md, "The detector of nightly sweeps".
#include "orchestrator/drift/level_internal.h"

#include <algorithm>
#include <cmath>

#include "orchestrator/drift/charts.h"
#include "probes/core/portable_math.h"

namespace assay::drift {
namespace {

constexpr std::size_t kPeersForRanks = 100;     // below, ranks are too coarse
constexpr std::size_t kPeersForRankTail = 370;  // below, no rank scores 3
constexpr double kLeastVariance = 1e-18;        // rounding of logarithms: such a series is constant
constexpr double kPairsForCorrelation = 200;    // a standard error of 0.07
constexpr double kVisitsForPair = 8;            // before, the error of its mean lasts from night to night
constexpr double kLearningCorrelation = 0.3;    // at least, until the warm-up is over: it is hardly known
constexpr std::uint32_t kInflatedVisits = 5;
constexpr double kInflation = 2;  // of the variance, after a change of cohort
constexpr std::size_t kKeptRanks = 8;

void remember(SeriesState& state, double y) {
  if (state.visits == 0) state.anchor = y;
  state.recent[state.visits % kRecent] = static_cast<float>(y - state.anchor);
  ++state.visits;
}

constexpr double kVisitsForWinsor = 3;

/// Adds a visit to all of them; values further than `most` from the reference are clipped to that distance.
void pool(SeriesState& state, double y, double most) {
  const double mean = state.now.mean;
  state.all.add(most > 0 && state.now.n >= kVisitsForWinsor ? std::clamp(y, mean - most, mean + most) : y);
}

}  // namespace

void Reference::add(double y) {
  n += 1;
  const double step = y - mean;
  mean += step / n;
  squares += step * (y - mean);
}

LevelMetric::LevelMetric(const Policy& policy, bool lower_is_better, double min_effect)
    : policy_(policy), sign_(lower_is_better ? -1 : 1), min_effect_(-portable_log(1 - min_effect)) {}

double LevelMetric::figure(double value) const {
  return value > 0 && std::isfinite(value) ? sign_ * portable_log(value) : std::numeric_limits<double>::quiet_NaN();
}

double serial_correlation(const Serial& own, const Serial& usual) {
  constexpr double kMost = 0.9;
  if (usual.pairs < kPairsForCorrelation) return 0;
  const double pairs = own.pairs + kPairsForCorrelation;
  const double rho = (own.pairs * own.rho + kPairsForCorrelation * usual.rho) / pairs;
  return std::clamp(rho + 1 / std::sqrt(pairs), 0.0, kMost);
}

void LevelMetric::find_serial() {
  std::vector<double> ratios;
  double pairs = 0;
  for (const SeriesState& state : states) {
    if (!(state.squares > 0)) continue;
    ratios.push_back(static_cast<double>(state.products) / static_cast<double>(state.squares));
    pairs += static_cast<double>(state.squares);
  }
  if (!ratios.empty()) serial = {.rho = median_of(ratios), .pairs = pairs};
}

/// The correlation of residuals that are so many nights apart; 0 where nothing is left of it.
static double after_nights(double rho, Day nights) {
  constexpr Day kMost = 8;
  double left = nights > kMost ? 0 : rho;
  for (Day i = 1; i < std::min(nights, kMost); ++i) left *= rho;
  return left;
}

/// Degrees of freedom of the deviations of `visits` from their mean, which is known the less the more they follow each
/// other.
static double freedom(double visits, double rho) { return std::max(visits - (1 + rho) / (1 - rho), (visits - 1) / 2); }

double LevelMetric::variance(const SeriesState& state, const CohortState& cohort, double rho) const {
  const double degrees = cohort.nu0 + freedom(state.now.n, rho);
  return degrees > 0 ? (cohort.nu0 * cohort.variance + state.now.squares) / degrees : 0;
}

/// The median of a sum of so many squares of standard normal deviations (Wilson and Hilferty 1931).
static double median_of_squares(double degrees) {
  const double root = 1 - 2 / (9 * degrees);
  return degrees * root * root * root;
}

std::vector<std::vector<LevelMetric::Seen>> LevelMetric::seen_by_cohort(std::span<const LevelInput> inputs,
                                                                        LevelOutput& out) {
  std::vector<std::vector<Seen>> all;
  std::map<std::uint32_t, std::size_t> place;
  std::uint32_t last = kNone;
  std::size_t at = 0;
  for (const auto& input : inputs) {
    if (!(input.value > 0) || !std::isfinite(input.value)) {
      out.refused.emplace_back(input.slot, std::isfinite(input.value) ? "a level must be above 0" : "not a number");
      continue;
    }
    if (input.cohort != last || all.empty()) {
      last = input.cohort;
      at = place.emplace(input.cohort, all.size()).first->second;
      if (at == all.size()) all.emplace_back();
    }
    SeriesState& state = states[input.slot];
    if (state.cohort != kNone && state.cohort != input.cohort) state.inflated = kInflatedVisits;
    all[at].push_back({.slot = input.slot,
                       .cohort = input.cohort,
                       .figure = figure(input.value) - input.partner,
                       .no_cliff = input.no_cliff});
    if (input.accepted > 0) out.accepted[input.cohort].push_back(all[at].back().figure - figure(input.accepted));
  }
  return all;
}

void LevelMetric::find_shift(std::span<Seen> seen, std::uint32_t cohort) {
  std::vector<double> values;
  values.reserve(seen.size());
  for (const Seen& one : seen) {
    const SeriesState& state = states[one.slot];
    if (state.now.n > 0 && state.held == 0) values.push_back(one.figure - state.now.mean);
  }
  const bool known = cohorts.contains(cohort);
  CohortState& kept = cohorts[cohort];
  if (values.size() >= kPeersForShift) {
    kept.shift = median_of(values);
  } else if (!known) {
    const auto before = cohorts.find(states[seen.front().slot].cohort);
    if (!values.empty() && before != cohorts.end()) {
      kept = before->second;
    } else if (seen.size() >= kPeersForShift) {
      values.clear();
      for (const Seen& one : seen) values.push_back(one.figure);
      kept.shift = median_of(values);
    }
  }
  for (Seen& one : seen) {
    SeriesState& state = states[one.slot];
    one.adjusted = one.figure - kept.shift;
    one.residual = one.adjusted - state.now.mean;
    one.learning = state.now.n < policy_.warmup;
    one.judged = state.held == 0 && state.now.n >= std::min(policy_.warmup, kVisitsForCharts);
    state.cohort = cohort;
  }
}

void LevelMetric::find_variance(std::span<Seen> seen, std::uint32_t cohort, double rho) {
  constexpr std::size_t kFew = 5;
  constexpr double kFewNu0 = 8;
  std::vector<double> values;
  const auto collect = [&](double least) {
    for (const Seen& one : seen) {
      const Reference& reference = states[one.slot].now;
      if (reference.n >= least) values.push_back(reference.squares / median_of_squares(freedom(reference.n, rho)));
    }
  };
  collect(policy_.warmup);
  if (values.empty()) collect(3);
  CohortState& kept = cohorts[cohort];
  if (!values.empty()) kept.variance = median_of(values);
  kept.nu0 = values.size() <= 1 ? 0 : values.size() < kFew ? std::min(policy_.nu0, kFewNu0) : policy_.nu0;
}

void LevelMetric::rank(std::span<Seen> seen) {
  std::vector<std::pair<double, Seen*>> order;
  order.reserve(seen.size());
  for (Seen& one : seen) {
    if (one.judged && !one.constant) order.emplace_back(one.standardised, &one);
  }
  std::ranges::sort(order, [](const auto& a, const auto& b) { return a.first < b.first; });
  auto found = ranks_.find(order.size());
  if (found == ranks_.end()) {
    if (ranks_.size() >= kKeptRanks) ranks_.clear();
    found = ranks_.emplace(order.size(), rank_scores(order.size())).first;
  }
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    for (end = begin + 1; end < order.size() && order[end].first == order[begin].first;) ++end;
    const double score = (found->second[begin] + found->second[end - 1]) / 2;  // equal residuals have equal scores
    for (std::size_t i = begin; i < end; ++i) order[i].second->score = score;
  }
}

void LevelMetric::find_scores(std::span<Seen> seen, const Tonight& tonight, std::uint32_t cohort) {
  const CohortState& kept = cohorts.at(cohort);
  std::size_t peers = 0;
  for (Seen& one : seen) {
    SeriesState& state = states[one.slot];
    one.variance = variance(state, kept, tonight.rho) * (state.inflated > 0 ? kInflation : 1);
    one.constant = !(one.variance > kLeastVariance);
    double e = one.residual;
    const double known = one.learning ? std::max(tonight.rho, kLearningCorrelation) : tonight.rho;
    if (const double rho = after_nights(known, tonight.day - state.last_day); rho > 0)
      e = (e - rho * state.last_residual) / std::sqrt(1 - rho * rho);
    if (!one.constant) one.standardised = e / std::sqrt(one.variance * (1 + 1 / std::max(state.now.n, 1.0)));
    if (one.judged && !one.constant) ++peers;
  }
  if (peers >= kPeersForRanks) rank(seen);
  for (Seen& one : seen) {
    one.peers = peers;
    if (one.constant) continue;
    const double degrees = kept.nu0 + states[one.slot].now.n - 1;
    constexpr double kWorthScoring = 2;
    const bool ranked = peers >= kPeersForRanks && one.judged;
    double score = one.score;
    if (degrees > 0 && (!ranked || (peers < kPeersForRankTail && one.standardised < -kWorthScoring)))
      score = student_score(one.standardised, degrees);
    if (!ranked) one.score = std::clamp(score, -policy_.clip, policy_.clip);
    one.bad = score >= policy_.intermittent.z;
  }
}

void LevelMetric::move_charts(SeriesState& state, double z, Day day) {
  const auto move = [&](double& c, double slack, Day& onset, std::uint32_t& since, Reference& at) {
    if (c == 0) {
      onset = day;
      since = 0;
      at = state.now;
    }
    c = std::max(0.0, c + z - slack);
    ++since;
  };
  move(state.c_small, kSmallSlack, state.onset_small, state.since_small, state.at_small);
  move(state.c_large, kLargeSlack, state.onset_large, state.since_large, state.at_large);
}

void LevelMetric::learn(const Seen& one, Day day) {
  SeriesState& state = states[one.slot];
  double e = one.residual;
  if (!one.constant && state.now.n >= kVisitsForWinsor) {
    const double most = policy_.winsor * std::sqrt(one.variance);
    e = std::clamp(e, -most, most);
  }
  // Without correlation the product is 0 on average: a residual against the mean of all visits before it does not
  // depend on the one before.
  if (state.now.n >= kVisitsForPair && !one.constant && state.last_day == day - 1) {
    state.products += static_cast<float>(e * state.last_residual / one.variance);
    state.squares += static_cast<float>(state.last_residual * state.last_residual / one.variance);
  }
  state.last_residual = state.now.n > 0 ? e : 0;
  state.last_day = day;
  state.least = std::min(state.least, one.adjusted);
  if (state.inflated > 0) --state.inflated;
  state.now.add(state.now.mean + (state.now.n > 0 ? e : one.adjusted));
}

void LevelMetric::take(Seen& one, const Tonight& tonight, LevelOutput& out) {
  SeriesState& state = states[one.slot];
  remember(state, one.adjusted);
  pool(state, one.adjusted, policy_.winsor * std::sqrt(one.variance));
  if (state.held > 0) {
    follow(one, tonight.day, out);
    return;
  }
  if (one.fleet) {
    state.now = state.all = *one.fleet;
    out.raised.push_back(flag_of(one, tonight, Rule::below_fleet));
    state.last_day = tonight.day;
    return;
  }
  if (one.judged) {
    if (!one.learning) out.levels[one.cohort].push_back(one.figure - state.now.mean);
    if (!one.constant) {
      state.bad = state.bad << 1 | (one.bad && !one.learning ? 1U : 0U);
      move_charts(state, one.score, tonight.day);
    }
    if (raise(one, tonight, out)) {
      state.last_day = tonight.day;
      return;
    }
  }
  learn(one, tonight.day);
}

LevelOutput LevelMetric::night(Day day, std::span<const LevelInput> inputs, std::span<LevelRetest> retests,
                               const LevelLimits& limits) {
  LevelOutput out;
  const Tonight tonight{
      .day = day, .limits = limits, .rho = serial_correlation(serial, limits.usual), .retests = retests};
  auto all = seen_by_cohort(inputs, out);
  for (auto& seen : all) {
    const std::uint32_t cohort = seen.front().cohort;
    find_shift(seen, cohort);
    find_variance(seen, cohort, tonight.rho);
    find_scores(seen, tonight, cohort);
    compare_with_fleet(seen, cohort);
  }
  for (auto& retest : retests) {
    const auto found = cohorts.find(retest.cohort);
    const auto own = cohorts.find(states[retest.slot].cohort);
    const double shift = found != cohorts.end() ? found->second.shift : own != cohorts.end() ? own->second.shift : 0;
    retest.y = figure(retest.value) - retest.partner - shift;
  }
  // Sums over series are taken in the order of slots, independent of the cohorts' names.
  std::vector<Seen*> order;
  for (auto& seen : all) {
    for (Seen& one : seen) order.push_back(&one);
  }
  if (all.size() > 1) std::ranges::sort(order, {}, &Seen::slot);
  for (Seen* one : order) take(*one, tonight, out);
  find_serial();
  return out;
}

}  // namespace assay::drift
