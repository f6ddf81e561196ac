// between_runs: deviation between attempts of one requirement, over all its subjects in a run.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "orchestrator/judge/decide/attempts_estimate.h"
#include "probes/core/description.h"

namespace assay::judge {

/// The standard deviation between attempts that a cell is judged with.
struct Scatter {
  double deviation = 0;   ///< in the unit of the value
  double degrees = 0;     ///< of freedom; infinite if it was stated and not measured
  std::size_t steps = 0;  ///< over which it was pooled; 0: of the cell's own attempts
  bool unsteady = false;  ///< the cell's attempts scatter more than those of the others, so it has its own
  bool unknown = false;   ///< there is one attempt, and nothing is stated
};

/// Whether the attempts of a cell show how runs scatter. If not, BetweenRuns::of() gives the cell's own.
bool tells_of_runs(const AttemptsEstimate& estimate);

/// Relative deviations between runs that are stated before a measurement.
struct StatedScatter {
  double least = 0;  ///< of the metric's description: few attempts nearer to each other have met one state
  std::optional<double> reproducibility = {};  ///< of the profile, for a single attempt
};

/// Those of the description of `metric` and of the profile.
StatedScatter stated_scatter(const Description::OwnMetric& metric,
                             const std::optional<plan::Reproducibility>& reproducibility);

/// The cell's own: of its attempts, or the least one if that is more. Of a single attempt it is the stated one, and
/// else the least one, which then counts as measured with one degree of freedom.
Scatter own_scatter(const AttemptsEstimate& estimate, const StatedScatter& stated);

/// The deviation between attempts of one requirement, pooled over the run. Steps are independent: the subjects of one
/// step (the GPUs of a node) share their processes, and count as one.
class BetweenRuns {
 public:
  /// Takes the attempts of one subject of `step`; ignored: a single attempt, or a mean
  /// of 0, which has no relative variance.
  void add(const std::string& step, const AttemptsEstimate& estimate);
  /// The deviation for a cell with these attempts. Relative variances are pooled with their degrees of freedom, each at
  /// most 9 times their median, when at least 8 steps have two attempts; a cell whose variance is above the pooled one
  /// beyond the quantile F(0.999) has its own. The pooled one has no least deviation: many steps have met every state.
  Scatter of(const AttemptsEstimate& estimate, const StatedScatter& stated);
  /// Pools them after the last add(): several threads may then call of() at once.
  void pool() {
    if (!steps_.empty()) (void)pooled();  // it stays in pooled_
  }

 private:
  struct OfStep {
    double sum = 0;       ///< of relative variances
    double subjects = 0;  ///< that they are of
    double degrees = 0;   ///< the most of one of its subjects
  };
  struct Pooled {
    double variance = 0, degrees = 0;
  };
  const Pooled& pooled();

  std::map<std::string, OfStep> steps_;
  std::optional<Pooled> pooled_;  ///< of steps_ as they are
};

}  // namespace assay::judge
