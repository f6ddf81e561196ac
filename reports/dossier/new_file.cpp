// new_file: O_EXCL, fsync and rename.
#include "reports/dossier/new_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace assay::dossier {
namespace {

InputError failed(const std::string& path, const char* what, int error) {
  return {path, fmt::format("{}: {}", what, std::generic_category().message(error)),
          error == EEXIST || error == ENOTEMPTY ? "move it away or choose another name; nothing is overwritten"
                                                : "check the folder, its permissions and the disk"};
}

std::optional<InputError> sync_folder(const std::string& path) {
  const int folder = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return failed(path, "cannot be opened", errno);
  const int synced = ::fsync(folder);
  const int error = errno;
  ::close(folder);
  // Some file systems (overlay, 9p) cannot sync folders; the rename has happened all the same.
  if (synced != 0 && error != EINVAL) return failed(path, "cannot be synced", error);
  return std::nullopt;
}

std::string parent_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

}  // namespace

std::optional<InputError> write_new_file(const std::string& path, std::string_view bytes, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (file < 0) return failed(path, "cannot be created", errno);
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0 && ::fsync(file) != 0) error = errno;
  ::close(file);
  if (error == 0) return std::nullopt;
  remove_file(path);
  return failed(path, "cannot be written", error);
}

std::optional<InputError> replace_file(const std::string& path, std::string_view bytes) {
  const std::string neighbour = fmt::format("{}.new-{}", path, ::getpid());
  if (auto problem = write_new_file(neighbour, bytes, 0644)) return problem;
  if (::rename(neighbour.c_str(), path.c_str()) != 0) {
    const int error = errno;
    remove_file(neighbour);
    return failed(path, "cannot be replaced", error);
  }
  return sync_folder(parent_of(path));
}

void remove_file(const std::string& path) {
  (void)::unlink(path.c_str());  // already gone, or in a folder that nobody may change: nothing is left to do
}

std::optional<InputError> publish_folder(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    // EINVAL: the file system has no such rename (NFS). A plain one still refuses a folder with anything in it.
    if (errno != EINVAL) return failed(to, "cannot be put in place", errno);
    if (::rename(from.c_str(), to.c_str()) != 0) return failed(to, "cannot be put in place", errno);
  }
  return sync_folder(parent_of(to));
}

}  // namespace assay::dossier
