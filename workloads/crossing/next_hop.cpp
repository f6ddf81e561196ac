// next_hop: two questions to the kernel by rtnetlink(7): the route to an address, and the state of a neighbour.
#include "workloads/crossing/next_hop.h"

// Those of glibc before those of the kernel, which then leave out the common part.
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#include "probes/core/descriptor.h"
#include "probes/core/probe.h"

namespace assay::crossing {
namespace {

// A known neighbour is believed for 5 s after a packet, then asked three times in 3 s (Linux ip-sysctl.rst:
// delay_first_probe_time, ucast_solicit, retrans_time_ms).
constexpr std::chrono::seconds kUntilKnown{10};
constexpr std::chrono::milliseconds kLookAgain{100};
constexpr std::size_t kLargestReply = 8192;

/// A numeric address as bytes in network order.
struct Bytes {
  unsigned char family = AF_UNSPEC;
  std::string bytes;
};

Bytes bytes_of(const std::string& address) {
  char room[sizeof(in6_addr)] = {};
  if (inet_pton(AF_INET, address.c_str(), room) == 1) return {AF_INET, {room, sizeof(in_addr)}};
  if (inet_pton(AF_INET6, address.c_str(), room) == 1) return {AF_INET6, {room, sizeof(in6_addr)}};
  return {};
}

/// The answer to one question: `body` with the address as attribute `kind`. Empty if the kernel has none.
template <class Body>
std::string asked(std::uint16_t type, const Body& body, std::uint16_t kind, const std::string& address) {
  struct {
    nlmsghdr head;
    Body body;
    char attribute[RTA_SPACE(sizeof(in6_addr))];
  } request{};
  request.head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof body) + RTA_LENGTH(address.size()));
  request.head.nlmsg_type = type;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.body = body;
  auto* attribute = reinterpret_cast<rtattr*>(request.attribute);
  attribute->rta_type = kind;
  attribute->rta_len = static_cast<std::uint16_t>(RTA_LENGTH(address.size()));
  std::memcpy(RTA_DATA(attribute), address.data(), address.size());
  const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const timeval patience{.tv_sec = 1, .tv_usec = 0};  // the kernel answers within the call
  (void)::setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string reply(kLargestReply, '\0');
  if (::send(socket.number(), &request, request.head.nlmsg_len, 0) < 0) return "";
  const auto size = ::recv(socket.number(), reply.data(), reply.size(), 0);
  reply.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  nlmsghdr head{};
  if (reply.size() < NLMSG_LENGTH(sizeof body)) return "";
  std::memcpy(&head, reply.data(), sizeof head);
  return head.nlmsg_type == NLMSG_ERROR ? "" : reply;
}

/// The value of attribute `kind` behind the `body` bytes of a reply; empty if it has none.
std::string attribute_of(const std::string& reply, std::size_t body, int kind) {
  auto left = static_cast<int>(reply.size() - NLMSG_SPACE(body));
  for (const auto* one = reinterpret_cast<const rtattr*>(reply.data() + NLMSG_SPACE(body)); RTA_OK(one, left);
       one = RTA_NEXT(one, left))
    if (one->rta_type == kind) return {static_cast<const char*>(RTA_DATA(one)), RTA_PAYLOAD(one)};
  return "";
}

/// NUD_… of a neighbour; NUD_NONE if the kernel does not know it.
int neighbour_state(const NextHop& hop) {
  const Bytes address = bytes_of(hop.address);
  ndmsg body{};
  body.ndm_family = address.family;
  body.ndm_ifindex = static_cast<int>(::if_nametoindex(hop.interface.c_str()));
  const std::string reply = asked(RTM_GETNEIGH, body, NDA_DST, address.bytes);
  if (reply.size() < NLMSG_LENGTH(sizeof body)) return NUD_NONE;
  std::memcpy(&body, reply.data() + NLMSG_HDRLEN, sizeof body);
  return body.ndm_state;
}

int flags_of(const std::string& interface) {
  ifreq one{};
  std::strncpy(one.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return ::ioctl(socket.number(), SIOCGIFFLAGS, &one) == 0 ? one.ifr_flags : 0;
}

}  // namespace

std::optional<NextHop> next_hop_to(const std::string& address) {
  const Bytes wanted = bytes_of(address);
  constexpr unsigned char kBits = 8;
  rtmsg body{};
  body.rtm_family = wanted.family;
  body.rtm_dst_len = static_cast<unsigned char>(wanted.bytes.size() * kBits);
  const std::string reply = asked(RTM_GETROUTE, body, RTA_DST, wanted.bytes);
  if (reply.empty()) return std::nullopt;
  std::memcpy(&body, reply.data() + NLMSG_HDRLEN, sizeof body);
  NextHop hop{.local = body.rtm_type == RTN_LOCAL, .address = address, .interface = ""};
  if (const auto index = attribute_of(reply, sizeof body, RTA_OIF); index.size() == sizeof(std::uint32_t)) {
    std::uint32_t number = 0;
    std::memcpy(&number, index.data(), sizeof number);
    char name[IF_NAMESIZE] = {};
    if (::if_indextoname(number, name) != nullptr) hop.interface = name;
  }
  if (const auto gateway = attribute_of(reply, sizeof body, RTA_GATEWAY); gateway.size() == wanted.bytes.size()) {
    char text[INET6_ADDRSTRLEN] = {};
    hop.is_gateway = true;
    if (inet_ntop(wanted.family, gateway.data(), text, sizeof text) != nullptr) hop.address = text;
  }
  return hop;
}

std::string why_cut_off(const std::string& interface) {
  if ((flags_of(interface) & IFF_RUNNING) != 0) return "";
  return fmt::format("nothing left this node: interface {} has no carrier", interface);
}

std::string why_cut_off(const NextHop& hop) {
  if (std::string why = why_cut_off(hop.interface); !why.empty()) return why;
  if (!hop.is_gateway || (flags_of(hop.interface) & IFF_NOARP) != 0) return "";
  // STALE too: an entry that a packet has used becomes that only after an answer.
  constexpr int kAlive = NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP | NUD_STALE;
  const auto until = std::chrono::steady_clock::now() + kUntilKnown;
  while (std::chrono::steady_clock::now() < until && !stop_requested()) {
    const int state = neighbour_state(hop);
    if ((state & kAlive) != 0) return "";
    if (state == NUD_FAILED || state == NUD_NONE) break;
    sleep_until_stopped(kLookAgain);
  }
  return fmt::format("nothing left this node: its gateway {} does not answer", hop.address);
}

}  // namespace assay::crossing
