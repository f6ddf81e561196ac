// tried: sockets and their error queues, in which ICMP messages stand with their sender.
#include "workloads/crossing/tried.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>

// Those of glibc before those of the kernel, which then leave out the common part.
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/errqueue.h>
#include <linux/icmp.h>
#include <poll.h>

#include "probes/core/probe.h"
#include "probes/core/text.h"
#include "workloads/crossing/next_hop.h"

namespace assay::crossing {
namespace {

constexpr std::size_t kLongestSaid = 120;  // of a service's first words
constexpr double kForFirstWords_s = 0.5;   // servers that speak first, as sshd, do so at once
constexpr int kSlice_ms = 100;             // between looks at stop_requested()
constexpr std::size_t kLargestDatagram = 1500;

struct Icmp {
  bool v6 = false;
  int type = 0, code = 0;
  std::string from;
};

/// The ICMP message in the socket's error queue; nothing if there is none.
std::optional<Icmp> icmp_in(int socket) {
  alignas(cmsghdr) char control[512] = {};
  char byte = 0;
  iovec part{.iov_base = &byte, .iov_len = 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    const bool v4 = one->cmsg_level == SOL_IP && one->cmsg_type == IP_RECVERR;
    const bool v6 = one->cmsg_level == SOL_IPV6 && one->cmsg_type == IPV6_RECVERR;
    if (!v4 && !v6) continue;
    const auto* error = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(one));
    if (error->ee_origin != SO_EE_ORIGIN_ICMP && error->ee_origin != SO_EE_ORIGIN_ICMP6) continue;
    return Icmp{.v6 = error->ee_origin == SO_EE_ORIGIN_ICMP6,
                .type = error->ee_type,
                .code = error->ee_code,
                .from = text_of(SO_EE_OFFENDER(error))};
  }
  return std::nullopt;
}

/// The outcome by a failed call on `socket`.
Tried of_error(int socket, int error, const Target& target) {
  const auto icmp = icmp_in(socket);
  const auto sender = icmp && icmp->from != target.address ? next_hop_to(icmp->from) : std::nullopt;
  const bool of_itself = sender && sender->local;
  if (icmp && !of_itself) return of_icmp(icmp->v6, icmp->type, icmp->code, icmp->from);
  switch (error) {
    case ECONNREFUSED:
      if (of_itself) return {Outcome::unclear, "nothing left this node: a filter of its own refused it"};
      return {Outcome::refused, "TCP reset"};
    case ECONNRESET:
      return {Outcome::refused, "TCP reset"};
    case ETIMEDOUT:
      return {Outcome::no_answer, "nothing came back"};
    case EHOSTUNREACH:
      return no_neighbour(target);
    default:
      return {Outcome::unclear, fmt::format("nothing left this node: {}", std::strerror(error))};
  }
}

Descriptor socket_for(const Address& address, int type, int from_port) {
  Descriptor socket(::socket(address.bytes.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) throw std::runtime_error(fmt::format("socket: {}", std::strerror(errno)));
  const int on = 1;
  // Without it ICMP messages would be errors without sender and code; an old kernel without it gives those.
  (void)::setsockopt(socket.number(), address.is_v6() ? SOL_IPV6 : SOL_IP, address.is_v6() ? IPV6_RECVERR : IP_RECVERR,
                     &on, sizeof on);
  if (from_port == 0) return socket;
  Address own;  // of any address of this node
  own.bytes.ss_family = address.bytes.ss_family;
  own.length = address.length;
  reinterpret_cast<sockaddr_in&>(own.bytes).sin_port =
      htons(static_cast<std::uint16_t>(from_port));                               // in both families
  (void)::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // the bind says if it mattered
  if (::bind(socket.number(), own.get(), own.length) != 0)  // from another port a target would not know it
    throw std::runtime_error(
        fmt::format("port {} to send from: {}\nhint: run again, from another port", from_port, std::strerror(errno)));
  return socket;
}

int error_of(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace

Address address_of(const Target& target) {
  Address found;
  auto& v4 = reinterpret_cast<sockaddr_in&>(found.bytes);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(found.bytes);
  const auto port = htons(static_cast<std::uint16_t>(target.port));
  if (inet_pton(AF_INET, target.address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    found.length = sizeof v4;
  } else if (inet_pton(AF_INET6, target.address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    found.length = sizeof v6;
  } else {
    throw std::runtime_error(fmt::format("address: '{}' is not numeric", target.address));
  }
  return found;
}

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* const bytes = address->sa_family == AF_INET6
                                ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)
                                : &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  return inet_ntop(address->sa_family, bytes, text, sizeof text) == nullptr ? "?" : text;
}

bool wait_for(int descriptor, short events, Clock::time_point until) {
  while (!stop_requested()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd one{.fd = descriptor, .events = events, .revents = 0};
    if (::poll(&one, 1, static_cast<int>(std::min<long long>(left, kSlice_ms))) > 0) return true;
  }
  return false;
}

Clock::time_point after(Seconds time) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.count));
}

Tried no_neighbour(const Target& target) {
  const auto hop = next_hop_to(target.address);
  if (hop && !hop->is_gateway)
    return {Outcome::no_answer, fmt::format("{} is on this node's link, and does not answer ARP", target.address)};
  return {Outcome::unclear, "nothing left this node: its gateway does not answer"};
}

