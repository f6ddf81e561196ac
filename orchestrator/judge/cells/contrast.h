// contrast: a cell that compares a feature switched on with the same switched off.
//
// Its two steps are measured in turn, one attempt of each in every pass. Attempt i with the feature on and attempt i
// with it off are a pair; the ratio of their statistics is one figure of the cell, and the ratios are judged as the
// attempts of any other cell are (decide/decision.h), by their logarithms. Before that the recorded condition that
// `shown_by` names must prove the switch: every value that it had with the feature on differs from every one that it
// had without. If not, nothing is known of the feature, with any ratio.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "orchestrator/judge/cells/conditions.h"
#include "orchestrator/judge/cells/pool.h"
#include "orchestrator/judge/decide/undecided_cell.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// The step with the feature off, and its evidence.
struct Opposite {
  const plan::Step* step = nullptr;
  StepEvidence found = {};
  std::map<Subject, Pool> pools = {};
};

/// One of the two steps of a contrast, with its evidence of one subject.
struct ContrastSide {
  const plan::Step& step;
  const StepEvidence& found;
  const Pool& pool;
};

/// The contrasts of one plan.
class Contrasts {
 public:
  /// Both must outlive it.
  Contrasts(const plan::Plan& plan, Demands& demands);

  /// Takes the step that `cell`, of a contrast, is compared with; its evidence is collected by `evidence_of`.
  void take(const plan::Cell& cell, const plan::Requirement& requirement,
            const std::function<StepEvidence(const plan::Step&)>& evidence_of);
  /// The step taken last.
  [[nodiscard]] const Opposite& opposite() const { return opposite_; }

  /// The cell of `subject` with its pairs of `on` and the step taken last, open for its decision; settled, with
  /// `result`, if there is none: no opposite, `missing` attempts of it, too few pairs, a figure of 0.
  [[nodiscard]] UndecidedCell open(const plan::Requirement& requirement, const ContrastSide& on, const Subject& subject,
                                   const std::string& missing, Result result) const;

 private:
  void pair_up(UndecidedCell& cell, const Subject& subject, const ContrastSide& on, const ContrastSide& off) const;

  const plan::Plan& plan_;
  Demands& demands_;
  std::unordered_map<std::string_view, const plan::Step*> steps_;  ///< with a feature off, by id
  Opposite opposite_;
};

}  // namespace assay::judge
