// counter_rises: rises of counters between a reading before the load of a run and one after it.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "orchestrator/judge/cells/pool.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Why the rise of a subject is not known, by subject.
using UnknownRises = std::map<Subject, std::string>;

/// Turns `after`, a counter of each subject after the load, into its rise since `before`: every sample less the lowest
/// of the earlier readings, which of a counter is the first. A counter that was read only once or fell is unknown; it
/// is taken out of `after`.
UnknownRises make_rises(std::map<Subject, Pool>& after, const std::map<Subject, Pool>& before);

/// The rises that one plan's requirements are judged by.
class CounterRises {
 public:
  /// `evidence_of` collects a step's evidence; its captures must outlive this.
  CounterRises(const plan::Plan& plan, std::function<StepEvidence(const plan::Step&)> evidence_of);

  /// make_rises of `pools`, which `step` gave for `requirement`; nothing to do if it does not judge rises.
  UnknownRises take(const plan::Requirement& requirement, const plan::Step& step, std::map<Subject, Pool>& pools);

 private:
  const plan::Plan& plan_;
  std::function<StepEvidence(const plan::Step&)> evidence_of_;
  std::string step_;  ///< the step of before_
  StepEvidence before_;
};

}  // namespace assay::judge
