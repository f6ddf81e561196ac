// knees: up to how many nodes the figures of growing groups keep their plateau, and the counter that rose at the fall.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// The growing groups of one figure with a knee, on the rail of one step.
struct KneeRange {
  struct Group {
    const plan::Step* step;
    const Result* result;  ///< nullptr: the smallest group, which has no cell
  };
  std::vector<Group> groups;      ///< by rising number of nodes
  const Result* first = nullptr;  ///< of the smallest group that falls out: its cell fails; nullptr: none does
  std::size_t kept = 0;           ///< nodes of the largest group below that which keeps the figure
  double kept_share = 0;          ///< its figure over the limit
  bool open = false;              ///< a smaller group was not decided, or a larger one keeps the figure
  double scatter = 0;             ///< relative standard deviation between attempts, over the groups

  /// Whether `result` is of that group.
  [[nodiscard]] bool is_first(const Result& result) const { return first == &result; }
};

/// Those of `requirement` on the rail of `step`. `results` must outlive it.
KneeRange knee_at(const plan::Plan& plan, const Results& results, const plan::Requirement& requirement,
                  const plan::Step& step);

/// A counter that rose, and by how many deviations.
struct CounterRise {
  KneeCounter counter;
  double deviations = 0;
};

/// The counter `name` by its values in attempts of the groups that keep a figure, and of the one that falls out:
/// nothing if the median did not rise by more than three of their (scaled median absolute) deviations, of which `least`
/// and a twentieth of their median are the smallest, or if there are fewer than two and one of them.
std::optional<CounterRise> rise_of(const std::string& name, const std::vector<double>& before,
                                   const std::vector<double>& at, double least);

/// The knee of every figure that has one, in the order of profile and rails, by the results and searches of `verdict`.
/// A counter, as a mean over nodes, is named by rise_of(); of several the one that rose most against its deviation.
/// None of a rehearsal.
std::vector<KneeFound> knees_of(const plan::Plan& plan, const Verdict& verdict, const Journal& journal,
                                const EvidenceReader& evidence);

}  // namespace assay::judge
