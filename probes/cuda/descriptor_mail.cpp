// descriptor_mail: SCM_RIGHTS and SCM_CREDENTIALS of unix(7), in the abstract namespace.
#include "probes/cuda/descriptor_mail.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay::cuda {
namespace {

constexpr std::string_view kPrefix = "assay-rank-";

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

std::pair<sockaddr_un, socklen_t> place_of(const std::string& address) {
  sockaddr_un place = {};
  place.sun_family = AF_UNIX;
  if (!address.starts_with(kPrefix) || address.size() + 1 > sizeof place.sun_path)
    throw std::runtime_error("the address of a rank's mailbox is damaged");
  address.copy(place.sun_path + 1, address.size());  // after the zero: not in the file system
  return {place, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size())};
}

void set_limit(int socket, int which, Seconds limit) {
  const auto whole = static_cast<time_t>(limit.count);
  const timeval time{.tv_sec = whole,
                     .tv_usec = static_cast<suseconds_t>((limit.count - static_cast<double>(whole)) * 1e6)};
  if (setsockopt(socket, SOL_SOCKET, which, &time, sizeof time) != 0) fail("a limit of a mailbox");
}

/// Descriptors that came with a message; all are owned, so that none is lost.
struct Came {
  Descriptor descriptor;
  bool of_this_user = false;
};

Came unpack(msghdr& message) {
  Came came;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred who = {};
      std::memcpy(&who, CMSG_DATA(part), sizeof who);
      came.of_this_user = who.uid == geteuid();
    }
    if (part->cmsg_type == SCM_RIGHTS) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part), sizeof number);
      came.descriptor = Descriptor(number);
    }
  }
  return came;
}

/// Room for one descriptor and the sender's credentials.
struct alignas(cmsghdr) Room {
  std::array<char, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))> bytes = {};
};

}  // namespace

DescriptorMail::DescriptorMail() : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  if (!socket_) fail("a mailbox");
  std::array<char, 16> random = {};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) fail("getrandom");
  address_ = std::string(kPrefix) + to_hexadecimal({random.data(), random.size()});
  const int on = 1;
  if (setsockopt(socket_.number(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) fail("SO_PASSCRED of a mailbox");
  const auto [place, length] = place_of(address_);
  if (bind(socket_.number(), reinterpret_cast<const sockaddr*>(&place), length) != 0) fail("the address of a mailbox");
}

void DescriptorMail::send(const std::string& to, int from, const Descriptor& descriptor, Seconds limit) const {
  auto [place, length] = place_of(to);
  Room room;
  iovec word{.iov_base = &from, .iov_len = sizeof from};
  msghdr message = {};
  message.msg_name = &place;
  message.msg_namelen = length;
  message.msg_iov = &word;
  message.msg_iovlen = 1;
  message.msg_control = room.bytes.data();
  message.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = descriptor.number();
  std::memcpy(CMSG_DATA(part), &number, sizeof number);
  set_limit(socket_.number(), SO_SNDTIMEO, limit);  // the other's queue may be full
  if (sendmsg(socket_.number(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof from))
    fail("handing a descriptor to another rank");
}

std::pair<int, Descriptor> DescriptorMail::take(Seconds limit) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit.count);
  while (true) {
    const double left_s = std::chrono::duration<double>(until - std::chrono::steady_clock::now()).count();
    if (left_s <= 0)
      throw std::runtime_error(fmt::format("no descriptor came from another rank for {:g} s", limit.count));
    pollfd waiting{.fd = socket_.number(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(left_s * 1e3) + 1) <= 0) continue;
    int from = -1;
    Room room;
    iovec word{.iov_base = &from, .iov_len = sizeof from};
    msghdr message = {};
    message.msg_iov = &word;
    message.msg_iovlen = 1;
    message.msg_control = room.bytes.data();
    message.msg_controllen = room.bytes.size();
    const ssize_t got = recvmsg(socket_.number(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0) continue;
    Came came = unpack(message);
    if (got == static_cast<ssize_t>(sizeof from) && came.of_this_user && came.descriptor)
      return {from, std::move(came.descriptor)};
  }
}

}  // namespace assay::cuda
