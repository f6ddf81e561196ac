// component_statements: compares statements of several steps on one component of a node.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// Collects the values of conditions that state the same component: driver_version, nvml_driver and nvidia_version are
/// of one driver, whichever probe recorded them. Only components that the plan demands something of are looked at.
class ComponentStatements {
 public:
  /// `plan` must outlive it.
  explicit ComponentStatements(const plan::Plan& plan);

  /// Looks at the records of one step.
  void look(const plan::Step& step, const StepEvidence& found);

  /// A passing result that demands something of a component which another step states otherwise of the same node, and
  /// a failing one of a demand that the other statement would meet, become inconclusive: both values are named, and the
  /// evidence of the other is added. Versions that are equal as versions agree.
  void hold_together(Results& results) const;

 private:
  struct Statement {
    std::string step, probe, name;
    Value value;
    SharedList<std::string> paths;
  };
  using Part = std::tuple<std::size_t, std::string, Subject>;  ///< component, node, and subject if it has several

  void take(const plan::Step& step, const Record& record, const SharedList<std::string>& paths);
  void hold(Result& result, const plan::RequiredCondition& demand) const;

  const plan::Plan& plan_;
  std::set<std::size_t> demanded_;
  std::map<Part, std::vector<Statement>> all_;  ///< each different value of a step once
};

}  // namespace assay::judge
