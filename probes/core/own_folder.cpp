// own_folder: an owner is a process with its start, so that one with the same number is not taken for it.
#include "probes/core/own_folder.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/error.h"
#include "probes/core/host_facts.h"
#include "probes/core/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderPrefix = "assay-storage-";
constexpr std::size_t kNonceDigits = 16;
constexpr std::size_t kLongestMark = 4096;
constexpr Seconds kGoes = {20};  // other ranks may still be writing while they learn that the run is over
constexpr auto kRemovePause = std::chrono::milliseconds(100);

std::string fact(const std::string& path) { return read_fact(path).value_or(""); }

/// Field 22 of /proc/PID/stat (proc(5)); empty if there is no such process.
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

double changed_at(const struct stat& status) {
  return static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
}

/// Facts of a file that is made on the storage now: its clock, and the owner's number, which may be another one if a
/// server maps root to another user. Throws std::system_error.
struct stat fresh_file(const std::string& directory) {
  std::string path = directory + "/assay-clock-XXXXXX";
  const int file = mkstemp(path.data());
  struct stat status = {};
  if (file < 0 || fstat(file, &status) != 0) throw std::system_error(errno, std::generic_category(), directory);
  close(file);
  unlink(path.c_str());
  return status;
}

std::uint64_t chance() {
  std::random_device random;
  return std::uint64_t{random()} << 32U | random();
}

}  // namespace

void write_mark(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << '\n';
  file.close();
  if (!file) throw std::system_error(errno, std::generic_category(), path);
}

void remove_folder(const std::string& path) noexcept {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(kGoes.count);
  std::error_code ignored;  // the rest is removed by the next run
  while (true) {
    fs::remove_all(path, ignored);
    if (!fs::exists(fs::symlink_status(path, ignored)) || std::chrono::steady_clock::now() > until) return;
    std::this_thread::sleep_for(kRemovePause);
  }
}

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

std::string folder_path(const std::string& directory, std::uint64_t nonce) {
  return fmt::format("{}/{}{:016x}", fs::absolute(directory).string(), kFolderPrefix, nonce);
}

OwnFolder::OwnFolder(const std::string& directory, std::uint64_t nonce) : path_(folder_path(directory, nonce)) {
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

OwnFolder::OwnFolder(const std::string& directory) : OwnFolder(directory, chance()) {}

}  // namespace assay
