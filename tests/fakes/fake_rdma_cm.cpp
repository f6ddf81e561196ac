// fake_rdma_cm: loaded before a probe, it stands for /dev/infiniband/rdma_cm of the kernel and a listener behind it.
// Every question is answered at once, but the one that ASSAY_FAKE_RDMA_CM names (address, route, request): to that
// one nothing ever comes back, not even the kernel's own time limit. Threads of a probe use one identifier at a time.
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>

#include <rdma/rdma_user_cm.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr std::uint32_t kAddressResolved = 0, kRouteResolved = 2, kEstablished = 9;  // rdma_cma.h of rdma-core

int device = -1;          // an eventfd, which is readable while an event waits
std::uint32_t event = 0;  // the one that waits

ssize_t given_to(int file, const void* bytes, std::size_t size) { return syscall(SYS_write, file, bytes, size); }

void answer(std::string_view question, std::uint32_t with) {
  const char* const silent = std::getenv("ASSAY_FAKE_RDMA_CM");
  if (silent != nullptr && question == silent) return;
  const std::uint64_t one = 1;
  event = with;
  (void)given_to(device, &one, sizeof one);  // only a full counter fails
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
    reinterpret_cast<rdma_ucm_event_resp*>(wanted.response)->event = event;
    std::uint64_t taken = 0;
    (void)!read(device, &taken, sizeof taken);  // the caller has waited for it
  } else if (head.cmd == RDMA_USER_CM_CMD_RESOLVE_IP || head.cmd == RDMA_USER_CM_CMD_RESOLVE_ADDR) {
    answer("address", kAddressResolved);
  } else if (head.cmd == RDMA_USER_CM_CMD_RESOLVE_ROUTE) {
    answer("route", kRouteResolved);
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
