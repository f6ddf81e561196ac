// rendezvous_join: how a group is formed. A peer counts once it has proved that it knows the one-time token.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/rendezvous.h"
#include "probes/core/rendezvous_door.h"
#include "probes/core/rendezvous_group.h"

namespace assay {

using rendezvous::after;
using rendezvous::Clock;
using rendezvous::Descriptor;
using rendezvous::Group;
using rendezvous::Kind;
using rendezvous::Link;

namespace {

constexpr std::size_t kMinToken = 32, kMaxToken = 128;  // 128 to 512 bits in hexadecimal digits
constexpr std::chrono::milliseconds kPause{100};  // between two attempts to connect; rank 0 is started at the same time
constexpr int kBacklog = 1024;                    // ranks of a large group dial at once

std::string words(const Endpoint& at) {
  return at.host.find(':') == std::string::npos ? fmt::format("{}:{}", at.host, at.port)
                                                : fmt::format("[{}]:{}", at.host, at.port);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// The addresses of `at`; null with the reason in `trouble` when its name is not known.
Addresses resolve(const Endpoint& at, int flags, std::string& trouble) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed =
      getaddrinfo(at.host.empty() ? nullptr : at.host.c_str(), std::to_string(at.port).c_str(), &hints, &list);
  if (failed != 0) trouble = gai_strerror(failed);
  return Addresses(failed == 0 ? list : nullptr);
}

/// A connected socket to `at`; none with the reason in `trouble` when no process listens there before `until`.
Descriptor connect_to(const Endpoint& at, Clock::time_point until, std::string& trouble) {
  const Addresses list = resolve(at, 0, trouble);
  for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol));
    if (socket.number() < 0) {
      trouble = std::strerror(errno);
      continue;
    }
    if (connect(socket.number(), one->ai_addr, one->ai_addrlen) == 0) return socket;
    if (errno != EINPROGRESS) {
      trouble = std::strerror(errno);
      continue;
    }
    int error = ETIMEDOUT;
    while (Clock::now() < until && !stop_requested()) {
      pollfd polled{.fd = socket.number(), .events = POLLOUT, .revents = 0};
      if (poll(&polled, 1, static_cast<int>(kPause.count())) <= 0) continue;
      socklen_t size = sizeof error;
      if (getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
      break;
    }
    if (error == 0) return socket;
    trouble = std::strerror(error);
  }
  return Descriptor();
}

}  // namespace

Endpoint parse_endpoint(std::string_view text) {
  const auto refuse = [&] {
    return BadParameter(fmt::format("rendezvous: '{}' is not host:port, such as 10.0.0.1:5000 or [::1]:5000", text));
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) throw refuse();
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    throw refuse();
  }
  Endpoint at{.host = std::string(host), .port = 0};
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, at.port);
  if (host.empty() || error != std::errc{} || rest != end) throw refuse();
  return at;
}

void check_token(std::string_view token) {
  const auto hexadecimal = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  if (token.size() < kMinToken || token.size() > kMaxToken || !std::ranges::all_of(token, hexadecimal)) {
    throw BadParameter(
        fmt::format("token: {} characters are not {} to {} hexadecimal digits", token.size(), kMinToken, kMaxToken));
  }
}

struct RendezvousListener::State {
  Descriptor socket;
  std::uint16_t port = 0;
};

RendezvousListener::RendezvousListener(RendezvousListener&&) noexcept = default;
RendezvousListener::~RendezvousListener() = default;
std::uint16_t RendezvousListener::port() const { return state_->port; }

RendezvousListener::RendezvousListener(const Endpoint& at) {
  std::string trouble;
  const Addresses list = resolve(at, AI_PASSIVE, trouble);
  for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol));
    const int on = 1;  // a port that the step before has just left is free
    (void)setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // bind reports errors
    if (socket.number() < 0 || bind(socket.number(), one->ai_addr, one->ai_addrlen) != 0 ||
        listen(socket.number(), kBacklog) != 0) {
      trouble = std::strerror(errno);
      continue;
    }
    sockaddr_storage bound = {};
    socklen_t length = sizeof bound;
    (void)getsockname(socket.number(), reinterpret_cast<sockaddr*>(&bound), &length);  // a bound socket has a name
    // The port is at the same offset in the addresses of both families.
    const std::uint16_t port = ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
    state_ = std::make_unique<State>(State{.socket = std::move(socket), .port = port});
    return;
  }
  throw std::runtime_error(fmt::format("cannot listen at {}: {}; give an address of this node", words(at), trouble));
}

