// nightly_network_disk: preloaded into a program, shows what is at NETWORK_DISK_AT and below as on NFS; for places of
// the database of nights.
#include <cstdlib>
#include <string_view>

#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

extern "C" int statfs(const char* path, struct statfs* out) noexcept {
  constexpr long kNfs = 0x6969;  // statfs(2)
  const char* at = std::getenv("NETWORK_DISK_AT");
  const int failed = static_cast<int>(::syscall(SYS_statfs, path, out));
  if (failed == 0 && at != nullptr && std::string_view(path).starts_with(at)) out->f_type = kNfs;
  return failed;
}
