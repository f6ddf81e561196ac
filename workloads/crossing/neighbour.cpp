// neighbour: the question and its answer as bytes. The kernel's own table is not asked: it may know an address that is
// gone.
#include "workloads/crossing/neighbour.h"

#include <cerrno>
#include <cstring>

// Those of glibc before those of the kernel, which then leave out the common part.
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "probes/core/probe.h"
#include "probes/core/text.h"
#include "workloads/crossing/next_hop.h"

namespace assay::crossing {
namespace {

constexpr const char* kNothingLeft = "nothing left this node";

/// The Ethernet interface that asks, or why there is none.
struct Link {
  int index = 0;
  std::string hardware;  ///< its address
  std::string missing;
};

std::string missing_words(const std::string& interface, const char* what) {
  return fmt::format("{}: interface '{}' has no {}", kNothingLeft, interface, what);
}

ifreq request_for(const std::string& interface) {
  ifreq asked{};
  std::strncpy(asked.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  return asked;
}

Link link_of(int socket, const std::string& interface) {
  ifreq asked = request_for(interface);
  Link link;
  link.index = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (link.index == 0) {
    link.missing = missing_words(interface, "index, so it is not there");
  } else if (::ioctl(socket, SIOCGIFHWADDR, &asked) != 0 || asked.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
    link.missing = missing_words(interface, "Ethernet address");
  }
  link.hardware.assign(asked.ifr_hwaddr.sa_data, ETH_ALEN);
  return link;
}

/// `descriptor`, or Skip by the error of the call that made it.
Descriptor raw_socket(int descriptor, const char* what) {
  if (descriptor < 0) throw Skip(fmt::format("{} needs CAP_NET_RAW: {}", what, std::strerror(errno)));
  return Descriptor(descriptor);
}

Tried not_sent() { return {Outcome::unclear, fmt::format("{}: {}", kNothingLeft, std::strerror(errno))}; }

Tried ask_by_arp(const Address& target, const std::string& interface, Seconds timeout) {
  const Descriptor socket =
      raw_socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ARP)), "ARP");
  const Link from = link_of(socket.number(), interface);
  if (!from.missing.empty()) return {Outcome::unclear, from.missing};
  ifreq asked = request_for(interface);
  const Descriptor inet(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (::ioctl(inet.number(), SIOCGIFADDR, &asked) != 0)
    return {Outcome::unclear, missing_words(interface, "IPv4 address")};
  ether_arp request{};
  request.ea_hdr = {.ar_hrd = htons(ARPHRD_ETHER),
                    .ar_pro = htons(ETH_P_IP),
                    .ar_hln = ETH_ALEN,
                    .ar_pln = sizeof(in_addr),
                    .ar_op = htons(ARPOP_REQUEST)};
  std::memcpy(request.arp_sha, from.hardware.data(), ETH_ALEN);
  std::memcpy(request.arp_spa, &reinterpret_cast<const sockaddr_in&>(asked.ifr_addr).sin_addr, sizeof(in_addr));
  std::memcpy(request.arp_tpa, &reinterpret_cast<const sockaddr_in&>(target.bytes).sin_addr, sizeof(in_addr));
  sockaddr_ll link{};
  link.sll_family = AF_PACKET;
  link.sll_protocol = htons(ETH_P_ARP);
  link.sll_ifindex = from.index;
  if (::bind(socket.number(), reinterpret_cast<const sockaddr*>(&link), sizeof link) != 0) return not_sent();
  link.sll_halen = ETH_ALEN;
  std::memset(link.sll_addr, 0xff, ETH_ALEN);
  if (::sendto(socket.number(), &request, sizeof request, 0, reinterpret_cast<const sockaddr*>(&link), sizeof link) < 0)
    return not_sent();
  const auto until = after(timeout);
  while (wait_for(socket.number(), POLLIN, until)) {
    ether_arp came{};
    const auto size = ::recv(socket.number(), &came, sizeof came, MSG_DONTWAIT);
    if (size < static_cast<ssize_t>(sizeof came) || came.ea_hdr.ar_op != htons(ARPOP_REPLY) ||
        std::memcmp(came.arp_spa, request.arp_tpa, sizeof(in_addr)) != 0)
      continue;
    const std::string_view sender(reinterpret_cast<const char*>(came.arp_sha), ETH_ALEN);
    return {Outcome::answered, fmt::format("ARP reply from {}", to_hexadecimal(sender))};
  }
  return {Outcome::no_answer, "no ARP reply"};
}

/// A solicitation with the link-layer address of its sender; the kernel fills in the checksum.
struct Solicitation {
  nd_neighbor_solicit head{};
  nd_opt_hdr option{};
  unsigned char hardware[ETH_ALEN] = {};
};
static_assert(sizeof(Solicitation) == sizeof(nd_neighbor_solicit) + 8);

/// The group of the nodes whose addresses end as `target` does: ff02::1:ffXX:XXXX (RFC 4291, 2.7.1).
in6_addr solicited_group(const in6_addr& target) {
  constexpr std::size_t kEnd = 13;
  in6_addr group{};
  group.s6_addr[0] = 0xff;
  group.s6_addr[1] = 2;
  group.s6_addr[11] = 1;
  group.s6_addr[12] = 0xff;
  std::memcpy(group.s6_addr + kEnd, target.s6_addr + kEnd, sizeof target - kEnd);
  return group;
}

Tried ask_by_discovery(const in6_addr& target, const std::string& interface, Seconds timeout) {
  const Descriptor socket =
      raw_socket(::socket(AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMPV6), "neighbour discovery");
  const Link from = link_of(socket.number(), interface);
  if (!from.missing.empty()) return {Outcome::unclear, from.missing};
  icmp6_filter only{};
  ICMP6_FILTER_SETBLOCKALL(&only);
  ICMP6_FILTER_SETPASS(ND_NEIGHBOR_ADVERT, &only);
  constexpr int kOnLink = 255;  // hops of a packet that no router has forwarded; nodes ignore others
  if (::setsockopt(socket.number(), IPPROTO_ICMPV6, ICMP6_FILTER, &only, sizeof only) != 0 ||
      ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &kOnLink, sizeof kOnLink) != 0 ||
      ::setsockopt(socket.number(), SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                   static_cast<socklen_t>(interface.size())) != 0)
    return not_sent();
  Solicitation request;
  request.head.nd_ns_type = ND_NEIGHBOR_SOLICIT;
  request.head.nd_ns_target = target;
  request.option = {.nd_opt_type = ND_OPT_SOURCE_LINKADDR, .nd_opt_len = 1};
  std::memcpy(request.hardware, from.hardware.data(), ETH_ALEN);
  sockaddr_in6 group{};
  group.sin6_family = AF_INET6;
  group.sin6_addr = solicited_group(target);
  group.sin6_scope_id = static_cast<std::uint32_t>(from.index);
  if (::sendto(socket.number(), &request, sizeof request, 0, reinterpret_cast<const sockaddr*>(&group), sizeof group) <
      0)
    return not_sent();
  const auto until = after(timeout);
  while (wait_for(socket.number(), POLLIN, until)) {
    nd_neighbor_advert came{};
    sockaddr_in6 sender{};
    socklen_t length = sizeof sender;
    const auto size =
        ::recvfrom(socket.number(), &came, sizeof came, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&sender), &length);
    if (size < static_cast<ssize_t>(sizeof came) || std::memcmp(&came.nd_na_target, &target, sizeof target) != 0)
      continue;
    return {Outcome::answered,
            fmt::format("neighbour advertisement from {}", text_of(reinterpret_cast<const sockaddr*>(&sender)))};
  }
  return {Outcome::no_answer, "no neighbour advertisement"};
}

}  // namespace

Tried try_neighbour(const Target& target, const std::string& interface) {
  const Address address = address_of(target);
  const auto hop = next_hop_to(target.address);
  const std::string asking = interface.empty() && hop ? hop->interface : interface;
  if (!address.is_v6()) return ask_by_arp(address, asking, target.timeout);
  return ask_by_discovery(reinterpret_cast<const sockaddr_in6&>(address.bytes).sin6_addr, asking, target.timeout);
}

}  // namespace assay::crossing
