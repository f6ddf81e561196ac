// atomic_file: writing a file so that a crash leaves the old one, the new one, or none, never a half.
#pragma once

#include <string>
#include <string_view>

namespace assay::files {

/// Writes `bytes` to `path`: directories are made, a temporary neighbour is written, fsynced and renamed, the directory
/// fsynced. Throws std::system_error with the path.
void write_durably(const std::string& path, std::string_view bytes);

/// The same for a file that must not be there yet: evidence is never replaced. Throws std::system_error (EEXIST) when
/// it is.
void write_new_durably(const std::string& path, std::string_view bytes);

/// Removes what a killed process left half written under `folder`; nothing when there is no such folder. Throws
/// std::filesystem::filesystem_error.
void remove_partial_files(const std::string& folder);

}  // namespace assay::files
