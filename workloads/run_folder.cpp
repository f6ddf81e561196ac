// run_folder: made by rank 0, proved to be seen by all, removed by the ranks that are left.
#include "workloads/run_folder.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <system_error>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/error.h"
#include "probes/core/host_facts.h"
#include "probes/core/probe.h"
#include "probes/core/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderPrefix = "assay-storage-";
constexpr const char* kOwnerFile = "owner";
constexpr std::size_t kNonceDigits = 16;
constexpr std::size_t kLongestMark = 4096;
constexpr Seconds kAppears = {15};  // a name that was never asked for is in no client's cache: it is there at once
constexpr Seconds kGoes = {20};     // other ranks may still be writing while they learn that the run is over
constexpr auto kPause = std::chrono::milliseconds(100);

std::string fact(const std::string& path) { return read_fact(path).value_or(""); }

/// Field 22 of /proc/PID/stat (proc(5)); empty when there is no such process.
std::string start_of(std::int64_t pid) {
  const std::string text = fact(fmt::format("/proc/{}/stat", pid));
  const auto end = text.rfind(')');  // the name before may hold anything
  if (end == std::string::npos) return "";
  std::istringstream words(text.substr(end + 1));
  std::string word;
  for (int field = 3; field <= 22 && words >> word; ++field) {
  }
  return word;
}

bool is_folder_name(const std::string& name) {
  if (!name.starts_with(kFolderPrefix)) return false;
  const std::string digits = name.substr(std::char_traits<char>::length(kFolderPrefix));
  return digits.size() == kNonceDigits && from_hexadecimal(digits).has_value();
}

void write_mark(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << '\n';
  file.close();
  if (!file) throw std::system_error(errno, std::generic_category(), path);
}

/// Waits until the file at `path` begins with `text`; whether it does.
bool shows(const std::string& path, const std::string& text) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(kAppears.count);
  while (true) {
    const auto found = read_file(path, kLongestMark);
    if (found && found->starts_with(text)) return true;
    if (stop_requested() || std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(kPause);
  }
}

/// Removes a folder of which others may still be making files; gives up after kGoes.
void remove_folder(const std::string& path) noexcept {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(kGoes.count);
  std::error_code ignored;  // what is left is removed by the next run
  while (true) {
    fs::remove_all(path, ignored);
    if (!fs::exists(fs::symlink_status(path, ignored)) || std::chrono::steady_clock::now() > until) return;
    std::this_thread::sleep_for(kPause);
  }
}

double changed_at(const struct stat& status) {
  return static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
}

/// What the storage says of a file that is made there now: its clock, and as whom it sees this user, which may be
/// another number where a server maps root to nobody. Throws std::system_error.
struct stat fresh_file(const std::string& directory) {
  std::string path = directory + "/assay-clock-XXXXXX";
  const int file = mkstemp(path.data());
  struct stat status = {};
  if (file < 0 || fstat(file, &status) != 0) throw std::system_error(errno, std::generic_category(), directory);
  close(file);
  unlink(path.c_str());
  return status;
}

}  // namespace

std::string owner_text(const FolderOwner& owner) {
  return fmt::format("{} {} {} {}", owner.boot.empty() ? "-" : owner.boot, owner.processes, owner.pid, owner.started);
}

std::optional<FolderOwner> owner_in(const std::string& text) {
  std::istringstream words(text);
  FolderOwner owner;
  if (!(words >> owner.boot >> owner.processes >> owner.pid >> owner.started)) return std::nullopt;
  if (owner.boot == "-") owner.boot.clear();
  return owner;
}

FolderOwner this_process() {
  std::error_code none;
  const std::string processes = fs::read_symlink("/proc/self/ns/pid", none).string();
  return {.boot = fact("/proc/sys/kernel/random/boot_id"),
          .processes = none || processes.empty() ? "-" : processes,
          .pid = getpid(),
          .started = start_of(getpid())};
}

