// nfs_fs: a client of NFS 3 in user space, by libnfs, for machines whose kernel has none. It keeps nothing: each call
// goes to the server. Usage: nfs_fs URL MOUNTPOINT [stable], in the foreground until it is unmounted or gets SIGTERM;
// URL: nfs://127.0.0.1/export?version=3. With "stable" the server makes each write durable before it answers: libnfs
// does not send writes again whose server has lost them before a commit, as a client of NFS 3 must (RFC 1813, 4.8).
#define FUSE_USE_VERSION 31
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>

#include <nfsc/libnfs.h>  // after <sys/time.h>, whose timeval it uses

namespace {

nfs_context* server = nullptr;  // one thread uses it: FUSE is told -s
int more_flags = 0;             // of every open

nfsfh* handle(const fuse_file_info* file) { return reinterpret_cast<nfsfh*>(file->fh); }

int opened(int done, nfsfh* found, fuse_file_info* file) {
  if (done < 0) return done;
  file->fh = reinterpret_cast<std::uint64_t>(found);
  file->direct_io = 1;
  return 0;
}

int getattr(const char* path, struct stat* status, fuse_file_info*) {
  nfs_stat_64 found = {};
  if (const int done = nfs_lstat64(server, path, &found); done < 0) return done;
  status->st_ino = found.nfs_ino;
  status->st_mode = static_cast<mode_t>(found.nfs_mode);
  status->st_nlink = found.nfs_nlink;
  status->st_uid = static_cast<uid_t>(found.nfs_uid);
  status->st_gid = static_cast<gid_t>(found.nfs_gid);
  status->st_size = static_cast<off_t>(found.nfs_size);
  status->st_blocks = static_cast<blkcnt_t>(found.nfs_blocks);
  status->st_mtim.tv_sec = static_cast<time_t>(found.nfs_mtime);
  status->st_ctim.tv_sec = static_cast<time_t>(found.nfs_ctime);
  return 0;
}

int make_folder(const char* path, mode_t mode) { return nfs_mkdir2(server, path, static_cast<int>(mode)); }
int remove_folder(const char* path) { return nfs_rmdir(server, path); }
int remove_file(const char* path) { return nfs_unlink(server, path); }
int rename_file(const char* from, const char* to, unsigned flags) {
  return flags != 0 ? -EINVAL : nfs_rename(server, from, to);
}
int resize(const char* path, off_t size, fuse_file_info*) {
  return nfs_truncate(server, path, static_cast<std::uint64_t>(size));
}

int open_file(const char* path, fuse_file_info* file) {
  nfsfh* found = nullptr;
  const int done = nfs_open(server, path, (file->flags & ~(O_CREAT | O_EXCL | O_DIRECT)) | more_flags, &found);
  return opened(done, found, file);
}

int create_file(const char* path, mode_t mode, fuse_file_info* file) {
  nfsfh* found = nullptr;
  const int done = nfs_create(server, path, (file->flags & ~O_DIRECT) | more_flags, static_cast<int>(mode), &found);
  return opened(done, found, file);
}

int read_file(const char*, char* into, std::size_t size, off_t offset, fuse_file_info* file) {
  return nfs_pread(server, handle(file), static_cast<std::uint64_t>(offset), size, into);
}
int write_file(const char*, const char* from, std::size_t size, off_t offset, fuse_file_info* file) {
  return nfs_pwrite(server, handle(file), static_cast<std::uint64_t>(offset), size, from);
}
int sync_file(const char*, int, fuse_file_info* file) { return nfs_fsync(server, handle(file)); }
int sync_folder(const char*, int, fuse_file_info*) { return 0; }  // NFS 3 makes names durable before it answers
int release_file(const char*, fuse_file_info* file) { return nfs_close(server, handle(file)); }

int list_folder(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
  nfsdir* folder = nullptr;
  if (const int done = nfs_opendir(server, path, &folder); done < 0) return done;
  while (const nfsdirent* const entry = nfs_readdir(server, folder))
    fill(buffer, entry->name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  nfs_closedir(server, folder);
  return 0;
}

int room(const char* path, struct statvfs* found) { return nfs_statvfs(server, path, found); }

int times(const char* path, const timespec at[2], fuse_file_info*) {
  std::array<timeval, 2> both = {timeval{at[0].tv_sec, at[0].tv_nsec / 1000},
                                 timeval{at[1].tv_sec, at[1].tv_nsec / 1000}};
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (at[i].tv_nsec == UTIME_NOW) gettimeofday(&both[i], nullptr);
    if (at[i].tv_nsec == UTIME_OMIT) return -ENOSYS;
  }
  return nfs_utimes(server, path, both.data());
}

void* begin(fuse_conn_info*, fuse_config* config) {
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
  config->hard_remove = 1;
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const bool stable = argc == 4 && std::string(argv[3]) == "stable";
  if (argc != 3 && !stable) {
    std::fprintf(stderr, "usage: nfs_fs URL MOUNTPOINT [stable]\n");
    return 2;
  }
  if (stable) more_flags = O_SYNC;
  constexpr int kDeadline_ms = 30'000;
  server = nfs_init_context();
  nfs_url* const url = server == nullptr ? nullptr : nfs_parse_url_dir(server, argv[1]);
  if (url == nullptr) {
    std::fprintf(stderr, "nfs_fs: %s: is no address of an export\n", argv[1]);
    return 2;
  }
  nfs_set_timeout(server, kDeadline_ms);
  nfs_set_dircache(server, 0);
  if (nfs_mount(server, url->server, url->path) != 0) {
    std::fprintf(stderr, "nfs_fs: %s: %s\n", argv[1], nfs_get_error(server));
    return 1;
  }
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
  calls.release = release_file;
  calls.fsync = sync_file;
  calls.fsyncdir = sync_folder;
  calls.readdir = list_folder;
  calls.statfs = room;
  calls.utimens = times;
  std::array<char*, 6> words = {argv[0],
                                argv[2],
                                const_cast<char*>("-f"),
                                const_cast<char*>("-s"),
                                const_cast<char*>("-o"),
                                const_cast<char*>("fsname=nfs_fs,subtype=nfs_fs")};
  return fuse_main(static_cast<int>(words.size()), words.data(), &calls, nullptr);
}
