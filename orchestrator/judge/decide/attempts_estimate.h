// attempts_estimate: joint estimate of the attempts of one cell, before any limit; arithmetic only.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "orchestrator/plan/profile.h"
#include "probes/core/record.h"
#include "probes/core/statistics.h"

namespace assay::judge {

/// The judged statistic over the attempts of one cell. An attempt is one process: its samples are near to each other,
/// and only other attempts show how far the next one will be from it.
struct AttemptsEstimate {
  double value = 0;                  ///< the mean of `each`; of min and max the worst of all samples
  std::vector<double> each;          ///< the statistic of each attempt, in their order
  bool extreme = false;              ///< min or max: nothing below is known
  bool ratio = false;                ///< of a contrast: the geometric mean of `each`, which scatter as logarithms do
  double between = 0;                ///< standard deviation of `each`; 0 for one attempt
  double within = 0;                 ///< standard uncertainty of one attempt's statistic, only from its own samples
  double correlation = 0;            ///< of samples in a row, lag 1, corrected for its bias, 0 to 0.97
  std::optional<Interval> interval;  ///< order-statistic interval of all samples
  std::optional<double> low_bound, high_bound;  ///< one-sided order-statistic bounds of all samples
};

/// How sure the intervals are to be.
struct Sureness {
  double confidence = 0.95;  ///< of two-sided intervals
  double risk = 0.05;        ///< of each one-sided bound; from 0.5 upwards none is needed
};

/// The estimate from `attempts`, one measurement each and at least one. `within` is the root mean square over the
/// attempts of the half width of the order-statistic interval over the normal quantile of its level, widened by
/// sqrt((1 + r) / (1 - r)) for samples that follow each other (Bartlett 1946), with r = (n r1 + 1) / (n - 3) from the
/// mean lag-1 correlation r1 (Marriott & Pope 1954). Nothing if a median or percentile has too few samples for its
/// intervals.
std::optional<AttemptsEstimate> estimate_attempts(std::span<const Measurement* const> attempts,
                                                  plan::Statistic statistic, const Sureness& sureness);

/// The ratios of the attempts of `on` and `off`, pair by pair; of a figure that is the better the `higher` on over off,
/// else off over on, so that more than 1 is a gain. `value` is their geometric mean, `between` it times the standard
/// deviation of their logarithms. There are no order-statistic bounds. Nothing if a figure is not above 0.
std::optional<AttemptsEstimate> ratio_of(const AttemptsEstimate& on, const AttemptsEstimate& off, bool higher);

}  // namespace assay::judge
