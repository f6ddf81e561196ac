// atomic_file: writing a file so that a crash leaves the old one, the new one, or none, never a part of one; and a
// folder that is filled next to its final place and then published in one step.
#pragma once

#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "probes/core/error.h"

namespace assay::files {

/// Writes `bytes` to `path`: directories are made, a temporary neighbour is written, fsynced and renamed, the directory
/// fsynced. Throws std::system_error with the path.
void write_durably(const std::string& path, std::string_view bytes);

/// Takes the pieces of a text, in their order.
using TextSink = std::function<void(std::string_view)>;

/// The same for a text that `write` hands over in pieces, of which a part is in memory at a time.
void write_durably(const std::string& path, const std::function<void(const TextSink&)>& write);

/// The same for a file that must not exist yet: evidence is never replaced. Throws std::system_error (EEXIST) when
/// anything exists at `path`, a dangling link included.
void write_new_durably(const std::string& path, std::string_view bytes);

/// write_durably with the failure as a value.
std::optional<InputError> replace_file(const std::string& path, std::string_view bytes);

/// Creates `path` with `bytes` and `mode`, fsynced, without a temporary neighbour; its folder must exist. An error when
/// anything exists at `path`, a dangling link included; nothing is left behind after an error.
std::optional<InputError> create_file(const std::string& path, std::string_view bytes, mode_t mode);

/// Moves the file or folder `from` to `to`, which must not exist, and fsyncs its parent.
std::optional<InputError> move_to_new(const std::string& from, const std::string& to);

/// Removes the temporary files that a killed process left under `folder`, which need not exist. Throws
/// std::filesystem::filesystem_error.
void remove_partial_files(const std::string& folder);

/// A temporary folder next to `target`. It is removed with this object; a published one stays.
class StagingDirectory {
 public:
  /// Creates it, as TARGET.partial-XXXXXX.
  static std::expected<StagingDirectory, InputError> beside(const std::filesystem::path& target);
  ~StagingDirectory();
  StagingDirectory(StagingDirectory&& other) noexcept;
  StagingDirectory& operator=(StagingDirectory&&) = delete;

  /// The folder.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes the new file `name` (a path relative to the folder), with its folders.
  [[nodiscard]] std::optional<InputError> write(const std::string& name, std::string_view bytes) const;
  /// Moves `name`, a file or folder in it, to the target, which must not exist.
  [[nodiscard]] std::optional<InputError> publish(const std::string& name) const;

 private:
  StagingDirectory(std::filesystem::path path, std::filesystem::path target);

  std::filesystem::path path_, target_;
};

}  // namespace assay::files
