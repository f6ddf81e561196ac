// storage_file: wraps the system calls: transfers are completed, and an error names its call.
#include "workloads/storage/shared/storage_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::cluster_storage {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 30, kPiece = 1 << 20;

[[noreturn]] void refused(const char* call, const std::string& path) {
  throw std::system_error(errno, std::generic_category(), std::string(call) + " " + path);
}

}  // namespace

Descriptor open_on_storage(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file) refused("open", path);
  return file;
}

void write_on_storage(const Descriptor& file, std::span<const std::byte> bytes, std::uint64_t offset,
                      const std::string& path) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote =
        ::pwrite(file.number(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = EIO;
    if (wrote <= 0) refused("write", path);
    done += static_cast<std::size_t>(wrote);
  }
}

void sync_on_storage(const Descriptor& file, const std::string& path) {
  if (::syscall(SYS_fsync, file.number()) != 0) refused("fsync", path);
}

void sync_and_close(Descriptor file, const std::string& path) {
  sync_on_storage(file, path);
  if (::close(file.release()) != 0) refused("close", path);
}

std::vector<std::byte> read_on_storage(const Descriptor& file, const std::string& path) {
  std::vector<std::byte> found;
  while (found.size() < kLargest) {
    const std::size_t done = found.size();
    found.resize(done + kPiece);
    const ssize_t got = ::pread(file.number(), found.data() + done, kPiece, static_cast<off_t>(done));
    found.resize(done + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refused("read", path);
    if (got == 0) break;
  }
  return found;
}

std::optional<std::vector<std::byte>> content_on_storage(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) refused("open", path);
  return read_on_storage(file, path);
}

void write_durably(const std::string& path, int flags, std::span<const std::byte> bytes) {
  Descriptor file = open_on_storage(path, O_WRONLY | flags);
  write_on_storage(file, bytes, 0, path);
  sync_and_close(std::move(file), path);
}

bool make_alone(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file && errno != EEXIST) refused("open", path);
  return static_cast<bool>(file);
}

void rename_on_storage(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) refused("rename", from);
}

void mkdir_on_storage(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) refused("mkdir", path);
}

void unlink_on_storage(const std::string& path) {
  if (::unlink(path.c_str()) != 0) refused("unlink", path);
}

void resize_on_storage(const Descriptor& file, std::uint64_t size, const std::string& path) {
  if (::ftruncate(file.number(), static_cast<off_t>(size)) != 0) refused("ftruncate", path);
}

std::uint64_t size_on_storage(const std::string& path) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) refused("stat", path);
  return static_cast<std::uint64_t>(found.st_size);
}

std::vector<std::string> names_on_storage(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    found.push_back(entry->path().filename());
  if (error) throw std::system_error(error, "readdir " + path);
  return found;
}

}  // namespace assay::cluster_storage
