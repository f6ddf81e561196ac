// lying_fs: a FUSE file system over a directory of this machine that is honest, or lies in one way.
// Usage: lying_fs BACKING MOUNTPOINT LIE, in the foreground until it is unmounted or gets SIGTERM.
#define FUSE_USE_VERSION 31
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/fakes/volatile_store.h"

namespace {

using std::chrono::milliseconds;
constexpr auto kStale = milliseconds(300);  // "late", "listing", "stale_handle": so long others see what was before
constexpr auto kGap = milliseconds(150);    // "rename_gap": so long there is no file at either name
constexpr auto kSlow = milliseconds(3);     // "slow": added to every call on a name
constexpr const char* kLies[] = {"honest",  "fsync_dropped", "late",         "flipped", "zeros", "full_at_close",
                                 "append",  "rename_gap",    "rename_keeps", "unlink",  "size",  "exclusive",
                                 "listing", "stale_handle",  "slow",         "volatile"};

std::string backing, lie;
std::mutex mutex;
std::set<std::string> unlinked;  ///< paths whose first removal was dropped
std::set<std::string> made;      ///< paths that this mount made
VolatileStore in_memory;         ///< "volatile": what is acknowledged
/// "stale_handle": when this mount last opened a path to read it.
std::map<std::string, std::chrono::steady_clock::time_point> read_here;
/// "volatile": once, when a writer of storage_durability has come so far, all goes to the backing files; never after,
/// so that what a killed server loses does not depend on when it is killed.
constexpr std::string_view kFlushedWith = "/durable-1-1-name-3";
std::once_flag flushed;

/// A write that is not yet in the backing file.
struct Pending {
  off_t offset;
  std::string bytes;
};
std::map<std::uint64_t, std::vector<Pending>> pending;  ///< by handle

bool lies(const char* how) { return lie == how; }
std::string real(const char* path) { return backing + path; }
int result(int returned) { return returned == 0 ? 0 : -errno; }
int handle(const fuse_file_info* file) { return static_cast<int>(file->fh); }

void slow_down() {
  if (lies("slow")) std::this_thread::sleep_for(kSlow);
}

/// Only files of a run are lied about, not what it needs to begin: the marks of its ranks, and what is beside it.
bool is_data(const std::string& path) {
  return path.starts_with("/assay-storage-") && path.find("/mark-") == std::string::npos && !path.ends_with("/owner");
}

bool is_volatile(const char* path) { return lies("volatile") && is_data(path); }

bool hidden_from_others(const char* path) {
  struct stat status = {};
  if (!lies("exclusive") || lstat(real(path).c_str(), &status) != 0) return false;
  const std::scoped_lock lock(mutex);
  return S_ISREG(status.st_mode) && status.st_size == 0 && is_data(path) && !made.contains(path);
}

/// Whether this mount has read `path` a moment ago.
bool is_stale_handle(const char* path) {
  const std::scoped_lock lock(mutex);
  const auto known = read_here.find(path);
  return known != read_here.end() && std::chrono::steady_clock::now() - known->second < kStale;
}

int getattr(const char* path, struct stat* status, fuse_file_info*) {
  slow_down();
  if (hidden_from_others(path)) return -ENOENT;
  const int done = result(lstat(real(path).c_str(), status));
  if (done == -ENOENT && is_stale_handle(path)) return -ESTALE;
  if (const auto size = is_volatile(path) ? in_memory.size(real(path)) : std::nullopt; done == 0 && size)
    status->st_size = static_cast<off_t>(*size);
  return done;
}

int make_folder(const char* path, mode_t mode) { return result(mkdir(real(path).c_str(), mode)); }
int remove_folder(const char* path) { return result(rmdir(real(path).c_str())); }

int remove_file(const char* path) {
  slow_down();
  if (lies("unlink") && is_data(path)) {
    const std::scoped_lock lock(mutex);
    if (unlinked.insert(path).second) return 0;
  }
  if (is_volatile(path)) in_memory.remove(real(path));
  return result(unlink(real(path).c_str()));
}

int rename_file(const char* from, const char* to, unsigned flags) {
  slow_down();
  if (flags != 0) return -EINVAL;
  if (lies("rename_gap")) {
    unlink(real(to).c_str());
    std::this_thread::sleep_for(kGap);
  }
  const std::string kept = real(from) + ".kept";
  if (lies("rename_keeps")) (void)!link(real(from).c_str(), kept.c_str());
  const int done = result(rename(real(from).c_str(), real(to).c_str()));
  if (is_volatile(from)) in_memory.rename(real(from), real(to));
  if (is_volatile(to) && std::string_view(to).ends_with(kFlushedWith))
    std::call_once(flushed, [] { in_memory.flush(); });
  if (lies("rename_keeps")) (void)rename(kept.c_str(), real(from).c_str());
  return done;
}

int resize(const char* path, off_t size, fuse_file_info* file) {
  if (lies("size")) return 0;
  if (is_volatile(path)) {
    in_memory.resize(real(path), static_cast<std::size_t>(size));
    return 0;
  }
  return result(file != nullptr ? ftruncate(handle(file), size) : truncate(real(path).c_str(), size));
}

int opened(int number, fuse_file_info* file) {
  if (number < 0) return -errno;
  file->fh = static_cast<std::uint64_t>(number);
  file->direct_io = 1;  // no page cache between the reader and the lie
  return 0;
}

int open_file(const char* path, fuse_file_info* file) {
  slow_down();
  if (hidden_from_others(path)) return -ENOENT;
  int flags = file->flags & ~(O_CREAT | O_EXCL | O_DIRECT);
  if (lies("append")) flags &= ~O_APPEND;
  if (is_volatile(path) && (flags & O_TRUNC) != 0) in_memory.resize(real(path), 0);
  if (lies("stale_handle") && is_data(path) && (flags & O_ACCMODE) == O_RDONLY) {
    const std::scoped_lock lock(mutex);
    read_here[path] = std::chrono::steady_clock::now();
  }
  return opened(open(real(path).c_str(), flags), file);
}

int create_file(const char* path, mode_t mode, fuse_file_info* file) {
  slow_down();
  int flags = file->flags & ~O_DIRECT;
  if (lies("exclusive") && is_data(path)) flags &= ~O_EXCL;
  const int done = opened(open(real(path).c_str(), flags | O_CREAT, mode), file);
  const std::scoped_lock lock(mutex);
  if (done == 0) made.insert(path);
  return done;
}

int read_file(const char* path, char* into, std::size_t size, off_t offset, fuse_file_info* file) {
  if (is_volatile(path)) {
    if (const auto held = in_memory.read(real(path), static_cast<std::size_t>(offset), size)) {
      std::ranges::copy(*held, into);
      return static_cast<int>(held->size());
    }
  }
  const ssize_t got = pread(handle(file), into, size, offset);
  return got < 0 ? -errno : static_cast<int>(got);
}

int write_file(const char* path, const char* from, std::size_t size, off_t offset, fuse_file_info* file) {
  std::string bytes(from, size);
  if (is_data(path) && lies("flipped") && offset == 0) bytes.at(size / 2) = static_cast<char>(bytes.at(size / 2) ^ 1);
  if (is_data(path) && lies("zeros")) bytes.assign(size, '\0');
  if (is_data(path) && (lies("fsync_dropped") || lies("late"))) {
    const std::scoped_lock lock(mutex);
    pending[file->fh].push_back({offset, bytes});
    return static_cast<int>(size);
  }
  const bool appends = (file->flags & O_APPEND) != 0;
  if (is_volatile(path)) {
    in_memory.write(real(path), appends ? std::nullopt : std::optional(static_cast<std::size_t>(offset)), bytes);
    return static_cast<int>(size);
  }
  if (lies("append") && appends) offset = 0;
  const ssize_t wrote = pwrite(handle(file), bytes.data(), size, offset);
  return wrote < 0 ? -errno : static_cast<int>(wrote);
}

int flush_file(const char* path, fuse_file_info* file) {
  return lies("full_at_close") && is_data(path) && (fcntl(handle(file), F_GETFL) & O_ACCMODE) != O_RDONLY ? -ENOSPC : 0;
}

int release_file(const char*, fuse_file_info* file) {
  std::vector<Pending> left;
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = pending.find(file->fh); found != pending.end()) {
      left = std::move(found->second);
      pending.erase(found);
    }
  }
  const int number = handle(file);
  if (!lies("late") || left.empty()) return result(close(number));
  std::thread([number, left = std::move(left)] {
    std::this_thread::sleep_for(kStale);
    for (const auto& one : left) (void)!pwrite(number, one.bytes.data(), one.bytes.size(), one.offset);
    close(number);
  }).detach();
  return 0;
}

