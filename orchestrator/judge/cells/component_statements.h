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
  /// The components of which `plan` demands something.
  static std::set<std::size_t> demanded_by(const plan::Plan& plan);

  /// Looks at the records of one step for statements on `components`.
  void look(const std::set<std::size_t>& components, const plan::Step& step, const StepEvidence& found);

  /// Looks at what `later` looked at in other steps, after all that this one has.
  void look(const ComponentStatements& later);

  /// A passing result that demands something of a component which another step states otherwise of the same node, and
  /// a failing one of a demand that the other statement would meet, become inconclusive: both values are named, and the
  /// evidence of the other is added. Versions that are equal as versions agree.
  void hold_together(const plan::Plan& plan, Results& results) const;

 private:
  struct Statement {
    std::string step, probe, name;
    Value value;
    SharedList<std::string> paths;
  };
  using Part = std::tuple<std::size_t, std::string, Subject>;  ///< component, node, and subject if it has several

  void take(const std::set<std::size_t>& components, const plan::Step& step, const Record& record,
            const SharedList<std::string>& paths);
  void hold(Result& result, const plan::RequiredCondition& demand) const;

  std::map<Part, std::vector<Statement>> all_;  ///< each different value of a step once
};

}  // namespace assay::judge
