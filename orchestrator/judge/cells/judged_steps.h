// judged_steps: results, identities and clocks of some steps of a plan, and which steps are judged together.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/files/in_parallel.h"
#include "orchestrator/judge/cells/component_statements.h"
#include "orchestrator/judge/cells/listed_parts.h"
#include "orchestrator/judge/cells/part_identities.h"
#include "orchestrator/judge/cells/stability_looks.h"
#include "orchestrator/judge/decide/cell_results.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// By step: the indices of its cells in the plan's coverage.
using CellsOfSteps = std::unordered_map<std::string_view, std::vector<std::size_t>>;

/// The judgement of some steps, one after another.
struct JudgedSteps {
  CellResults cells;
  PartIdentities identities;
  ComponentStatements statements;
  ListedParts parts;
  StabilityLooks looks;
  std::map<std::string, double> outside_s;  ///< as StepEvidence has it

  /// Takes what `step` shows besides its cells.
  void look(const plan::Plan& plan, const std::set<std::size_t>& components, const plan::Step& step,
            const StepEvidence& found) {
    identities.look(step, found);
    statements.look(components, step, found);
    parts.look(plan, step, found);
    looks.look(plan, step, found);
  }
  /// Takes those of the steps after these.
  void take(JudgedSteps&& later) {
    cells.take(std::move(later.cells));
    identities.look(later.identities);
    statements.look(later.statements);
    parts.look(std::move(later.parts));
    looks.look(later.looks);
    for (const auto& [node, seconds] : later.outside_s) note_outside(node, seconds);
    later = {};
  }
  void note_outside(const std::string& node, double seconds) {
    double& furthest_s = outside_s[node];
    if (std::abs(seconds) > std::abs(furthest_s)) furthest_s = seconds;
  }
};

/// Steps of a plan in a row.
using Steps = std::span<const plan::Step>;

/// The steps of `plan` in runs, in their order, so that no requirement has cells in two of them: at the end of a run
/// its cells can be decided, and they need not wait for the rest of the plan. A plan has its steps probe by probe.
inline std::vector<Steps> runs_of(const plan::Plan& plan, const CellsOfSteps& cells) {
  constexpr std::size_t kFewest = 512;  // steps of one run, so that all threads have work
  const auto each_requirement = [&](std::size_t step, const auto& act) {
    const auto mine = cells.find(plan.steps[step].id);
    if (mine == cells.end()) return;
    for (const std::size_t cell : mine->second) act(plan.coverage[cell].requirement);
  };
  std::unordered_map<std::string_view, std::size_t> last;  // step of each requirement
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    each_requirement(i, [&](const std::string& requirement) { last[requirement] = i; });
  std::vector<Steps> runs;
  std::size_t begin = 0, end = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    each_requirement(i, [&](const std::string& requirement) { end = std::max(end, last.at(requirement)); });
    const std::size_t count = i + 1 - begin;
    if (i + 1 < plan.steps.size() && (i < end || count < kFewest)) continue;
    runs.push_back(Steps(plan.steps).subspan(begin, count));
    begin = i + 1;
  }
  return runs;
}

/// In how many parts threads take steps.
constexpr std::size_t kPartSteps = 64;
inline std::size_t parts_of(Steps all) { return (all.size() + kPartSteps - 1) / kPartSteps; }

/// Calls `work(thread, part, steps)` for each part of `all`, numbered from 0, on so many threads.
template <class Work>
void each_part(Steps all, unsigned threads, const Work& work) {
  files::in_parallel(parts_of(all), threads, [&](unsigned thread, std::size_t part) {
    const std::size_t first = part * kPartSteps;
    work(thread, part, all.subspan(first, std::min(kPartSteps, all.size() - first)));
  });
}

}  // namespace assay::judge
