// run_folder: rank 0 makes the folder, every rank shows that it sees it, and the ranks that remain remove it.
#include "workloads/storage/shared/run_folder.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/error.h"
#include "probes/core/probe.h"

namespace assay::cluster_storage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestMark = 4096;
constexpr Seconds kAppears = {15};  // a name that was never asked for is in no client's cache: it is there at once
constexpr auto kPause = std::chrono::milliseconds(100);

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

}  // namespace

RunFolder::RunFolder(Rendezvous& group, const std::string& directory, std::uint64_t nonce)
    : group_(group), path_(folder_path(directory, nonce)) {
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
        fmt::format("{}: the folder that rank 0 made is not seen here after {:g} s: it is not one file system on all "
                    "nodes; name a directory of the shared storage with --directory",
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

}  // namespace assay::cluster_storage
