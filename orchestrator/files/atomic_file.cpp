// atomic_file: temporary file, fsync, rename, fsync of the directory; mkdtemp, one rename, and removal of the rest.
#include "orchestrator/files/atomic_file.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"

namespace assay::files {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPartial = ".tmp";  // suffix of a file that is being written

[[noreturn]] void fail(const std::string& path, int error = errno) {
  throw std::system_error(error, std::generic_category(), path);
}

/// The failure of `action` as a value; `path` is the file to write.
template <class Action>
std::optional<InputError> failure_of(const std::string& path, const Action& action) {
  try {
    action();
    return std::nullopt;
  } catch (const std::system_error& failure) {
    const int error = failure.code().value();
    return InputError{path, fmt::format("cannot be written: {}", failure.code().message()),
                      error == EEXIST || error == ENOTEMPTY ? "nothing is overwritten: move it, or choose another name"
                                                            : "check the folder, its permissions and the free space"};
  }
}

/// Writes all of `bytes`; the error number, 0 after success.
int write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// Creates the file `path`, which must not exist, with the pieces that `write` hands over, and fsyncs it; removes it
/// again after a failure.
void create(const std::string& path, const std::function<void(const TextSink&)>& write, mode_t mode) {
  constexpr std::size_t kBuffer = 1 << 20;
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file) fail(path);
  int error = 0;
  std::string buffer;
  const auto flush = [&](std::string_view bytes) {
    if (error == 0) error = write_all(file, bytes);
  };
  write([&](std::string_view piece) {
    if (buffer.size() + piece.size() > kBuffer) {
      flush(buffer);
      buffer.clear();
    }
    if (piece.size() > kBuffer)
      flush(piece);
    else
      buffer += piece;
  });
  flush(buffer);
  if (error == 0 && ::fsync(file.number()) != 0) error = errno;
  if (error == 0) return;
  (void)::unlink(path.c_str());  // on a full disk the part would only take up space
  fail(path, error);
}

/// One piece.
std::function<void(const TextSink&)> all_of(std::string_view bytes) {
  return [bytes](const TextSink& sink) { sink(bytes); };
}

/// Writes the output of `write` next to `path`; the temporary file's name.
std::string create_beside(const std::string& path, const std::function<void(const TextSink&)>& write) {
  const auto directory = fs::path(path).parent_path();
  if (!directory.empty()) fs::create_directories(directory);
  std::string temporary = path + kPartial;
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT) fail(temporary);  // left by a killed process
  create(temporary, write, 0644);
  return temporary;
}

void sync_directory_of(const std::string& path) {
  const std::string directory = fs::path(path).parent_path();
  const Descriptor parent(::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent) fail(directory);
  // Some file systems (overlay, 9p) cannot fsync directories and say EINVAL; the rename has happened all the same.
  if (::fsync(parent.number()) != 0 && errno != EINVAL) fail(directory);
}

/// Renames `from` to `to` unless anything exists there.
void rename_to_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) fail(to);
  // Some network file systems have no such rename. A link never replaces a file either, but is not one step with the
  // removal of the old name; a rename of a folder replaces an empty folder at most.
  std::error_code unknown;
  if (fs::is_directory(from, unknown)) {
    if (::rename(from.c_str(), to.c_str()) != 0) fail(to);
    return;
  }
  if (::link(from.c_str(), to.c_str()) != 0) fail(to);
  if (::unlink(from.c_str()) != 0) fail(from);
}

}  // namespace

void write_durably(const std::string& path, std::string_view bytes) { write_durably(path, all_of(bytes)); }

void write_durably(const std::string& path, const std::function<void(const TextSink&)>& write) {
  const std::string temporary = create_beside(path, write);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    (void)::unlink(temporary.c_str());  // `path` is a directory, for example: the file has no other use
    fail(path, error);
  }
  sync_directory_of(path);
}

void write_new_durably(const std::string& path, std::string_view bytes) {
  const std::string temporary = create_beside(path, all_of(bytes));
  try {
    rename_to_new(temporary, path);
  } catch (const std::system_error&) {
    (void)::unlink(temporary.c_str());  // it may have been renamed; then there is nothing to remove
    throw;
  }
  sync_directory_of(path);
}

std::optional<InputError> replace_file(const std::string& path, std::string_view bytes) {
  return failure_of(path, [&] { write_durably(path, bytes); });
}

std::optional<InputError> create_file(const std::string& path, std::string_view bytes, mode_t mode) {
  return failure_of(path, [&] { create(path, all_of(bytes), mode); });
}

std::optional<InputError> move_to_new(const std::string& from, const std::string& to) {
  return failure_of(to, [&] {
    rename_to_new(from, to);
    sync_directory_of(to);
  });
}

void remove_partial_files(const std::string& folder) {
  std::error_code absent;  // there is no such folder before the first evidence
  std::vector<fs::path> partial;
  for (fs::recursive_directory_iterator entry(folder, absent), end; !absent && entry != end; entry.increment(absent)) {
    if (entry->path().extension() == kPartial) partial.push_back(entry->path());
  }
  for (const auto& path : partial) fs::remove(path);
}

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
