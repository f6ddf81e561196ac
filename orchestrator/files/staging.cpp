// staging: mkdtemp, one rename, and removal of the rest.
#include "orchestrator/files/staging.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"

namespace assay::files {

namespace fs = std::filesystem;

std::expected<StagingDirectory, InputError> StagingDirectory::beside(const fs::path& target) {
  std::string name = target.string() + ".partial-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    return std::unexpected(InputError{target,
                                      fmt::format("cannot be written: {}", std::generic_category().message(errno)),
                                      "check the folder and its permissions, or name another --out"});
  }
  return StagingDirectory(name, target);
}

StagingDirectory::StagingDirectory(fs::path path, fs::path target)
    : path_(std::move(path)), target_(std::move(target)) {}

StagingDirectory::StagingDirectory(StagingDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), target_(std::move(other.target_)) {}

StagingDirectory::~StagingDirectory() {
  std::error_code ignored;  // the name of a remaining file shows that it is partial
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::optional<InputError> StagingDirectory::write(const std::string& name, std::string_view bytes) const {
  const fs::path file = path_ / name;
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error)
    return InputError{name, fmt::format("its folder cannot be made: {}", error.message()), "check the free space"};
  return create_file(file, bytes, 0644);
}

std::optional<InputError> StagingDirectory::publish(const std::string& name) const {
  return move_to_new(path_ / name, target_);
}

}  // namespace assay::files
