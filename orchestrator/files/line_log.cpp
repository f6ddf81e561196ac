// line_log: O_APPEND, flock, fsync.
#include "orchestrator/files/line_log.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"

namespace assay::files {
namespace {

InputError failure(const std::string& path, const char* what, int error) {
  return {path, fmt::format("{}: {}", what, std::strerror(error)), "check the folder, its permissions and free space"};
}

/// The whole lines of `text`, and how many bytes they have.
std::pair<std::vector<std::string>, std::size_t> whole_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t done = 0;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', done)) {
    lines.emplace_back(text.substr(done, end - done));
    done = end + 1;
  }
  return {std::move(lines), done};
}

/// Whether `path` still names the open file: another process may have replaced it before the lock was had.
bool is_named(const Descriptor& file, const std::string& path) {
  struct stat held {};
  struct stat named {};
  return ::fstat(file.number(), &held) == 0 && ::lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace

std::expected<LineLog, InputError> LineLog::open(const std::string& path) {
  LineLog log;
  log.path_ = path;
  std::error_code problem;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, problem);
  log.file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!log.file_) return std::unexpected(failure(path, "cannot be opened", errno));
  if (::flock(log.file_.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return std::unexpected(failure(path, "cannot be locked", errno));
    return std::unexpected(InputError{path, "is in use by another process", "wait until that ends"});
  }
  if (!is_named(log.file_, path))
    return std::unexpected(InputError{path, "was replaced by another process", "try again"});
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  auto [lines, whole] = whole_lines(*text);
  if (whole != text->size() && ::ftruncate(log.file_.number(), static_cast<off_t>(whole)) != 0)
    return std::unexpected(failure(path, "cannot be mended", errno));
  log.lines_ = std::move(lines);
  return log;
}

std::optional<InputError> LineLog::append(std::string_view line) {
  const std::string whole = std::string(line) + "\n";
  for (std::size_t done = 0; done < whole.size();) {
    const ssize_t written = ::write(file_.number(), whole.data() + done, whole.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure(path_, "cannot be written", errno);
    done += static_cast<std::size_t>(written);
  }
  if (::fsync(file_.number()) != 0) return failure(path_, "cannot be written", errno);
  return std::nullopt;
}

std::optional<InputError> LineLog::replace(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return replace_file(path_, text);
}

std::expected<std::vector<std::string>, InputError> read_lines(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::vector<std::string>{};
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  return whole_lines(*text).first;
}

}  // namespace assay::files
