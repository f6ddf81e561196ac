// scratch: one directory for each run, gone when the run is.
#pragma once

#include <expected>
#include <string>

#include "probes/core/descriptor.h"

namespace assay::node {

/// Makes `directory` (absolute) when missing, and makes sure that it is a directory of ours, mode 0700: what lies in it
/// is executed. The error says what was wrong and what would help.
std::expected<void, std::string> claim_directory(const std::string& directory);

/// The working directory of one run: DIRECTORY/scratch/<id>-<random>, mode 0700. A lock on it says that its owner
/// lives; the kernel drops the lock with the last process that holds `handle`.
struct Scratch {
  std::string path;
  Descriptor handle;  ///< open and locked
};

/// Makes the scratch directory of run `id` (a run id, so safe in a path). Precondition: claim_directory succeeded.
std::expected<Scratch, std::string> make_scratch(const std::string& directory, const std::string& id);

/// Removes a scratch directory with all that lies in it, without following links. False when something was left.
bool remove_scratch(const std::string& path);

/// Removes the scratch directories of agents that are gone: those that nobody locks. Returns how many.
int clean_scratch(const std::string& directory);

}  // namespace assay::node
