// mapping: the rows of a catalogue over one run.
//
// A row is met when every answer that it needs has a requirement that the plan judges as required, and every cell of
// all of these passes. One cell that fails makes it not met. Anything else is not tested: an answer without a
// requirement, only advisory requirements, a cell that is open, conditional, not measured or not checked. Of a
// simulation, a rehearsal or a repeat of drawn cells every row is not tested, and `would_be` is its state in a run that
// tests. Imported figures are in no run.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "reports/dossier/opened_run.h"
#include "reports/requirements/catalogue.h"

namespace assay::requirements {

/// State of a row in a run.
enum class State { met, not_met, not_tested, outside };

constexpr auto words_of(State) { return names_as_words<State>(); }

/// A requirement of the plan that answers a row, and its cells.
struct Answering {
  const plan::Requirement* requirement = nullptr;
  std::vector<const judge::Result*> cells;  ///< in the order of the verdict
  std::map<judge::Outcome, std::size_t> counts;
  const judge::Result* worst = nullptr;  ///< nullptr: no cells
  std::size_t most_nodes = 0;            ///< of its largest step; 0: none was planned

  /// How many of its cells pass.
  [[nodiscard]] std::size_t passed() const;
};

/// A row and its finding.
struct Found {
  const Row* row = nullptr;
  State state = State::not_tested;
  std::optional<State> would_be;          ///< where the run tests nothing
  std::string reason;                     ///< one sentence
  std::vector<std::string> requirements;  ///< ids, each once, those that must be met first
};

/// A catalogue over a run. Both must outlive it.
struct Mapping {
  const Catalogue* catalogue = nullptr;
  const dossier::OpenedRun* run = nullptr;
  std::string no_test;  ///< why the run tests nothing: simulated, rehearsed or drawn; empty: it tests
  std::vector<Found> rows;
  std::map<std::string, Answering, std::less<>> answering;  ///< of all rows, by id
  std::map<std::string, std::size_t> counts;                ///< by word of a state, all there
  std::vector<std::string> notes;                           ///< of the whole run, bounded
  std::map<std::string, judge::EvidenceFile> files;         ///< by path

  /// The records that `cell` was judged by, with their digests.
  [[nodiscard]] std::vector<const judge::EvidenceFile*> records(const judge::Result& cell) const;
};

/// Maps `catalogue`, whose names check_names() has passed for the plan, over `run`.
Mapping map(const Catalogue& catalogue, const dossier::OpenedRun& run);

/// Bytes at most of a text of a node, or of a reason that quotes one, in everything that is shown.
inline constexpr std::size_t kLongestQuoted = 240;

/// `text` cut to that, as one harmless line.
std::string bounded(std::string_view text);

/// "12 of 12 cells pass", "1 of 6 cells fail, first on n02 gpu GPU-1f: …" for people.
std::string outcome_words(const Answering& answering);

/// "verified, signed by …", "signature not checked": how far the run is vouched for.
std::string standing_words(const dossier::OpenedRun& run);

/// "not tested (would be met)".
std::string state_words(const Found& found);

}  // namespace assay::requirements