int sync_file(const char*, int, fuse_file_info* file) {
  return lies("fsync_dropped") || lies("late") || lies("volatile") ? 0 : result(fsync(handle(file)));
}
int sync_folder(const char*, int, fuse_file_info*) { return 0; }

int list_folder(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
  DIR* const folder = opendir(real(path).c_str());
  if (folder == nullptr) return -errno;
  timespec now = {};
  (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
  while (const dirent* const entry = readdir(folder)) {
    struct stat status = {};
    const std::string child = real(path) + "/" + entry->d_name;
    const bool is_file = lstat(child.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    const auto age = std::chrono::seconds(now.tv_sec - status.st_ctim.tv_sec) +
                     std::chrono::nanoseconds(now.tv_nsec - status.st_ctim.tv_nsec);
    if (lies("listing") && is_data(path) && is_file && age < kStale) continue;
    fill(buffer, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
  }
  closedir(folder);
  return 0;
}

int room(const char* path, struct statvfs* found) { return result(statvfs(real(path).c_str(), found)); }
int times(const char* path, const timespec at[2], fuse_file_info*) {
  return result(utimensat(AT_FDCWD, real(path).c_str(), at, AT_SYMLINK_NOFOLLOW));
}

void* begin(fuse_conn_info*, fuse_config* config) {
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;  // several mounts are one storage
  config->hard_remove = 1;
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || std::ranges::find(kLies, std::string_view(argv[3])) == std::end(kLies)) {
    (void)std::fprintf(stderr, "usage: lying_fs BACKING MOUNTPOINT LIE\n");
    return 2;
  }
  backing = argv[1];
  lie = argv[3];
  fuse_operations calls = {};
  calls.init = begin;
  calls.getattr = getattr;
  calls.mkdir = make_folder;
  calls.rmdir = remove_folder;
  calls.unlink = remove_file;
  calls.rename = rename_file;
  calls.truncate = resize;
  calls.open = open_file;
  calls.create = create_file;
  calls.read = read_file;
  calls.write = write_file;
  calls.flush = flush_file;
  calls.release = release_file;
  calls.fsync = sync_file;
  calls.fsyncdir = sync_folder;
  calls.readdir = list_folder;
  calls.statfs = room;
  calls.utimens = times;
  std::array<char*, 5> words = {argv[0], argv[2], const_cast<char*>("-f"), const_cast<char*>("-o"),
                                const_cast<char*>("fsname=lying_fs,subtype=lying_fs")};
  return fuse_main(static_cast<int>(words.size()), words.data(), &calls, nullptr);
}
