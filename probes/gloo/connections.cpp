// connections: a library's sockets are found by their descriptors, independent of the library's settings.
#include "probes/gloo/connections.h"

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace assay::gloo {
namespace {

std::vector<int> own_descriptors() {
  std::vector<int> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    all.push_back(std::stoi(entry.path().filename().string()));
  return all;
}

/// The connected TCP sockets among the descriptors of this process.
std::vector<int> connected_sockets() {
  std::vector<int> sockets;
  for (const int number : own_descriptors()) {
    int protocol = 0;
    socklen_t size = sizeof protocol;
    if (getsockopt(number, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP) continue;
    sockaddr_storage peer = {};
    socklen_t length = sizeof peer;
    if (getpeername(number, reinterpret_cast<sockaddr*>(&peer), &length) == 0)
      sockets.push_back(number);  // a listener has no peer
  }
  return sockets;
}

}  // namespace

Connections own_connections() {
  Connections all;
  std::vector<host::PathFacts> within;
  for (const int socket : connected_sockets()) {
    host::PathFacts facts = host::path_of(socket);
    const bool here = facts.address == facts.peer_address || facts.interface == "lo";
    ++(here ? all.within : all.beyond);
    (here ? within : all.paths).push_back(std::move(facts));
    const host::TcpCounters counters = host::counters_of(socket);
    all.counters.segments += counters.segments;
    all.counters.retransmitted += counters.retransmitted;
  }
  if (all.paths.empty()) all.paths = std::move(within);
  return all;
}

void shut_own_connections() {
  for (const int socket : connected_sockets()) (void)shutdown(socket, SHUT_RDWR);  // closed meanwhile is as good
}

void cut_own_sockets() {
  sock_filter drop = {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};  // keeps 0 B of every packet
  const sock_fprog program = {.len = 1, .filter = &drop};
  for (const int number : own_descriptors()) {
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(number, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || (domain != AF_INET && domain != AF_INET6))
      continue;
    if (setsockopt(number, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
      throw std::system_error(errno, std::generic_category(), "a filter that drops what arrives");
  }
}

}  // namespace assay::gloo