Tried of_icmp(bool v6, int type, int code, const std::string& from) {
  constexpr int kPolicyFail = 5, kRejectRoute = 6;  // RFC 4443, 3.1; not in the C library
  const bool filter =
      v6 ? type == ICMP6_DST_UNREACH && (code == ICMP6_DST_UNREACH_ADMIN || code == ICMP6_DST_UNREACH_NOPORT ||
                                         code == kPolicyFail || code == kRejectRoute)
         : type == ICMP_DEST_UNREACH && (code == ICMP_PROT_UNREACH || code == ICMP_PORT_UNREACH ||
                                         code == ICMP_NET_ANO || code == ICMP_HOST_ANO || code == ICMP_PKT_FILTERED);
  return {filter ? Outcome::refused : Outcome::no_answer,
          fmt::format("ICMP{} type {} code {} from {}", v6 ? "v6" : "", type, code, from)};
}

std::optional<Tried> of_icmp_message(std::string_view message, const std::string& from, const Target& target) {
  const Address about = address_of(target);
  const bool v6 = about.is_v6();
  const auto byte = [&](std::size_t at) { return at < message.size() ? static_cast<unsigned char>(message[at]) : 0; };
  const auto words_of_header = [&](std::size_t at) { return static_cast<std::size_t>(byte(at) & 15) * 4; };
  const std::size_t icmp = v6 ? 0 : words_of_header(0);
  const std::size_t quoted = icmp + sizeof(icmphdr);  // of both versions 8 B
  const std::size_t udp = quoted + (v6 ? sizeof(ip6_hdr) : words_of_header(quoted));
  const std::size_t protocol = quoted + (v6 ? offsetof(ip6_hdr, ip6_nxt) : offsetof(iphdr, protocol));
  const std::size_t to = quoted + (v6 ? offsetof(ip6_hdr, ip6_dst) : offsetof(iphdr, daddr));
  const void* const address =
      v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(about.bytes).sin6_addr)
         : &reinterpret_cast<const sockaddr_in&>(about.bytes).sin_addr;
  const std::size_t size = v6 ? sizeof(in6_addr) : sizeof(in_addr);
  if (message.size() < udp + 4 || byte(icmp) != (v6 ? ICMP6_DST_UNREACH : ICMP_DEST_UNREACH) ||
      byte(protocol) != IPPROTO_UDP || std::memcmp(message.data() + to, address, size) != 0 ||
      byte(udp + 2) * 256 + byte(udp + 3) != target.port)
    return std::nullopt;
  const auto hop = next_hop_to(from);
  if (hop && hop->local) return Tried{Outcome::unclear, "nothing left this node: a filter of its own refused it"};
  return of_icmp(v6, byte(icmp), byte(icmp + 1), from);
}

std::pair<Descriptor, Tried> open_tcp(const Target& target, bool reserved) {
  const Address address = address_of(target);
  Descriptor socket = socket_for(address, SOCK_STREAM, target.from_port);
  // Without the right the connection comes from a high port, and a server that minds says so.
  if (reserved && !address.is_v6()) (void)::bindresvport(socket.number(), nullptr);
  const auto until = after(target.timeout);
  if (::connect(socket.number(), address.get(), address.length) != 0 && errno != EINPROGRESS)
    return {Descriptor(), of_error(socket.number(), errno, target)};
  if (!wait_for(socket.number(), POLLOUT, until)) return {Descriptor(), Tried{Outcome::no_answer, "nothing came back"}};
  if (const int error = error_of(socket.number()); error != 0)
    return {Descriptor(), of_error(socket.number(), error, target)};
  return {std::move(socket), Tried{Outcome::answered, "the connection was accepted"}};
}

Tried try_tcp(const Target& target) {
  auto [socket, tried] = open_tcp(target);
  if (!socket) return tried;
  const std::string said = exchange(socket, "", 1, {kForFirstWords_s});
  if (!said.empty()) tried.evidence += fmt::format(" and said '{}'", printable(said, kLongestSaid));
  return tried;
}

Tried try_udp(const Target& target, std::string_view payload, std::string_view answer) {
  const Address address = address_of(target);
  const Descriptor socket = socket_for(address, SOCK_DGRAM, target.from_port);
  const int number = socket.number();
  if (::connect(number, address.get(), address.length) != 0 ||
      ::send(number, payload.data(), payload.size(), MSG_NOSIGNAL) < 0)
    return of_error(number, errno, target);
  const auto until = after(target.timeout);
  while (wait_for(number, POLLIN, until)) {
    char bytes[kLargestDatagram];
    const auto size = ::recv(number, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) {
      // An ICMP message wakes the wait without data; the error is the socket's.
      if (const int error = error_of(number); error != 0) return of_error(number, error, target);
      continue;
    }
    if (size < 0) return of_error(number, errno, target);
    const std::string_view came(bytes, static_cast<std::size_t>(size));
    if (came.starts_with(answer)) return {Outcome::answered, fmt::format("{} bytes came back", size)};
    return {Outcome::unclear, fmt::format("{} bytes came back that are none of the protocol", size)};
  }
  return {Outcome::no_answer, "nothing came back"};
}

std::string exchange(const Descriptor& connection, std::string_view bytes, std::size_t wanted, Seconds timeout) {
  const auto until = after(timeout);
  while (!bytes.empty()) {
    const auto sent = ::send(connection.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno != EAGAIN || !wait_for(connection.number(), POLLOUT, until))) return "";
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string came;
  while (came.size() < wanted && wait_for(connection.number(), POLLIN, until)) {
    char part[kLargestDatagram];
    const auto size = ::recv(connection.number(), part, sizeof part, 0);
    if (size <= 0) break;
    came.append(part, static_cast<std::size_t>(size));
  }
  return came;
}

}  // namespace assay::crossing
