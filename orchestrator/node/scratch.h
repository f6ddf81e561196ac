// scratch: one directory for each run, removed with the run.
#pragma once

#include <expected>
#include <string>

#include "probes/core/descriptor.h"

namespace assay::node {

/// Creates `directory` (absolute) when missing, and checks that it belongs to this user; sets mode 0700, because files
/// in it are executed. The error is a reason.
std::expected<void, std::string> claim_directory(const std::string& directory);

/// The working directory of one run: DIRECTORY/scratch/<id>-<random>, mode 0700. It is locked while its owner
/// lives; the kernel releases the lock with the last process that holds `handle`.
struct Scratch {
  std::string path;
  Descriptor handle;  ///< open and locked
};

/// Creates the scratch directory of run `id` (a run id, so safe in a path). Precondition: claim_directory succeeded.
std::expected<Scratch, std::string> make_scratch(const std::string& directory, const std::string& id);

/// Removes a scratch directory with its content, without following links. False when part of it is left.
bool remove_scratch(const std::string& path);

/// Removes the scratch directories of dead agents, which are not locked. Returns their number.
int clean_scratch(const std::string& directory);

}  // namespace assay::node
