// run_state: state of a run directory at this moment: whether a process still writes to it, and whether its dossier is
// of it.
#pragma once

#include <expected>
#include <optional>
#include <string>

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

}  // namespace assay::judge
