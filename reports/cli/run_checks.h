// run_checks: checks of a run directory before it is reported, signed or verified.
#pragma once

#include <optional>
#include <string>

#include "probes/core/error.h"

namespace assay::report_cli {

/// The error of a run that a process still writes to; nothing if none does.
std::optional<InputError> check_run_is_over(const std::string& directory);

/// Makes room for the dossier of the run in `directory` in its usual place: one of the run as it was before it was
/// resumed is moved aside, which is said on stderr. Errors: the existing one is the dossier of the run as it is, or of
/// another run.
std::optional<InputError> make_room(const std::string& directory, const std::string& dossier);

/// The error of a run directory that was named in place of the dossier in it; nothing for anything else.
std::optional<InputError> check_is_dossier(const std::string& directory);

/// The warning for a dossier whose run has continued since; empty for any other.
std::string gone_on_note(const std::string& dossier);

}  // namespace assay::report_cli
