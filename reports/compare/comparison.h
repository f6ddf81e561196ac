// comparison: two judged runs: their requirements, their results, and significant differences.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "probes/core/words.h"
#include "reports/compare/rank_test.h"
#include "reports/dossier/opened_run.h"

namespace assay::compare {

/// Result of one requirement or cell in two runs.
enum class Finding {
  worse,         ///< B differs by at least the smallest change that matters, to the worse side
  better,        ///< the same to the better side
  different,     ///< the same, where neither side is the better one
  small,         ///< they differ, by less than that
  equal,         ///< all figures of both runs are one number in each subject
  not_shown,     ///< no difference could be shown, which does not show that there is none
  too_few,       ///< no figures of as few attempts could show one
  not_compared,  ///< the figures do not mean the same, or one side has none
};

constexpr auto words_of(Finding) { return names_as_words<Finding>(); }

/// Strata of the test of a requirement's values.
enum class Design {
  attempts,  ///< the attempts of each subject that both runs have
  subjects,  ///< the values of all subjects, because the runs have none in common
};

constexpr auto words_of(Design) { return names_as_words<Design>(); }

/// One run of the two.
using Side = dossier::OpenedRun;

/// One cell that both runs have, or one of them.
struct CellPair {
  const judge::Result* a = nullptr;  ///< nothing if this run has no such cell
  const judge::Result* b = nullptr;
  std::optional<double> change;  ///< of the value: b over a less 1, where both are above 0
  RankTest test;
  Finding finding = Finding::not_compared;
};

/// One requirement that either run has.
struct RequirementPair {
  std::string id, metric, unit, statistic;
  std::string limit_a, limit_b;     ///< in words; empty if the run has no such requirement
  std::vector<std::string> method;  ///< why the figures do not mean the same, a sentence each; then nothing is tested
  std::vector<CellPair> cells;      ///< in A's order, then those that only B has
  std::map<std::string, std::size_t> outcomes_a, outcomes_b;
  std::optional<double> value_a, value_b;  ///< medians over the subjects that are tested
  std::size_t tested = 0;                  ///< subjects; of design subjects those of both runs together
  std::size_t left_out = 0;                ///< cells of both runs that cannot be tested: not judged in one of them
  Design design = Design::attempts;
  RankTest test;
  Finding finding = Finding::not_compared;
  std::string reason;  ///< one sentence

  /// value_b over value_a less 1, where both are above 0.
  [[nodiscard]] std::optional<double> change() const;
};

/// Parameters of a comparison.
struct Demands {
  double alpha = 0.05;            ///< probability at most to find any change if there is none
  double smallest_change = 0.01;  ///< relative: less is ignored
};

/// The whole.
struct Comparison {
  Demands demands;
  std::vector<std::string> notes;             ///< other differences: profile, site, probes, machines, programs
  std::vector<std::string> targets;           ///< how B's targets differ from A's, limit by limit
  std::vector<RequirementPair> requirements;  ///< in A's order, then those that only B has
  double threshold = 0;                       ///< p that counts as a difference, of a requirement or a cell
  std::map<std::string, std::size_t> counts;  ///< requirements by finding, all words present
};

/// Compares `b` with `a`; both must outlive the answer. Requirements and cells are one family of tests, held to `alpha`
/// by Tarone's rule.
Comparison compare(const Side& a, const Side& b, const Demands& demands);

/// The better side of a requirement's metric, by the probe's own description, else by its limit: 1 higher, -1 lower, 0
/// neither.
int better_side(const plan::Plan& plan, const plan::Requirement& requirement);

/// Result of a test, given the p that counts as a difference, the smallest relative change that matters, the better
/// side, and the relative change of the two figures that are shown with it: what matters by either is not small, and
/// where they go different ways the runs are only different.
Finding finding_of(const RankTest& test, double threshold, double smallest_change, int better, double shown = 0);

/// Facts to read before any figure: standing, kind, profile, site, version, probes and machines of the two.
std::vector<std::string> notes_of(const Side& a, const Side& b);

/// Why the figures of a requirement of the two plans do not mean the same; empty if they do.
std::vector<std::string> method_differences(const plan::Plan& a, const plan::Plan& b, const plan::Requirement& of_a,
                                            const plan::Requirement& of_b);

/// "n01 · gpu GPU-8f2…" of whichever run has the cell.
std::string name_of(const CellPair& cell);

}  // namespace assay::compare
