// listener: a socket of this machine that attempts of crossing go to, and the token of their step.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "workloads/crossing/tried.h"

namespace assay::crossing {

inline constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

/// A listening socket, or one whose port is closed.
struct Listener {
  explicit Listener(int type) : socket(::socket(AF_INET, type, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof own;
    EXPECT_EQ(::bind(socket.number(), reinterpret_cast<sockaddr*>(&own), length), 0);
    if (type == SOCK_STREAM) (void)::listen(socket.number(), 4);  // a failure shows in the attempt
    EXPECT_EQ(::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&own), &length), 0);
    target = {.address = "127.0.0.1", .port = ntohs(own.sin_port), .timeout = {0.3}};
  }
  Descriptor socket;
  Target target;
};

}  // namespace assay::crossing
