// import_guard: finds files in a run directory that are not evidence of the run.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "orchestrator/judge/evidence/journal.h"

namespace assay::judge {

/// An error when `directory` holds an import of another tool's output that the journal does not vouch for. One that it
/// does vouch for came from a node; the reader of records refuses it, and the attempt is an error.
std::optional<InputError> find_imported_files(const std::string& directory, const Journal& journal);

/// The same of `files`, contents by path in the run directory: the refusal of the first import that the journal does
/// not vouch for. Output of a node in a record's place stays the error of its own cells and no more.
std::optional<InputError> find_imported_files(const std::map<std::string, std::string>& files, const Journal& journal);

}  // namespace assay::judge
