// free_port: where the ranks of a test meet.
#pragma once

#include <stdexcept>

#include <netinet/in.h>
#include <sys/socket.h>

#include "probes/core/rendezvous_link.h"

namespace assay {

/// A port of the loopback that was free a moment ago.
inline int free_port() {
  const rendezvous::Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (bind(probe.number(), plain, length) != 0 || getsockname(probe.number(), plain, &length) != 0)
    throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

}  // namespace assay
