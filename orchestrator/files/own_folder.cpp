// own_folder: owner and mode of a folder, asked through its descriptor.
#include "orchestrator/files/own_folder.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"

namespace assay::files {
namespace {

namespace fs = std::filesystem;

InputError cannot(const std::string& path, const char* what, int error) {
  return {path, fmt::format("{}: {}", what, std::generic_category().message(error)),
          "check the path and its permissions, or name another --out"};
}

/// mkdir with `mode`; the error is errno's, 0 when it was made.
int make(const std::string& path, mode_t mode) { return ::mkdir(path.c_str(), mode) == 0 ? 0 : errno; }

}  // namespace

std::optional<InputError> check_own_folder(const std::string& path) {
  struct stat link = {};
  if (::lstat(path.c_str(), &link) != 0) return cannot(path, "cannot be used", errno);
  if (S_ISLNK(link.st_mode) && link.st_uid != ::geteuid()) {
    return InputError{path, fmt::format("is a symbolic link of another user (uid {})", link.st_uid),
                      "name a folder of your own"};
  }
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return cannot(path, "cannot be opened as a folder", errno);
  struct stat info = {};
  if (::fstat(folder.number(), &info) != 0) return cannot(path, "cannot be examined", errno);
  if (info.st_uid != ::geteuid()) {
    return InputError{path, fmt::format("belongs to another user (uid {})", info.st_uid),
                      "evidence is written to folders of your own alone; name another one"};
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return InputError{path, "can be written to by other users", fmt::format("`chmod go-w {}`", path)};
  }
  return std::nullopt;
}

std::optional<InputError> take_own_folder(const std::string& path) {
  constexpr mode_t kMode = 0755;  // less the umask
  std::error_code error;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) return cannot(path, "cannot be made", error.value());
  const int failed = make(path, kMode);
  if (failed != 0 && failed != EEXIST) return cannot(path, "cannot be made", failed);
  if (auto problem = check_own_folder(path)) return problem;
  if (failed == 0 || fs::is_empty(path, error)) return std::nullopt;
  const bool of_sweep = fs::exists(path + "/due.json", error);
  return InputError{path, "exists and is not empty",
                    of_sweep
                        ? fmt::format("name another --out; `assay sweep --collect {}` ends an interrupted sweep", path)
                        : "name another --out, or use `assay run --resume` for an interrupted run"};
}

std::optional<InputError> make_private_folder(const std::string& path) {
  const int failed = make(path, S_IRWXU);
  if (failed == 0) return check_own_folder(path);
  if (failed != EEXIST) return cannot(path, "cannot be made", failed);
  return InputError{path, "exists already, though its name was made up just now", "name a folder with --out"};
}

}  // namespace assay::files
