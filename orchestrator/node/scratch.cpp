// scratch: a lock (flock) on a directory marks it as in use.
#include "orchestrator/node/scratch.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <fmt/format.h>

namespace assay::node {
namespace {

namespace fs = std::filesystem;

std::string scratch_root(const std::string& directory) { return directory + "/scratch"; }

std::string errno_text(int error) { return std::generic_category().message(error); }

/// Opens a directory and locks it; empty if another process has locked or removed it.
Descriptor lock_directory(const std::string& path) {
  Descriptor handle(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!handle || flock(handle.number(), LOCK_EX | LOCK_NB) != 0) return {};
  struct stat info = {};
  if (fstat(handle.number(), &info) != 0 || info.st_nlink == 0) return {};  // removed between open and flock
  return handle;
}

}  // namespace

std::expected<void, std::string> claim_directory(const std::string& directory) {
  std::error_code error;
  if (!fs::path(directory).is_absolute())
    return std::unexpected(fmt::format("directory '{}' is not an absolute path", directory));
  fs::create_directories(fs::path(directory).parent_path(), error);
  if (!error && mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) error.assign(errno, std::generic_category());
  if (error) return std::unexpected(fmt::format("directory {} cannot be created: {}", directory, error.message()));
  const Descriptor handle(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!handle)
    return std::unexpected(
        fmt::format("directory {} cannot be opened: {}; name another with --directory, or as `directory` of the node "
                    "in the site file",
                    directory, errno_text(errno)));
  struct stat info = {};
  if (fstat(handle.number(), &info) != 0)
    return std::unexpected(fmt::format("directory {}: {}", directory, errno_text(errno)));
  if (info.st_uid != geteuid()) {
    return std::unexpected(fmt::format("directory {} belongs to another user (uid {}); name another one in the site",
                                       directory, info.st_uid));
  }
  if (fchmod(handle.number(), S_IRWXU) != 0)
    return std::unexpected(fmt::format("directory {}: {}", directory, errno_text(errno)));
  for (const char* name : {"scratch", "programs"}) {
    if (mkdirat(handle.number(), name, S_IRWXU) != 0 && errno != EEXIST) {
      return std::unexpected(fmt::format("directory {}/{} cannot be created: {}", directory, name, errno_text(errno)));
    }
  }
  return {};
}

std::expected<Scratch, std::string> make_scratch(const std::string& directory, const std::string& id) {
  constexpr int kTries = 5;  // between mkdir and flock another agent may remove it as that of a dead agent
  int last_error = EAGAIN;
  for (int i = 0; i < kTries; ++i) {
    std::uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
      return std::unexpected("no random number from the kernel");
    const std::string path = fmt::format("{}/{}-{:016x}", scratch_root(directory), id, random);
    if (mkdir(path.c_str(), S_IRWXU) != 0) {
      last_error = errno;
      continue;
    }
    if (Descriptor handle = lock_directory(path)) return Scratch{.path = path, .handle = std::move(handle)};
  }
  return std::unexpected(
      fmt::format("cannot create a scratch directory in {}: {}", scratch_root(directory), errno_text(last_error)));
}

bool remove_scratch(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return !error;
}

int clean_scratch(const std::string& directory) {
  int removed = 0;
  std::error_code error;
  for (fs::directory_iterator entry(scratch_root(directory), error), end; !error && entry != end;
       entry.increment(error)) {
    if (const Descriptor handle = lock_directory(entry->path()); handle && remove_scratch(entry->path())) ++removed;
  }
  return removed;
}

}  // namespace assay::node
