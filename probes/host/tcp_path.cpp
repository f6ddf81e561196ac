// tcp_path: the kernel's facts of a connection, and whether it leaves the machine.
#include "probes/host/tcp_path.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <ifaddrs.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/link_modes.h"
#include "probes/core/whole_number.h"

namespace assay::host {
namespace {

constexpr double kBitsPerByte = 8;
constexpr const char* kLoopback = "loopback";

std::string address_text(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST] = {};
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);  // the socket interface is made of such casts
  const int failed = getnameinfo(plain, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  if (failed != 0) throw std::runtime_error(fmt::format("an address cannot be read: {}", gai_strerror(failed)));
  return host;
}

std::string own_address(int socket, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  if (ask(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::system_error(errno, std::generic_category(), "a stream has no address");
  return address_text(address, length);
}

/// The network port that has `address`; empty if none has.
std::string interface_with(const std::string& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0)
    throw std::system_error(errno, std::generic_category(), "the network ports cannot be listed");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6))
      continue;
    sockaddr_storage own = {};
    const socklen_t length = one->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&own, one->ifa_addr, length);
    if (address_text(own, length) == address) return one->ifa_name;
  }
  return "";
}

}  // namespace

std::string boot_id() { return read_fact("/proc/sys/kernel/random/boot_id").value_or(""); }

std::optional<BytesPerSecond> link_speed_in(const std::string& text) {
  const auto megabits = whole_number(text);
  if (!megabits || *megabits <= 0 || *megabits >= UINT32_MAX) return std::nullopt;
  return BytesPerSecond{static_cast<double>(*megabits) * 1e6 / kBitsPerByte};
}

PathFacts path_of(int socket) {
  PathFacts facts{.address = own_address(socket, getsockname),
                  .peer_address = own_address(socket, getpeername),
                  .interface = "",
                  .congestion_control = ""};
  facts.interface = interface_with(facts.address);
  facts.way_back = address_towards({.host = facts.peer_address, .port = 1});  // the port plays no part in a route
  char algorithm[64] = {};
  socklen_t size = sizeof algorithm - 1;
  int mss = 0;
  socklen_t mss_size = sizeof mss;
  if (getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, algorithm, &size) != 0 ||
      getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &mss, &mss_size) != 0) {
    throw std::system_error(errno, std::generic_category(), "a stream's properties cannot be read");
  }
  facts.congestion_control = algorithm;
  facts.mss = mss;
  if (facts.interface.empty()) return facts;
  const std::string port = "/sys/class/net/" + facts.interface;
  if (const auto mtu = read_fact(port + "/mtu")) facts.mtu = std::strtoll(mtu->c_str(), nullptr, 10);
  if (const auto speed = read_fact(port + "/speed")) facts.link_speed = link_speed_in(*speed);
  facts.link_speed_max = fastest_mode_of(facts.interface);
  return facts;
}

std::string other_path(const std::string& wanted, const PathFacts& facts, const std::string& boot,
                       const std::string& other_boot) {
  std::string loopback;
  if (!boot.empty() && boot == other_boot) {
    loopback = fmt::format("both ranks run on one machine (boot {})", boot);
  } else if (facts.address == facts.peer_address) {
    loopback = fmt::format("both ends of the streams have the address {}", facts.address);
  } else if (facts.interface == "lo") {
    loopback =
        fmt::format("the streams from {} to {} go through the loopback interface", facts.address, facts.peer_address);
  }
  if (wanted == kLoopback)
    return loopback.empty() ? "path: the ranks run on two machines, and a loopback was asked for" : "";
  return loopback.empty()
             ? ""
             : loopback + "; that is no network. Give every node an address and a machine of its own, or path=loopback";
}

void demand_pair(const Placement& placement) {
  if (placement.world == 1) throw Skip("one rank alone: this probe measures between two nodes; use it with scope pair");
  if (placement.world != 2)
    throw std::runtime_error(
        fmt::format("{} ranks: this probe measures between two; use it with scope pair", placement.world));
}

std::string other_interface(const std::string& wanted, const PathFacts& facts) {
  if (wanted == kRendezvousPort) return "";
  if (wanted == facts.interface) {
    if (facts.way_back.empty() || facts.way_back == facts.address) return "";
    return fmt::format("this node's own way to {} begins at {} and not at {}, the address of {} which was asked for",
                       facts.peer_address, facts.way_back, facts.address, wanted);
  }
  return fmt::format("the streams from {} to {} go through {}, and {} was asked for", facts.address, facts.peer_address,
                     facts.interface.empty() ? "no port of this node" : facts.interface, wanted);
}

void record_facts(const std::string& path, const PathFacts& facts, Recorder& record) {
  record.condition("path", path);
  record.condition("address", facts.address);
  record.condition("peer_address", facts.peer_address);
  record.condition("interface", facts.interface);
  if (facts.mtu) record.condition("mtu", *facts.mtu);
  if (facts.link_speed) record.condition("link_speed", facts.link_speed->count);
  if (facts.link_speed_max) record.condition("link_speed_max", facts.link_speed_max->count);
  record.condition("mss", facts.mss);
  record.condition("congestion_control", facts.congestion_control);
}

void record_path(const Parameters& given, Rendezvous& group, const Streams& streams, Recorder& record) {
  const PathFacts facts = path_of(streams.front().number());
  const auto boots = group.all_gather(boot_id());
  if (const auto problem = other_path(given.text("path"), facts, boots[0], boots[1]); !problem.empty())
    throw std::runtime_error(problem);
  if (const auto problem = other_interface(given.text("interface"), facts); !problem.empty())
    throw std::runtime_error(problem);
  record_facts(given.text("path"), facts, record);
}

Subject pair_subject(Rendezvous& group) {
  const auto names = group.all_gather(std::get<std::string>(host_facts().at("name")));
  return {.kind = "pair", .id = names[0] + "+" + names[1]};
}

}  // namespace assay::host
