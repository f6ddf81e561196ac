// judged_steps: results, identities and clocks of some steps of a plan.
#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/judge/cells/component_statements.h"
#include "orchestrator/judge/cells/part_identities.h"
#include "orchestrator/judge/cells/stability_looks.h"
#include "orchestrator/judge/decide/cell_results.h"

namespace assay::judge {

/// By step: the indices of its cells in the plan's coverage.
using CellsOfSteps = std::unordered_map<std::string_view, std::vector<std::size_t>>;

/// The judgement of some steps, one after another.
struct JudgedSteps {
  CellResults cells;
  PartIdentities identities;
  ComponentStatements statements;
  StabilityLooks looks;
  std::map<std::string, double> outside_s;  ///< as StepEvidence has it

  /// Takes what `step` shows besides its cells.
  void look(const plan::Plan& plan, const std::set<std::size_t>& components, const plan::Step& step,
            const StepEvidence& found) {
    identities.look(step, found);
    statements.look(components, step, found);
    looks.look(plan, step, found);
  }
  /// Takes those of the steps after these.
  void take(JudgedSteps&& later) {
    cells.take(std::move(later.cells));
    identities.look(later.identities);
    statements.look(later.statements);
    looks.look(later.looks);
    for (const auto& [node, seconds] : later.outside_s) note_outside(node, seconds);
    later = {};
  }
  void note_outside(const std::string& node, double seconds) {
    double& furthest_s = outside_s[node];
    if (std::abs(seconds) > std::abs(furthest_s)) furthest_s = seconds;
  }
};

}  // namespace assay::judge
