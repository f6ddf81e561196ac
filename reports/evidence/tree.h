// tree: reading a folder that may be hostile, each file once.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/error.h"

namespace assay::evidence {

/// Bounds on a folder of evidence, whether a folder of it may be empty, as a killed run may leave one, and whether a
/// file may be executable.
struct TreeLimits {
  std::size_t max_files = 4'000'000;         ///< 10,000 nodes, 100 steps, record, companion and logs each
  std::uint64_t max_file_bytes = 256 << 20;  ///< the agent cuts a probe's output far below
  std::uint64_t max_total_bytes = std::uint64_t{32} << 30;  ///< a size that a verifying machine can read
  int max_depth = 8;          ///< evidence/records/<step>/<attempt>/<file> has five levels
  bool empty_folders = true;  ///< a dossier has none: no line of its manifest could vouch for one
  bool executables = true;    ///< a dossier has none, and no file with the set-user-ID, set-group-ID or sticky bit
};

/// Called with each file's path relative to the root, and its bytes; an error ends the walk.
using FileVisitor = std::function<std::optional<InputError>(const std::string& path, std::string bytes)>;

/// Reads every file under `root` once, in the order of names, never following a link: it is opened relative to its
/// folder's descriptor and examined through its own. Files at the top whose names are in `known` are examined but not
/// read again. Refused by name: symbolic links, devices, sockets and pipes, files with a second hard link, names that
/// are not plain (manifest.h), a file that changes its size while it is read, and sizes over the limits.
std::optional<InputError> walk_tree(const std::string& root, const std::vector<std::string>& known,
                                    const FileVisitor& visit, const TreeLimits& limits = {});

/// Reads the file `name` directly in `root` under the same rules.
std::expected<std::string, InputError> read_plain_file(const std::string& root, const std::string& name,
                                                       std::uint64_t max_bytes);

}  // namespace assay::evidence