Rendezvous RendezvousListener::gather(int world, const std::string& token, const RendezvousLimits& limits) && {
  check_token(token);
  auto group = std::make_unique<Group>();
  group->world = world;
  group->limits = limits;
  group->links.resize(static_cast<std::size_t>(world) - 1);
  const auto until = after(limits.join);
  rendezvous::Door door(state_->socket.number(), token);
  while (true) {
    std::vector<int> missing;
    for (int rank = 1; rank < world; ++rank) {
      // One that came and went again is left for the first exchange, so that those still to come learn of it, too.
      if (!group->links[static_cast<std::size_t>(rank) - 1]) missing.push_back(rank);
    }
    if (missing.empty()) return Rendezvous(std::move(group));
    if (Clock::now() >= until) {
      group->abandon(fmt::format("{} did not come within {:g} s{}{}",
                                 fmt::format("rank{} {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", ")),
                                 limits.join.count,
                                 group->refused.empty() ? "" : "; refused: ", fmt::join(group->refused, "; ")));
    }
    auto links = group->open();
    const auto next = door.add_waits(links, until);
    (void)rendezvous::wait_for(links, state_->socket.number(), next);  // the loop looks
    door.serve(*group);
  }
}

namespace {

/// Identifies this rank and answers rank 0's challenge; false when rank 0 hangs up before it has answered.
bool introduce(Group& group, const std::string& at, const std::string& token, Clock::time_point until) {
  Link& root = *group.links.front();
  rendezvous::Join join{.rank = static_cast<std::uint32_t>(group.rank),
                        .world = static_cast<std::uint32_t>(group.world),
                        .caller = rendezvous::fresh_nonce(),
                        .listener = ""};
  std::string hello;
  rendezvous::put_u32(hello, join.rank);
  rendezvous::put_u32(hello, join.world);
  root.queue({.kind = Kind::hello, .sequence = 0, .payload = hello + join.caller});
  root.flush();
  const auto refuse = [&](const std::string& reason) {
    return RendezvousError(fmt::format("rank 0 at {} {}", at, reason));
  };
  while (rendezvous::wait_for(group.open(), -1, until)) {
    while (const auto frame = root.next()) {
      if (frame->kind == Kind::refused && frame->payload == rendezvous::kTooManyCallers) return false;
      if (frame->kind == Kind::refused) throw refuse(fmt::format("refuses rank {}: {}", group.rank, frame->payload));
      if (frame->kind == Kind::challenge && join.listener.empty() && frame->payload.size() == rendezvous::kNonce) {
        join.listener = frame->payload;
        root.queue({.kind = Kind::proof, .sequence = 0, .payload = proof_of(token, rendezvous::Side::caller, join)});
        root.flush();
      } else if (frame->kind == Kind::welcome && !join.listener.empty() &&
                 rendezvous::equal_in_constant_time(frame->payload,
                                                    proof_of(token, rendezvous::Side::listener, join))) {
        return true;
      } else {
        throw refuse("does not know the token of this step");
      }
    }
    if (root.closed()) return false;
  }
  return false;
}

}  // namespace

Rendezvous Rendezvous::dial(const Endpoint& at, int rank, int world, const std::string& token,
                            const RendezvousLimits& limits) {
  check_token(token);
  const auto until = after(limits.join);
  std::string trouble = "no process listens there";
  while (Clock::now() < until) {
    if (Descriptor socket = connect_to(at, until, trouble); socket.number() >= 0) {
      auto group = std::make_unique<Group>();
      group->rank = rank;
      group->world = world;
      group->limits = limits;
      group->links.push_back(std::make_unique<Link>(std::move(socket), words(at), rendezvous::kMaxGathered));
      trouble = "it took the call but did not answer";
      if (introduce(*group, words(at), token, until)) return Rendezvous(std::move(group));
    }
    if (stop_requested()) throw std::runtime_error("stopped by a signal while waiting for other ranks");
    (void)poll(nullptr, 0, static_cast<int>(kPause.count()));  // a pause; a signal may shorten it
  }
  throw RendezvousError(
      fmt::format("rank 0 was not reached at {} within {:g} s: {}", words(at), limits.join.count, trouble));
}

Rendezvous meet(const Placement& placement, const RendezvousLimits& limits) {
  const Endpoint at = parse_endpoint(placement.rendezvous);
  if (placement.rank > 0) return Rendezvous::dial(at, placement.rank, placement.world, placement.token, limits);
  return RendezvousListener(at).gather(placement.world, placement.token, limits);
}

void work_together(const Placement& placement, const RendezvousLimits& limits,
                   const std::function<void(Rendezvous&)>& work) {
  Rendezvous group = meet(placement, limits);
  try {
    work(group);
  } catch (const RendezvousError&) {
    group.remove_now();
    throw;
  } catch (const std::exception& error) {
    const auto earlier = group.fail(error.what());
    group.remove_now();
    // A rank's missing parts or its parameters do not follow from another's failure.
    const bool is_own =
        dynamic_cast<const Skip*>(&error) != nullptr || dynamic_cast<const BadParameter*>(&error) != nullptr;
    if (earlier && !is_own) throw RendezvousError(*earlier);
    throw;
  }
}

}  // namespace assay
