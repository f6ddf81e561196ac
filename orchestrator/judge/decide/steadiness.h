// steadiness: whether the samples of a cell are of one state that lasts, so that their median predicts later samples.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "orchestrator/judge/decide/attempts_estimate.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"
#include "probes/core/record.h"

namespace assay::judge {

/// Samples that fall into two groups, by the means of both.
struct TwoStates {
  double low = 0, high = 0;
};

/// Findings in the samples of a cell besides their statistic, before any limit.
struct Steadiness {
  std::optional<TwoStates> states;
  std::optional<double> change;  ///< over the length of one attempt, where the samples have a trend
  std::optional<double> drift;   ///< the same if it is no chance of samples that follow each other
  bool recurs = true;            ///< the second stage shows the trend too, or there was none
  double length = 0;             ///< of one attempt in samples, on average
  bool sample_cap = false;       ///< an attempt ended at its most samples, before its median was known
  bool time_cap = false;         ///< or at its time limit
  std::size_t samples = 0;
  double mean = 0;             ///< of all samples
  double mean_of_most = 0;     ///< the same without those of above_twice that 1 in 100 may give by chance
  std::size_t below_half = 0;  ///< samples under half of the median of all
  std::size_t above_twice = 0;
  std::optional<double> stall;  ///< where below_half are significantly more than 1 in 100: so many are at most this
  std::optional<double> late;   ///< where above_twice are: so many are at least this
};

/// Which attempts the second stage made, in a run that judges so many figures.
struct Recurrence {
  std::size_t begin = static_cast<std::size_t>(-1);  ///< index of its first attempt; beyond the last: there is none
  double figures = 1;
};

/// How improbable a trend of only the second stage must be to count, in a run that judges `figures`: of all trends that
/// the first stage `found` by chance, and of all figures that are measured again though it found none in them, one
/// counts in 5 % of runs at most.
double recurrence_probability(double figures, bool found);

/// Looks at the samples of `attempts`, in the order taken.
///
/// Two states: the best split of each attempt's samples into two groups, each with a fifth of them or more, leaves
/// less than 10 % of the sum of squares within the groups, over all attempts (6 % below 24 samples, 15 % from 60 on;
/// fewer than 10 samples an attempt are not looked at), and the means are at least 1 % apart. Two normal distributions
/// of equal weight that are 6 deviations apart leave 10 %, a single one 36 %, a uniform one 25 %.
///
/// A trend: Kendall's S summed over the attempts (Hirsch, Slack & Smith 1982) with a probability below 0.0001 where
/// there is none; the change is that from the first to the last third, scaled to the whole attempt. A drift: the same
/// S, with its deviation widened by sqrt((1 + r) / (1 - r)) for samples that follow each other, has a probability below
/// 0.001; r is the lag-1 correlation of the residuals of a straight line through each attempt, corrected for its bias.
/// Both recur if the widened S of only the second stage has the same sign and at most recurrence_probability()
/// (one-sided): the first stage's samples were chosen for their trend, and say nothing of it any more.
Steadiness steadiness_of(std::span<const Measurement* const> attempts, const Recurrence& second = {});

/// Adds the relevant part of `seen` to `result`, which has been decided, and makes a pass or a fail inconclusive if it
/// reaches across the limit: one of two states is on the other side of it; the trend, continued for twice the length of
/// an attempt, or the drift, continued for 200 samples if that is more, ends there, and it recurs; attempts that were
/// cut off, or whose samples follow each other (r above 0.7), and the interval's half width is more than half of the
/// distance to the limit. A pass of a median also where stalls reach the limit: significantly more than 1 % of the
/// samples (binomial) are below half of the median, and beyond the limit when they get worse by a quarter;
/// for times, above twice of it. Or where the mean misses the limit by more than 2 %. Times of healthy machines have
/// long tails, so for them the probability is 0.001, and the mean is that without as many of the samples above twice of
/// the median as 1 in 100 may give by chance; for rates it is 0.05 and the mean of all.
void note_findings(const Steadiness& seen, const AttemptsEstimate& estimate, bool unsteady_between_runs,
                   plan::Statistic statistic, Result& result);

}  // namespace assay::judge
