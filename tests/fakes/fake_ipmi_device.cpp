// fake_ipmi_device: loaded before a probe, it answers the ioctls of the kernel's IPMI driver on any file that holds a
// number of watts. It stands for the driver's interface, not for a BMC: what a real driver and BMC do is not shown by
// it.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <linux/ioctl.h>
#include <linux/ipmi.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {
long asked = 0;
}  // namespace

extern "C" int ioctl(int file, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == IPMICTL_SEND_COMMAND) {
    const auto* const command = static_cast<const ipmi_req*>(argument);
    asked = command->msg.netfn == 0x2c && command->msg.cmd == 2 ? command->msgid : -1;
    return 0;
  }
  if (request != IPMICTL_RECEIVE_MSG_TRUNC) return static_cast<int>(syscall(SYS_ioctl, file, request, argument));
  char text[32] = {};
  unsigned watts = 0;
  const bool told = pread(file, text, sizeof text - 1, 0) > 0 && std::sscanf(text, "%u", &watts) == 1;
  auto* const answer = static_cast<ipmi_recv*>(argument);
  unsigned char bytes[19] = {0, 0xdc};
  for (int i = 2; i < 10; i += 2) {
    bytes[i] = static_cast<unsigned char>(watts & 255U);
    bytes[i + 1] = static_cast<unsigned char>(watts >> 8U);
  }
  const auto now = static_cast<unsigned>(std::time(nullptr));
  std::memcpy(bytes + 10, &now, sizeof now);
  bytes[18] = 0x40;
  if (!told) bytes[0] = 0xcb;  // not present
  const unsigned short length = told ? sizeof bytes : 1;
  std::memcpy(answer->msg.data, bytes, length);
  answer->msg.data_len = length;
  answer->recv_type = IPMI_RESPONSE_RECV_TYPE;
  answer->msgid = asked;
  return 0;
}
