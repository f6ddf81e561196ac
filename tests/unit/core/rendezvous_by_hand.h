// rendezvous_by_hand: a rank 0 in a thread, and callers that speak its protocol by hand.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "probes/core/rendezvous.h"
#include "probes/core/rendezvous_door.h"
#include "probes/core/rendezvous_link.h"

namespace assay {

using rendezvous::Descriptor;
using rendezvous::Frame;
using rendezvous::Kind;
using rendezvous::Link;

inline const std::string kToken = "0123456789abcdef0123456789abcdef";
// Bounds, not measurements: ranks that come do so within milliseconds. In a test in which some never come, the one
// limit that it waits for is short, but long enough for those that come on a loaded machine.
inline constexpr RendezvousLimits kPatient{.join = {30}, .hello = {30}, .exchange = {30}};
inline constexpr Seconds kHasty = {2};

inline Endpoint local(std::uint16_t port = 0) { return {.host = "127.0.0.1", .port = port}; }

/// A plain TCP connection to `port`.
inline Descriptor call(std::uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket.number(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    throw std::runtime_error("connect failed");
  return socket;
}

/// What a caller says first: its rank, the size of the group and its nonce.
inline std::string hello(const rendezvous::Join& join) {
  std::string bytes;
  rendezvous::put_u32(bytes, join.rank);
  rendezvous::put_u32(bytes, join.world);
  return bytes + join.caller;
}

inline Frame answer_on(Link& link) {
  Link* const one[] = {&link};
  const auto until = rendezvous::Clock::now() + std::chrono::seconds(30);
  while (rendezvous::wait_for(one, -1, until)) {
    if (auto frame = link.next()) return *frame;
    if (link.closed()) break;
  }
  throw std::runtime_error("no answer");
}

/// Joins as `rank` on a connection of its own with a proof by `token`; the link, and the last answer in `answer`.
inline std::unique_ptr<Link> join_by_hand(std::uint16_t port, std::uint32_t rank, std::uint32_t world,
                                          const std::string& token, Frame& answer) {
  auto link = std::make_unique<Link>(call(port), "rank 0", 1 << 20);
  rendezvous::Join join{.rank = rank, .world = world, .caller = rendezvous::fresh_nonce(), .listener = ""};
  link->queue({.kind = Kind::hello, .sequence = 0, .payload = hello(join)});
  link->flush();
  answer = answer_on(*link);
  if (answer.kind != Kind::challenge) return link;
  join.listener = answer.payload;
  link->queue({.kind = Kind::proof, .sequence = 0, .payload = proof_of(token, rendezvous::Side::caller, join)});
  link->flush();
  answer = answer_on(*link);
  return link;
}

/// A listening rank 0 of two that gathers in a thread, so that a test can call it as it likes.
class Hub {
 public:
  explicit Hub(const RendezvousLimits& limits)
      : port_(listener_.port()), group_(std::async(std::launch::async, [this, limits] {
          return std::move(listener_).gather(2, kToken, limits);
        })) {}
  [[nodiscard]] std::uint16_t port() const { return port_; }
  Rendezvous group() { return group_.get(); }

 private:
  RendezvousListener listener_{local()};
  std::uint16_t port_;
  std::future<Rendezvous> group_;
};

}  // namespace assay
