// passes: in which order the steps of a plan are measured again and again.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "orchestrator/plan/plan.h"
#include "probes/core/words.h"

namespace assay::plan {

/// The two stages of a run. The second one measures again cells that are open or failed after the first.
enum class Stage { first, second };

constexpr auto words_of(Stage) { return names_as_words<Stage>(); }

/// Each attempt of a step belongs to another pass over the plan, so that the attempts of a step are apart and see the
/// machine at different times. Within a pass steps of one node come before those of more, as in the plan; steps of the
/// same width begin further on in each pass, so that a step does not always follow the same one. Steps that are to be
/// measured after the load come last of all, in as many of the last passes as they have attempts. Every node keeps this
/// order, so no two nodes can wait for each other. The two steps of a contrast follow each other in each place, with
/// the feature on first in the first pass, off first in the second, and so on.
class Passes {
 public:
  /// `plan` must outlive it.
  explicit Passes(const Plan& plan);

  /// Passes of `stage`, when every step of the plan takes part in it.
  [[nodiscard]] int count(Stage stage) const { return stage == Stage::first ? first_ : second_; }
  /// The steps whose turn is in pass `pass`, from 1, of `stage`, in order.
  [[nodiscard]] std::vector<const Step*> steps(Stage stage, int pass) const;

 private:
  /// Steps that come from one set of requirements, one in each place.
  using Row = std::span<const Step>;
  /// Rows of contrasts, which have the same places; or any other row.
  using Unit = std::vector<Row>;
  using UnitOf = std::map<std::string_view, std::size_t>;  ///< by the contrast's requirement

  static void add(const Row& row, const Plan& plan, std::vector<Unit>& units, UnitOf& unit_of);
  [[nodiscard]] bool takes_part(const Step& step, Stage stage, int pass) const;

  std::vector<std::vector<Unit>> widths_;  ///< units that use as many nodes at once, in the plan's order
  int first_ = 0, second_ = 0;
};

/// The attempts of `step` in `stage`.
constexpr int attempts_of(const Step& step, Stage stage) {
  return stage == Stage::first ? step.attempts : step.more_attempts;
}

}  // namespace assay::plan
