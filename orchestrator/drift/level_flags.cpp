// level_flags: raises the flags of a night, and follows, holds and releases the reference of a flagged series; the
// rules are listed in level.cpp.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "orchestrator/drift/charts.h"
#include "orchestrator/drift/level_internal.h"

namespace assay::drift {
namespace {

constexpr double kMedianFactor = 1.2533;  // standard error of a median over that of a mean
constexpr double kTwoSided95 = 1.96;
constexpr double kVisitsForLevel = 3;      // before a unit's part of a figure of two is known
constexpr std::size_t kUnitsForLevel = 4;  // below, a unit looks like its partner

/// The last `visits` figures of `state`, oldest first.
std::vector<double> recent_of(const SeriesState& state, std::size_t visits) {
  const std::size_t count = std::min<std::size_t>({visits, kRecent, state.visits});
  std::vector<double> values;
  for (std::size_t i = count; i > 0; --i)
    values.push_back(state.anchor + static_cast<double>(state.recent[(state.visits - i) % kRecent]));
  return values;
}

constexpr double kUnitsForFleet = 8;    // below, their spread is hardly known
constexpr double kScoreBelowFleet = 4;  // of 30,000 healthy new units one is as low

}  // namespace

// A new part that is slow from its first night has no past to fall from. Its mean so far is one more of the means of
// the units that are learned, with the noise of its few visits on top. A cohort of two kinds has a wide spread, and no
// level within it is a fault.
void LevelMetric::compare_with_fleet(std::span<Seen> seen, std::uint32_t cohort) {
  const auto is_new = [&](const Seen& one) {
    const SeriesState& state = states[one.slot];
    return state.held == 0 && state.accepted == 0 && state.now.n < kVisitsForCharts;
  };
  if (std::ranges::none_of(seen, is_new)) return;
  Reference level;
  double lowest = std::numeric_limits<double>::infinity();
  for (const SeriesState& state : states) {
    if (state.cohort != cohort || state.held > 0 || state.now.n < policy_.warmup) continue;
    level.add(state.now.mean);
    lowest = std::min(lowest, state.now.mean);
  }
  if (level.n < kUnitsForFleet) return;
  const double spread = level.squares / (level.n - 1) * (1 + 1 / level.n);
  for (Seen& one : seen) {
    if (!is_new(one)) continue;
    const Reference& own = states[one.slot].now;
    const double mean = own.mean + (one.adjusted - own.mean) / (own.n + 1), below = mean - level.mean;
    const double t = below / std::sqrt(std::max(spread + one.variance / (own.n + 1), 1e-18));
    const double score = student_score(t, level.n - 1);
    if (mean >= lowest || below > -min_effect_ || score < kScoreBelowFleet) continue;
    one.fleet = level;
    one.standardised = t;
    one.score = score;
    one.peers = static_cast<std::size_t>(level.n);
    one.learning = false;
  }
}

void LevelMetric::follow(Seen& one, Day day, LevelOutput& out) {
  SeriesState& state = states[one.slot];
  move_charts(state, one.score, day);
  ++state.held;
  auto values = recent_of(state, state.held);
  out.followed.push_back({.slot = one.slot,
                          .y = one.adjusted,
                          .effect = median_of(values) - state.now.mean,
                          .charts_clear = state.c_small == 0 && state.c_large == 0});
  state.last_day = day;
  state.last_residual = 0;
}

Raised LevelMetric::flag_of(const Seen& one, const Tonight& tonight, Rule rule) const {
  const SeriesState& state = states[one.slot];
  Raised flag{.slot = one.slot, .rule = rule, .onset = tonight.day, .learning = one.learning};
  const Reference* reference = &state.now;
  std::vector<double> values = {one.adjusted};
  if (rule == Rule::small_shift || rule == Rule::large_shift) {
    const bool small = rule == Rule::small_shift;
    reference = small ? &state.at_small : &state.at_large;
    flag.onset = small ? state.onset_small : state.onset_large;
    values = recent_of(state, small ? state.since_small : state.since_large);
    flag.numbers.C = small ? state.c_small : state.c_large;
    flag.numbers.h = small ? tonight.limits.h_small : tonight.limits.h_large;
  } else if (rule == Rule::intermittent) {
    constexpr double kLow = 2;
    values = recent_of(state, static_cast<std::size_t>(policy_.intermittent.of));
    std::erase_if(values, [&](double y) { return y - reference->mean > -kLow * std::sqrt(one.variance); });
    if (values.empty()) values = {one.adjusted};
    flag.numbers.C = static_cast<double>(values.size());
  }
  const auto count = static_cast<double>(values.size());
  const double s = std::sqrt(std::max(one.variance, 0.0));
  flag.effect = median_of(values) - reference->mean;
  const double half = kTwoSided95 * s * std::sqrt(kMedianFactor * kMedianFactor / count + 1 / reference->n);
  flag.low = flag.effect - half;
  flag.high = flag.effect + half;
  flag.numbers = {.x = one.adjusted,
                  .shift = cohorts.at(one.cohort).shift,
                  .m = state.now.mean,
                  .s = s,
                  .n = state.now.n,
                  .T = one.standardised,
                  .z = one.score,
                  .C = flag.numbers.C,
                  .h = flag.numbers.h,
                  .rho = tonight.rho,
                  .peers = one.peers};
  return flag;
}

bool LevelMetric::raise(const Seen& one, const Tonight& tonight, LevelOutput& out) {
  const SeriesState& state = states[one.slot];
  std::optional<Rule> rule;
  const std::uint32_t window = policy_.intermittent.of >= 32 ? ~0U : (1U << policy_.intermittent.of) - 1;
  const int bad = std::popcount(state.bad & window);
  if (one.constant) {
    if (!one.learning && one.residual < -std::max(min_effect_, 1e-9)) rule = Rule::state;
  } else if (state.c_large > tonight.limits.h_large) {
    rule = Rule::large_shift;
  } else if (state.c_small > tonight.limits.h_small) {
    rule = Rule::small_shift;
  } else if (one.bad && bad >= policy_.intermittent.m) {
    rule = Rule::intermittent;
  }
  if (rule) {
    Raised flag = flag_of(one, tonight, *rule);
    // Charts see an intermittent fall only as a shift too small to matter: it waits for the intermittent rule.
    constexpr int kSeveral = 2;
    const bool shift = *rule == Rule::small_shift || *rule == Rule::large_shift;
    if (!shift || bad < kSeveral || flag.effect <= -min_effect_) {
      out.raised.push_back(flag);
      return true;
    }
  }
  const bool cliff = one.adjusted < state.least && one.standardised < 0 && state.now.n >= tonight.limits.cliff_history;
  if (!cliff || one.no_cliff || one.constant || one.learning) return false;
  // The part of a deviation that lasts from tonight's visit to its tests is no news: without it a test of a healthy
  // unit is as any visit.
  const double rest = std::sqrt(1 - tonight.rho * tonight.rho);
  const auto below = std::ranges::equal_range(tonight.retests, one.slot, {}, &LevelRetest::slot);
  const bool all = std::ranges::all_of(below, [&](const LevelRetest& retest) {
    return (retest.y - state.now.mean - tonight.rho * one.residual) / rest < state.least - state.now.mean;
  });
  if (all && std::ssize(below) >= policy_.retests.k) {
    out.raised.push_back(flag_of(one, tonight, Rule::cliff));
    return true;
  }
  if (all) out.cliffs.push_back({.slot = one.slot, .T = one.standardised, .effect = one.residual});
  return false;
}

std::optional<double> LevelMetric::typical() const {
  std::vector<double> means;
  for (const SeriesState& state : states) {
    if (state.now.n >= kVisitsForLevel) means.push_back(state.now.mean);
  }
  if (means.size() < kUnitsForLevel) return std::nullopt;
  return median_of(means);
}

double LevelMetric::excess(std::uint32_t slot, std::optional<double> typical) const {
  const SeriesState& state = states[slot];
  double excess = typical && state.now.n >= kVisitsForLevel ? state.now.mean - *typical : 0;
  if (state.held > 0) {
    auto values = recent_of(state, state.held);
    excess += std::min(0.0, median_of(values) - state.now.mean);
  }
  return excess;
}

void LevelMetric::hold(std::uint32_t slot, Rule rule) {
  SeriesState& state = states[slot];
  if (rule == Rule::small_shift) state.now = state.at_small;
  if (rule == Rule::large_shift) state.now = state.at_large;
  const std::uint32_t since = rule == Rule::small_shift   ? state.since_small
                              : rule == Rule::large_shift ? state.since_large
                                                          : 1;
  state.held = std::max(since, 1U);
}

void LevelMetric::release(std::uint32_t slot, bool repaired) {
  SeriesState& state = states[slot];
  if (repaired) state.all = state.now;
  state.held = 0;
  state.c_small = state.c_large = 0;
  state.bad = 0;
  state.last_residual = 0;
}

}  // namespace assay::drift
