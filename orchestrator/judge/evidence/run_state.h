// run_state: state of a run directory at this moment: whether a process still writes to it, how far it has come by its
// journal, and whether its dossier is of it.
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <string>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/plan/passes.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/error.h"

namespace assay::judge {

/// The dossier in a run directory, where no other place was named for it.
inline constexpr const char* kDossierFolder = "dossier";

/// The process that writes to the journal of the run in `directory` now, by the journal ("process 4711 on head1");
/// nothing if none does, or when there is no journal.
std::optional<std::string> writer_of(const std::string& directory);

/// How the dossier in the folder `dossier` compares with the run in `directory`.
enum class DossierState {
  absent,   ///< there is none, or one of them cannot be read
  current,  ///< its journal is that of the run, byte for byte
  earlier,  ///< its journal is the beginning of the run's: the run was resumed after it was signed
  other,    ///< it is of another run
};
DossierState dossier_state(const std::string& directory, const std::string& dossier);

/// The run that contains the dossier at `dossier` and has continued since the dossier was made; nothing if there is no
/// such run.
std::optional<std::string> run_gone_on(const std::string& dossier);

/// Renames the dossier of the run in `directory` to the first free of dossier-1, dossier-2, …; returns the new path.
/// Errors: it cannot be renamed.
std::expected<std::string, InputError> move_dossier_aside(const std::string& directory);

/// Progress of a run. An interrupted attempt has not ended.
struct RunProgress {
  std::size_t steps_ended = 0;  ///< steps with every attempt that they were to get so far
  int attempts = 0;             ///< planned, with those of the second stage once it has begun
  int attempts_ended = 0;
  plan::Stage stage = plan::Stage::first;
  int pass = 0, passes = 0;                     ///< the first pass of the stage that is not over, of so many
  std::size_t tests = 0;                        ///< extra tests of searches
  std::map<std::string, std::size_t> outcomes;  ///< word to number of attempts, tests among them
};

/// That of the run with this plan and journal.
RunProgress progress_of(const plan::Plan& plan, const Journal& journal);

}  // namespace assay::judge
