// fake_rdma_cm: loaded before a probe, it stands for /dev/infiniband/rdma_cm of the kernel and a listener behind it.
// Every question is answered at once, but the one that ASSAY_FAKE_RDMA_CM names (address, route, request): to that
// one nothing ever comes back, not even the kernel's own time limit. Threads of a probe use one identifier at a time.
// Paths of InfiniBand are asked of the command in ASSAY_FAKE_SUBNET_MANAGER, if it is set, with GID and P_Key behind
// it: what it prints is the path.
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>

#include <arpa/inet.h>
#include <rdma/rdma_user_cm.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr std::uint32_t kAddressResolved = 0, kRouteResolved = 2, kRouteError = 3,
                        kEstablished = 9;  // rdma_cma.h of rdma-core

int device = -1;          // an eventfd, which is readable while an event waits
std::uint32_t event = 0;  // the one that waits
std::string destination;  // of InfiniBand, as words of the command

ssize_t given_to(int file, const void* bytes, std::size_t size) { return syscall(SYS_write, file, bytes, size); }

void answer(std::string_view question, std::uint32_t with) {
  const char* const silent = std::getenv("ASSAY_FAKE_RDMA_CM");
  if (silent != nullptr && question == silent) return;
  const std::uint64_t one = 1;
  event = with;
  (void)given_to(device, &one, sizeof one);  // only a full counter fails
}

/// Remembers an address of the form of rdma/ib.h: family, P_Key, flow, GID.
void remember(const rdma_ucm_resolve_addr& wanted) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&wanted.dst_addr);
  char gid[INET6_ADDRSTRLEN], key[sizeof " --pkey 0xffff"];
  inet_ntop(AF_INET6, bytes + 8, gid, sizeof gid);
  std::snprintf(key, sizeof key, " --pkey 0x%02x%02x", unsigned{bytes[2]}, unsigned{bytes[3]});
  destination = std::string(" --dgid ") + gid + key;
}

/// Whether the subnet manager gives a path there, if there is one.
bool has_path() {
  const char* const command = std::getenv("ASSAY_FAKE_SUBNET_MANAGER");
  if (command == nullptr) return true;
  std::FILE* const said = popen((command + destination).c_str(), "r");
  const bool any = said != nullptr && std::fgetc(said) != EOF;
  if (said != nullptr) (void)pclose(said);  // it was read as far as it matters
  return any;
}

/// The command that `bytes` are; answers of the kernel go to the place that its body names first.
void carry_out(const char* bytes) {
  rdma_ucm_cmd_hdr head{};
  std::memcpy(&head, bytes, sizeof head);
  const char* const body = bytes + sizeof head;
  if (head.cmd == RDMA_USER_CM_CMD_CREATE_ID) {
    rdma_ucm_create_id wanted{};
    std::memcpy(&wanted, body, sizeof wanted);
    reinterpret_cast<rdma_ucm_create_id_resp*>(wanted.response)->id = 1;
  } else if (head.cmd == RDMA_USER_CM_CMD_GET_EVENT) {
    rdma_ucm_get_event wanted{};
    std::memcpy(&wanted, body, sizeof wanted);
    auto* const came = reinterpret_cast<rdma_ucm_event_resp*>(wanted.response);
    came->event = event;
    if (event == kRouteError)
      came->status = static_cast<std::uint32_t>(-EINVAL);  // recv_handler in sa_query.c of Linux
    std::uint64_t taken = 0;
    (void)!read(device, &taken, sizeof taken);  // the caller has waited for it
  } else if (head.cmd == RDMA_USER_CM_CMD_RESOLVE_IP || head.cmd == RDMA_USER_CM_CMD_RESOLVE_ADDR) {
    rdma_ucm_resolve_addr wanted{};
    if (head.cmd == RDMA_USER_CM_CMD_RESOLVE_ADDR) std::memcpy(&wanted, body, sizeof wanted), remember(wanted);
    answer("address", kAddressResolved);
  } else if (head.cmd == RDMA_USER_CM_CMD_RESOLVE_ROUTE) {
    answer("route", has_path() ? kRouteResolved : kRouteError);
  } else if (head.cmd == RDMA_USER_CM_CMD_CONNECT) {
    answer("request", kEstablished);
  }
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = va_arg(arguments, int);  // of a file that is not made the kernel does not look at it
  va_end(arguments);
  if (std::string_view(path) == "/dev/infiniband/rdma_cm") return device = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

extern "C" ssize_t write(int file, const void* bytes, std::size_t size) {
  if (file != device || device < 0) return given_to(file, bytes, size);
  carry_out(static_cast<const char*>(bytes));
  return static_cast<ssize_t>(size);
}
