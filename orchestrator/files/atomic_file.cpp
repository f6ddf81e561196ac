// atomic_file: temporary file, fsync, rename, fsync of the directory.
#include "orchestrator/files/atomic_file.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace assay::files {
namespace {

constexpr const char* kHalf = ".tmp";  // of a file that is being written

[[noreturn]] void fail(const std::string& path) { throw std::system_error(errno, std::generic_category(), path); }

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (number_ < 0) fail(path);
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

/// Writes and fsyncs `bytes` beside `path`; the temporary file's name.
std::string write_beside(const std::string& path, std::string_view bytes) {
  const auto directory = std::filesystem::path(path).parent_path();
  if (!directory.empty()) std::filesystem::create_directories(directory);
  std::string temporary = path + kHalf;
  const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
  // On a disk that is full the half would stay in the way.
  const auto give_up = [&] {
    const int problem = errno;
    ::unlink(temporary.c_str());
    errno = problem;
    fail(temporary);
  };
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) give_up();
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file.number()) != 0) give_up();
  return temporary;
}

void sync_directory_of(const std::string& path) {
  const auto directory = std::filesystem::path(path).parent_path();
  const Descriptor parent(directory.empty() ? "." : directory.string(), O_RDONLY | O_DIRECTORY);
  if (::fsync(parent.number()) != 0) fail(directory.string());
}

}  // namespace

void write_durably(const std::string& path, std::string_view bytes) {
  const std::string temporary = write_beside(path, bytes);
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path);
  sync_directory_of(path);
}

void write_new_durably(const std::string& path, std::string_view bytes) {
  const std::string temporary = write_beside(path, bytes);
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) fail(path);
    // Some network filesystems know no such rename. A link never replaces what is there either, but can be killed half
    // way.
    if (::link(temporary.c_str(), path.c_str()) != 0) fail(path);
    if (::unlink(temporary.c_str()) != 0) fail(temporary);
  }
  sync_directory_of(path);
}

void remove_partial_files(const std::string& folder) {
  std::error_code absent;  // there is no such folder before the first evidence
  std::vector<std::filesystem::path> halves;
  for (std::filesystem::recursive_directory_iterator entry(folder, absent), end; !absent && entry != end;
       entry.increment(absent)) {
    if (entry->path().extension() == kHalf) halves.push_back(entry->path());
  }
  for (const auto& path : halves) std::filesystem::remove(path);
}

}  // namespace assay::files