bool is_abandoned(const std::optional<FolderOwner>& owner, const FolderOwner& self, Seconds age) {
  if (age.count > kAbandonedAfter.count) return true;
  const bool seen_from_here =
      owner && !owner->boot.empty() && owner->boot == self.boot && owner->processes == self.processes;
  return seen_from_here && start_of(owner->pid) != owner->started;
}

int remove_abandoned(const std::string& directory) {
  const FolderOwner self = this_process();
  const struct stat fresh = fresh_file(directory);
  const double now_s = changed_at(fresh);
  int removed = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) {
    struct stat status = {};
    const std::string path = entry.path().string();
    if (!is_folder_name(entry.path().filename().string()) || lstat(path.c_str(), &status) != 0) continue;
    if (!S_ISDIR(status.st_mode) || status.st_uid != fresh.st_uid) continue;
    const auto mark = read_file(path + "/" + kOwnerFile, kLongestMark);
    if (!is_abandoned(mark ? owner_in(*mark) : std::nullopt, self, {now_s - changed_at(status)})) continue;
    if (fs::remove_all(path, none); !none) ++removed;
  }
  return removed;
}

RunFolder::RunFolder(Rendezvous& group, const std::string& directory, std::uint64_t nonce)
    : group_(group), path_(fmt::format("{}/{}{:016x}", fs::absolute(directory).string(), kFolderPrefix, nonce)) {
  if (group_.rank() == 0) {
    abandoned_ = remove_abandoned(directory);
    if (mkdir(path_.c_str(), 0700) != 0) throw std::system_error(errno, std::generic_category(), path_);
  }
  try {
    find(directory, nonce);
  } catch (...) {
    if (group_.rank() == 0) remove_folder(path_);
    throw;
  }
}

void RunFolder::find(const std::string& directory, std::uint64_t nonce) {
  const std::string word = fmt::format("{:016x}", nonce);
  if (group_.rank() == 0) write_mark(path_ + "/" + kOwnerFile, owner_text(this_process()));
  group_.barrier();
  if (!shows(path_ + "/" + kOwnerFile, "")) {
    throw std::runtime_error(
        fmt::format("{}: what rank 0 made there is not seen here after {:g} s: it is not one file system on all nodes; "
                    "name a directory of the shared storage with --directory",
                    directory, kAppears.count));
  }
  write_mark(fmt::format("{}/mark-{}", path_, group_.rank()), word);
  group_.barrier();
  const int other = (group_.rank() + 1) % group_.world();
  if (!shows(fmt::format("{}/mark-{}", path_, other), word)) {
    throw std::runtime_error(fmt::format("{}: a file that rank {} wrote and closed is not seen here after {:g} s",
                                         directory, other, kAppears.count));
  }
}

OwnFolder::OwnFolder(const std::string& directory, std::uint64_t nonce)
    : path_(fmt::format("{}/{}{:016x}", fs::absolute(directory).string(), kFolderPrefix, nonce)) {
  (void)remove_abandoned(directory);  // how many there were on one node says nothing of the storage of all
  if (mkdir(path_.c_str(), 0700) != 0) throw std::system_error(errno, std::generic_category(), path_);
  try {
    write_mark(path_ + "/" + kOwnerFile, owner_text(this_process()));
  } catch (...) {
    remove_folder(path_);
    throw;
  }
}

OwnFolder::~OwnFolder() { remove_folder(path_); }

RunFolder::~RunFolder() {
  if (std::uncaught_exceptions() == uncaught_) {
    remove_folder(path_);
    return;
  }
  try {
    group_.after_failure([path = path_] { remove_folder(path); });
  } catch (const std::bad_alloc&) {
    remove_folder(path_);
  }
}

Seconds RunFolder::clear() {
  group_.barrier();
  const auto begin = std::chrono::steady_clock::now();
  if (group_.rank() == 0) {
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.path().filename() != kOwnerFile) fs::remove_all(entry.path());
    }
  }
  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  group_.barrier();
  return {took_s};
}

}  // namespace assay
