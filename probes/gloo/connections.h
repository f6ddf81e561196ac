// connections: this process' own TCP connections, read from its descriptors: the ways the payload really takes.
#pragma once

#include <vector>

#include "probes/host/tcp_path.h"
#include "probes/host/tcp_streams.h"

namespace assay::gloo {

/// All connected TCP sockets of this process.
struct Connections {
  int within = 0;                      ///< to this machine's own address, or through its loopback
  int beyond = 0;                      ///< to other machines
  std::vector<host::PathFacts> paths;  ///< of those beyond; if there is none, of those within
  host::TcpCounters counters;          ///< of all of them, since they were opened
};

/// Reads /proc/self/fd. Throws std::system_error when the kernel does not report the facts of every TCP socket.
Connections own_connections();

/// Shuts all connected TCP sockets of this process, both ways, so that nothing waits for them any longer, here and at
/// their other ends. From any thread.
void shut_own_connections();

/// From now on the kernel drops all that arrives at the IP sockets of this process, and acknowledges none of it: it is
/// cut off from others' messages. Its own datagrams still leave. Throws std::system_error when the kernel refuses the
/// filter.
void cut_own_sockets();

}  // namespace assay::gloo
