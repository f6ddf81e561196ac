// staging: a folder that is filled next to its final place and then published in one step.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "probes/core/error.h"

namespace assay::files {

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
