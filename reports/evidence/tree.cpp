// tree: openat and fstat, level by level.
#include "reports/evidence/tree.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"
#include "reports/evidence/manifest.h"

namespace assay::evidence {
namespace {

constexpr const char* kTreeHint =
    "a dossier consists of plain files only; copy it with `cp -r`, and do not add or remove files";

/// Whether a file manager of macOS or Windows wrote the file `name`.
bool is_left_by_desktop(std::string_view name) {
  return name == ".DS_Store" || name.starts_with("._") || name == "Thumbs.db" || name == "desktop.ini";
}

InputError system_error(const std::string& path, const char* what) {
  return {path, fmt::format("{}: {}", what, std::generic_category().message(errno)),
          "check the path and its permissions"};
}

/// A name as it can be shown: characters beyond plain ASCII become '?'.
std::string shown(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return name;
}

constexpr mode_t kProgramBits = S_ISUID | S_ISGID | S_ISVTX | S_IXUSR | S_IXGRP | S_IXOTH;

/// The error of an entry that is not a plain file; nothing if it is one.
std::optional<InputError> odd(const struct stat& info, const std::string& path) {
  const char* what = nullptr;
  if (S_ISLNK(info.st_mode)) {
    what = "is a symbolic link";
  } else if (!S_ISREG(info.st_mode)) {
    what = "is not a regular file";
  } else if (info.st_nlink != 1) {
    what = "has a second hard link, through which it could change";
  }
  if (what == nullptr) return std::nullopt;
  return InputError{path, what, kTreeHint};
}

std::expected<std::string, InputError> read_open_file(int file, const std::string& path, std::uint64_t max_bytes) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) return std::unexpected(system_error(path, "cannot be examined"));
  if (auto problem = odd(info, path)) return std::unexpected(*problem);
  if (static_cast<std::uint64_t>(info.st_size) > max_bytes) {
    return std::unexpected(
        InputError{path, fmt::format("{} bytes, over the limit of {}", info.st_size, max_bytes), kTreeHint});
  }
  // One byte more than the size is read, so that a growing file is noticed.
  std::string bytes(static_cast<std::size_t>(info.st_size) + 1, '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = ::read(file, bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(path, "cannot be read"));
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  if (filled + 1 != bytes.size()) return std::unexpected(InputError{path, "changed while it was read", kTreeHint});
  bytes.pop_back();
  return bytes;
}

class Walk {
 public:
  Walk(std::vector<std::string> known, FileVisitor visit, TreeLimits limits)
      : known_(std::move(known)), visit_(std::move(visit)), limits_(limits) {}

  std::optional<InputError> folder(Descriptor descriptor, const std::string& prefix, int depth) {
    const std::string here = prefix.empty() ? "." : prefix;
    if (depth > limits_.max_depth)
      return InputError{here, fmt::format("is deeper than {} levels", limits_.max_depth), kTreeHint};
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(descriptor.number()), ::closedir);
    if (!stream) return system_error(here, "cannot be listed");
    (void)descriptor.release();  // the stream closes it from here on
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(stream.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      if (names.size() > limits_.max_files) return InputError{here, "has too many files", kTreeHint};
    }
    if (names.empty() && !limits_.empty_folders) return InputError{here, "is an empty folder", kTreeHint};
    std::ranges::sort(names);
    for (const auto& name : names) {
      if (auto problem = entry(::dirfd(stream.get()), name, prefix, depth)) return problem;
    }
    return std::nullopt;
  }

 private:
  std::optional<InputError> entry(int folder_descriptor, const std::string& name, const std::string& prefix,
                                  int depth) {
    const std::string path = prefix.empty() ? name : prefix + "/" + name;
    if (is_left_by_desktop(name)) {
      return InputError{shown(path), "is a file that a desktop leaves in folders that it shows",
                        "remove it: it is no part of the dossier; then try again"};
    }
    if (!is_plain_path(name)) return InputError{shown(path), "has a name that is not plain", kTreeHint};
    struct stat info = {};
    if (::fstatat(folder_descriptor, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return system_error(path, "cannot be examined");
    if (S_ISDIR(info.st_mode)) {
      Descriptor inner(::openat(folder_descriptor, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (inner.number() < 0) return system_error(path, "cannot be opened");
      return folder(Descriptor(inner.release()), path, depth + 1);
    }
    if (auto problem = odd(info, path)) return problem;
    if (!limits_.executables && (info.st_mode & kProgramBits) != 0) {
      return InputError{path, fmt::format("has the mode {:04o}; a file of a dossier is data", info.st_mode & 07777U),
                        "on a file system without modes copy the dossier elsewhere; `chmod 644` takes the bits away"};
    }
    if (++files_ > limits_.max_files)
      return InputError{path, fmt::format("is one file more than the limit of {}", limits_.max_files), kTreeHint};
    if (prefix.empty() && std::ranges::find(known_, name) != known_.end()) return std::nullopt;
    // O_NONBLOCK: should a pipe take the file's place now, opening it must not wait for a writer.
    const Descriptor file(::openat(folder_descriptor, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.number() < 0) return system_error(path, "cannot be opened");
    auto bytes =
        read_open_file(file.number(), path, std::min(limits_.max_file_bytes, limits_.max_total_bytes - bytes_));
    if (!bytes) return bytes.error();
    bytes_ += bytes->size();
    return visit_(path, std::move(*bytes));
  }

  std::vector<std::string> known_;
  FileVisitor visit_;
  TreeLimits limits_;
  std::size_t files_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::optional<InputError> walk_tree(const std::string& root, const std::vector<std::string>& known,
                                    const FileVisitor& visit, const TreeLimits& limits) {
  Descriptor descriptor(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.number() < 0) return system_error(root, "cannot be opened");
  return Walk(known, visit, limits).folder(Descriptor(descriptor.release()), "", 1);
}

std::expected<std::string, InputError> read_plain_file(const std::string& root, const std::string& name,
                                                       std::uint64_t max_bytes) {
  const std::string path = root + "/" + name;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.number() < 0) {
    if (errno == ELOOP) return std::unexpected(InputError{name, "is a symbolic link", kTreeHint});
    return std::unexpected(system_error(name, "cannot be read"));
  }
  return read_open_file(file.number(), name, max_bytes);
}

}  // namespace assay::evidence
