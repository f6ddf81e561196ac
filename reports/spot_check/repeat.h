// repeat: repeated measurements of the cells of a draw, compared with the dossier.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "reports/compare/comparison.h"
#include "reports/dossier/opened_run.h"
#include "reports/spot_check/challenge.h"

namespace assay::spot_check {

/// Findings of the repeats on the dossier.
enum class Repetition {
  repeated,      ///< every cell was measured again, and a change could have been shown and was not
  contradicted,  ///< they came out worse than the dossier says
  open,          ///< cells were not measured again, or too few figures to show any change
};

constexpr auto words_of(Repetition) { return names_as_words<Repetition>(); }

/// One subject of a drawn cell: of a cell of a node each of its devices.
struct RepeatedCell {
  const judge::Result* dossier = nullptr;
  const judge::Result* repeat = nullptr;  ///< nothing: not measured again
  std::string open;                       ///< why its figures are not tested; empty: they are
  bool fails_now = false;                 ///< passed a limit that does not depend on other cells, and fails it
  std::optional<double> change;           ///< of the value: repeat over dossier less 1, where both are above 0
};

/// One requirement of which cells were drawn.
struct RepeatedRequirement {
  std::string id, unit;
  std::vector<RepeatedCell> cells;
  compare::RankTest test;  ///< over the attempts of its cells
  compare::Finding finding = compare::Finding::not_compared;
};

/// The whole.
struct Repeats {
  std::size_t drawn = 0;  ///< cells of the plan
  std::vector<RepeatedRequirement> requirements;
  compare::RankTest together;  ///< over all cells, of ratios that are above 1 where the repeat is better
  compare::Finding together_finding = compare::Finding::not_compared;
  double threshold = 0, together_threshold = 0;  ///< p that counts as a change
  Repetition repetition = Repetition::open;
  std::string reason;                      ///< one sentence
  std::vector<std::string> booted = {};    ///< nodes that were booted since the dossier
  std::vector<std::string> unproven = {};  ///< nodes of which not both runs have a serial number
};

/// Holds `repeat` against `dossier`. Half of demands.alpha goes to the test over all cells, half to those of the
/// requirements by Tarone's rule, so that honest repeats are contradicted by chance with at most that probability.
/// Refused: `repeat` is not of the plan that follows from dossier and challenge, or is the same run, or did not end; by
/// rule draw_time, it began before the last party gave its seed away, or ends after `now`, by more than clocks differ;
/// by rule draw_machines, a node is not the machine of the dossier by name, processor, serial number or boot.
std::expected<Repeats, InputError> check_repeats(const dossier::OpenedRun& dossier, const dossier::OpenedRun& repeat,
                                                 const Challenge& challenge, const compare::Demands& demands,
                                                 dossier::Moment now);

/// A line for each cell, one for each requirement, and the whole, for people.
std::string repeats_table(const Repeats& repeats);
/// assay.draw-check/1.
std::string repeats_json(const Repeats& repeats, const Challenge& challenge);

}  // namespace assay::spot_check
