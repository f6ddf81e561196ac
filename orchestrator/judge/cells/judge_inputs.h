// judge_inputs: the common inputs of all threads of one judgement; none of them changes these.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "orchestrator/judge/cells/subject_count.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/plan/passes.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Plan, journal and evidence of one judgement, by the attempts of the stages up to `up_to`. All must outlive it.
class JudgeInputs {
 public:
  JudgeInputs(const plan::Plan& of_plan, const Journal& of_journal, const EvidenceReader& of_evidence,
              plan::Stage last = plan::Stage::second)
      : plan(of_plan),
        journal(of_journal),
        evidence(of_evidence),
        up_to(last),
        machines(journal),
        figures(figures_of(plan)),
        attempts_(journal.attempts) {
    for (const auto& one : plan.profile.requirements) requirements_[one.id] = &one;
  }

  const plan::Plan& plan;
  const Journal& journal;
  const EvidenceReader& evidence;
  const plan::Stage up_to;
  const Machines machines;
  const double figures;  ///< that the run judges

  /// The requirement of this id, which must be the plan's.
  [[nodiscard]] const plan::Requirement& requirement(std::string_view id) const { return *requirements_.at(id); }
  /// The attempts of `step`, in their order.
  [[nodiscard]] std::vector<Attempt> attempts_of(const plan::Step& step) const {
    auto found = attempts_.of(step.id);
    if (up_to == plan::Stage::first) std::erase_if(found, [](const Attempt& one) { return one.second_stage; });
    return found;
  }

 private:
  std::map<std::string_view, const plan::Requirement*> requirements_;  ///< by id
  AttemptsByStep attempts_;
};

}  // namespace assay::judge
