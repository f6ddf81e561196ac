// connections: a library's sockets are found by their descriptors, whatever the library was asked to use.
#include "probes/gloo/connections.h"

#include <filesystem>
#include <string>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>

namespace assay {
namespace {

/// The connected TCP sockets among the descriptors of this process.
std::vector<int> connected_sockets() {
  std::vector<int> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int number = std::stoi(entry.path().filename().string());
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
  std::vector<PathFacts> within;
  for (const int socket : connected_sockets()) {
    PathFacts facts = path_of(socket);
    const bool here = facts.address == facts.peer_address || facts.interface == "lo";
    ++(here ? all.within : all.beyond);
    (here ? within : all.paths).push_back(std::move(facts));
    const TcpCounters counters = counters_of(socket);
    all.counters.segments += counters.segments;
    all.counters.retransmitted += counters.retransmitted;
  }
  if (all.paths.empty()) all.paths = std::move(within);
  return all;
}

}  // namespace assay
