// watch: a raw socket, which the kernel gives a copy of each packet that it delivers, after its filters (raw(7)). A
// filter on the socket leaves only packets to the path's port from the two ports of the step, so that a busy service
// takes no place in its buffer.
#include "workloads/crossing/watch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <poll.h>

#include "probes/core/probe.h"
#include "probes/core/sha256.h"

namespace assay::crossing {
namespace {

constexpr int kFirstPort = 61000, kPairs = 2267;  // to 65533
constexpr std::size_t kLargest = 2048;

/// Lets packets to `port` from one of `from` and the next port through. Of IPv4 the socket gives the IP header too.
bool attach_filter(int socket, bool v6, int port, int from) {
  const auto load = static_cast<std::uint16_t>(BPF_LD | BPF_H | (v6 ? BPF_ABS : BPF_IND));
  constexpr auto kSkipHeader = static_cast<std::uint16_t>(BPF_LDX | BPF_B | BPF_MSH);  // X: bytes of the IP header
  constexpr auto kNoHeader = static_cast<std::uint16_t>(BPF_LDX | BPF_IMM);
  constexpr auto kEqual = static_cast<std::uint16_t>(BPF_JMP | BPF_JEQ | BPF_K);
  constexpr auto kReturn = static_cast<std::uint16_t>(BPF_RET | BPF_K);
  sock_filter steps[] = {{v6 ? kNoHeader : kSkipHeader, 0, 0, 0},
                         {load, 0, 0, offsetof(udphdr, dest)},  // TCP has the ports in the same places
                         {kEqual, 0, 4, static_cast<std::uint32_t>(port)},
                         {load, 0, 0, offsetof(udphdr, source)},
                         {kEqual, 1, 0, static_cast<std::uint32_t>(from)},
                         {kEqual, 0, 1, static_cast<std::uint32_t>(from + 1)},
                         {kReturn, 0, 0, kLargest},
                         {kReturn, 0, 0, 0}};
  const sock_fprog program{.len = std::size(steps), .filter = steps};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

/// The source port of a packet of the attempt; 0 of any other.
int source_of(std::string_view packet, const std::string* payload) {
  udphdr ports{};
  if (packet.size() < sizeof ports) return 0;
  std::memcpy(&ports, packet.data(), sizeof ports);
  if (payload != nullptr) return packet.substr(sizeof ports) == *payload ? ntohs(ports.source) : 0;
  tcphdr head{};
  if (packet.size() < sizeof head) return 0;
  std::memcpy(&head, packet.data(), sizeof head);
  return head.syn == 1 && head.ack == 0 ? ntohs(ports.source) : 0;
}

}  // namespace

int port_of_rank(std::string_view token, int rank) {
  std::uint32_t number = 0;
  std::memcpy(&number, hmac_sha256(token, "ports of an attempt").data(), sizeof number);
  return kFirstPort + static_cast<int>(number % kPairs) * 2 + rank;
}

Arrivals watch_packets(const Target& at, const std::string* payload, std::string_view token, Clock::time_point until) {
  const Address address = address_of(at);
  const bool v6 = address.is_v6();
  const Descriptor socket(::socket(address.bytes.ss_family, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                                   payload == nullptr ? IPPROTO_TCP : IPPROTO_UDP));
  if (!socket) throw Skip(fmt::format("to see packets needs CAP_NET_RAW: {}", std::strerror(errno)));
  Address own = address;  // another address of the node is none of the path
  reinterpret_cast<sockaddr_in&>(own.bytes).sin_port = 0;
  if (!attach_filter(socket.number(), v6, at.port, port_of_rank(token, 0)) ||
      ::bind(socket.number(), own.get(), own.length) != 0)
    throw std::runtime_error(
        fmt::format("watching {}: {}\nhint: the target of a path holds its address", at.address, std::strerror(errno)));
  Arrivals found;
  while (!(found.control && found.crossing) && wait_for(socket.number(), POLLIN, until)) {
    char bytes[kLargest];
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const auto size =
        ::recvfrom(socket.number(), bytes, sizeof bytes, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &length);
    if (size <= 0) continue;
    std::string_view packet(bytes, static_cast<std::size_t>(size));
    if (!v6) packet.remove_prefix(std::min(packet.size(), static_cast<std::size_t>(packet[0] & 15) * 4));
    const int port = source_of(packet, payload);
    if (port == port_of_rank(token, 1)) found.control = true;
    if (port != port_of_rank(token, 0)) continue;
    found.crossing = true;
    found.evidence = fmt::format("{} of {} port {} arrived", payload == nullptr ? "a TCP connection" : "a datagram",
                                 text_of(reinterpret_cast<const sockaddr*>(&from)), port);
  }
  return found;
}

}  // namespace assay::crossing
