// connection_path: addresses before the ranks meet, and connections after.
#include "probes/gloo/connection_path.h"

#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <system_error>

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::gloo {
namespace {

std::string text_of(const sockaddr* address, socklen_t length) {
  char host[NI_MAXHOST] = {};
  const int failed = getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  if (failed != 0) throw std::runtime_error(fmt::format("an address cannot be read: {}", gai_strerror(failed)));
  return host;
}

bool beyond_link(const sockaddr* address) {
  return address->sa_family == AF_INET ||
         (address->sa_family == AF_INET6 &&
          !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr));
}

/// Why the ranks are not all on one machine; empty if they are.
std::string beyond_loopback(const std::vector<Presence>& ranks) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].beyond == 0 && ranks[rank].boot == ranks[0].boot) continue;
    const std::string how = ranks[rank].beyond > 0
                                ? fmt::format("has {} connections to other machines", ranks[rank].beyond)
                                : "runs on another machine than rank 0";
    return fmt::format("path: rank {} {}, and a loopback was asked for", rank, how);
  }
  return "";
}

/// Two nodes that are one machine, in words; empty if there are none.
std::string shared_machine(const std::vector<Presence>& ranks, std::size_t here) {
  std::map<std::string, std::size_t> first_with;  // boot to the first rank of its node
  for (std::size_t rank = 0; rank < ranks.size(); rank += here) {
    if (ranks[rank].boot.empty()) continue;
    const auto [other, is_new] = first_with.try_emplace(ranks[rank].boot, rank);
    if (!is_new)
      return fmt::format("ranks {} and {} of two nodes run on one machine (boot {})", other->second, rank,
                         ranks[rank].boot);
  }
  return "";
}

/// A rank whose connections do not leave its machine as they must, in words; empty if there is none.
std::string kept_within(const std::vector<Presence>& ranks, int here) {
  const int others = static_cast<int>(ranks.size()) - here;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].within == here - 1 && ranks[rank].beyond == others) continue;
    return fmt::format(
        "rank {} has {} connections within its own machine and {} to others, where {} of its peers are on it and {} on "
        "others",
        rank, ranks[rank].within, ranks[rank].beyond, here - 1, others);
  }
  return "";
}

}  // namespace

std::string address_of_port(const std::string& name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0)
    throw std::system_error(errno, std::generic_category(), "the network ports cannot be listed");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::map<int, std::string> found;  // AF_INET is less than AF_INET6
  std::set<std::string> names;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    names.insert(one->ifa_name);
    if (one->ifa_addr == nullptr || name != one->ifa_name || !beyond_link(one->ifa_addr)) continue;
    const int family = one->ifa_addr->sa_family;
    found.try_emplace(family, text_of(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
  }
  if (found.empty()) {
    throw std::runtime_error(fmt::format("interface: {} {} here; there are {}", name,
                                         names.contains(name) ? "has no address" : "is no network port",
                                         fmt::join(names, ", ")));
  }
  return found.begin()->second;
}

std::string path_problem(const std::string& wanted, const std::vector<Presence>& ranks, int ranks_per_node) {
  if (wanted == "loopback") return beyond_loopback(ranks);
  std::string problem = shared_machine(ranks, static_cast<std::size_t>(ranks_per_node));
  if (problem.empty()) problem = kept_within(ranks, ranks_per_node);
  return problem.empty()
             ? ""
             : problem + "; that is no network. Give every node an address and a machine of its own, or path=loopback";
}

}  // namespace assay::gloo
