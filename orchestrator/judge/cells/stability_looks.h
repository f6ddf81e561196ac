// stability_looks: the interruptions of all nodes after each attempt of a soak, and where their sum meets a boundary of
// the agreement on stability.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// The records of the agreement's steps. A look needs the same attempt of every node, whole and under load as
/// long as the plan requires: an attempt that was aborted, lost, refused or short ends the path of all nodes, whatever
/// follows it.
class StabilityLooks {
 public:
  /// Takes the attempts of `step`, if it is one of the agreement's.
  void look(const plan::Plan& plan, const plan::Step& step, const StepEvidence& found);
  /// Takes what `later` took.
  void look(const StabilityLooks& later) { nodes_.insert(later.nodes_.begin(), later.nodes_.end()); }

  /// The cell of all nodes; `plan` has an agreement. More interruptions than are tolerated fail it at any look.
  [[nodiscard]] Result result(const plan::Plan& plan) const;
  /// Adds it to the results of a plan that has one.
  void add_to(const plan::Plan& plan, Results& results) const {
    if (plan.agreed_stability) results.push_back(result(plan));
  }

 private:
  struct Node {
    std::string name;
    std::vector<int> interruptions = {};  ///< of each attempt that counts for a look, in their order from the first
    double load_h = 0;                    ///< of them
    int others = 0;                       ///< interruptions of attempts that count for none
    std::string reason = {};              ///< why there are no more
  };
  std::map<std::string, Node> nodes_;  ///< by step
};

/// Whether `step` is one of the steps that the agreement of `plan` is of.
bool is_of_stability(const plan::Plan& plan, const plan::Step& step);

/// StabilityLooks::result of a run so far.
Result judge_stability(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence);

}  // namespace assay::judge
