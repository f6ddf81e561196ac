// fake_ipmi_device: loaded before a probe, it answers the ioctls of the kernel's IPMI driver on any file that holds a
// number of watts and, where the BMC has a power limit, its watts and its correction time in ms. It stands for the
// driver's interface, not for a BMC: what a real driver and BMC do is not shown by it.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <linux/ioctl.h>
#include <linux/ipmi.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr unsigned char kGroup = 0xdc, kNotPresent = 0xcb, kNoLimit = 0x80, kReading = 2, kLimit = 3;

long asked = 0;
unsigned char asked_command = 0;

/// What the file says: how many of the numbers are there.
struct Told {
  unsigned watts = 0, limit_w = 0, correction_ms = 0;
  int numbers = 0;
};

Told told_by(int file) {
  char text[64] = {};
  Told told;
  if (pread(file, text, sizeof text - 1, 0) > 0)
    told.numbers = std::sscanf(text, "%u %u %u", &told.watts, &told.limit_w, &told.correction_ms);
  return told;
}

void put16(unsigned char* at, unsigned value) {
  at[0] = static_cast<unsigned char>(value & 255U);
  at[1] = static_cast<unsigned char>(value >> 8U & 255U);
}

/// Writes the answer to Get Power Reading into `bytes`; its length.
unsigned short reading(const Told& told, unsigned char* bytes) {
  constexpr unsigned short kLength = 19;
  bytes[0] = told.numbers < 1 ? kNotPresent : 0;
  bytes[1] = kGroup;
  for (int i = 2; i < 10; i += 2) put16(bytes + i, told.watts);
  const auto now = static_cast<unsigned>(std::time(nullptr));
  std::memcpy(bytes + 10, &now, sizeof now);
  bytes[18] = 0x40;
  return bytes[0] == 0 ? kLength : 1;
}

/// Writes the answer to Get Power Limit into `bytes`; its length.
unsigned short limit(const Told& told, unsigned char* bytes) {
  constexpr unsigned short kLength = 15;
  bytes[0] = told.numbers < 1 ? kNotPresent : told.numbers < 3 ? kNoLimit : 0;
  bytes[1] = kGroup;
  put16(bytes + 5, told.limit_w);
  put16(bytes + 7, told.correction_ms & 0xffffU);
  put16(bytes + 9, told.correction_ms >> 16U);
  return bytes[0] == 0 ? kLength : 1;
}

}  // namespace

extern "C" int ioctl(int file, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == IPMICTL_SEND_COMMAND) {
    const auto* const command = static_cast<const ipmi_req*>(argument);
    asked_command = command->msg.cmd;
    const bool known = asked_command == kReading || asked_command == kLimit;
    asked = command->msg.netfn == 0x2c && known ? command->msgid : -1;
    return 0;
  }
  if (request != IPMICTL_RECEIVE_MSG_TRUNC) return static_cast<int>(syscall(SYS_ioctl, file, request, argument));
  auto* const answer = static_cast<ipmi_recv*>(argument);
  unsigned char bytes[19] = {};
  const Told told = told_by(file);
  const unsigned short length = asked_command == kLimit ? limit(told, bytes) : reading(told, bytes);
  std::memcpy(answer->msg.data, bytes, length);
  answer->msg.data_len = length;
  answer->recv_type = IPMI_RESPONSE_RECV_TYPE;
  answer->msgid = asked;
  return 0;
}
