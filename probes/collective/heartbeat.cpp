// heartbeat: a thread that looks every 5 ms: it takes in beats of others, beats once a period on the board and by UDP,
// and gives the group up when the page says so. UDP, because a connection would report a peer's end and hide a network
// that drops everything. The part of the two levels of watching is drawn in watched_fleet.h.
#include "probes/collective/heartbeat.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

namespace assay::collective {
namespace {

constexpr int kLook_ms = 5;  // between two looks at the board: the leader's word is noticed within it
using Datagram = std::array<std::uint64_t, 2>;  // the key and the number of the group; both ends are one build

std::pair<sockaddr_storage, socklen_t> resolved(const BeatPlace& place) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(place.address.c_str(), std::to_string(place.port).c_str(), &hints, &found) != 0)
    throw std::runtime_error("'" + place.address + "' is no numeric address for heartbeats");
  std::pair<sockaddr_storage, socklen_t> address = {{}, found->ai_addrlen};
  std::memcpy(&address.first, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

std::uint16_t port_of(int socket) {
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0)
    throw std::system_error(errno, std::generic_category(), "the port for heartbeats");
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&own)->sin6_port
                                         : reinterpret_cast<sockaddr_in*>(&own)->sin_port);
}

}  // namespace

Heartbeat::Heartbeat(RankPage& page, const std::string& address, Seconds period, std::function<void()> give_up)
    : page_(page), give_up_(std::move(give_up)), period_ns_(static_cast<std::int64_t>(period.count * 1e9)) {
  const auto own = resolved({.address = address});
  socket_ = Descriptor(socket(own.first.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_ || bind(socket_.number(), reinterpret_cast<const sockaddr*>(&own.first), own.second) != 0)
    throw std::system_error(errno, std::generic_category(), "a socket for heartbeats at " + address);
  port_ = port_of(socket_.number());
  thread_ = std::thread([this] { live(); });
}

Heartbeat::~Heartbeat() {
  over_ = true;
  thread_.join();
}

void Heartbeat::join(std::int64_t number, std::uint64_t key, std::size_t rank, const std::vector<BeatPlace>& all) {
  const std::lock_guard lock(mutex_);
  hearers_.clear();
  for (std::size_t after = 1; after < all.size() && after <= kMostHearers; ++after)
    hearers_.push_back(resolved(all[(rank + after) % all.size()]));
  key_ = key;
  number_ = number;
  page_.heard_ns = 0;
  page_.joined_ns = monotonic_ns();
}

void Heartbeat::leave() {
  const std::lock_guard lock(mutex_);
  number_ = 0;
  hearers_.clear();
}

void Heartbeat::beat() {
  const Datagram words = {key_, static_cast<std::uint64_t>(number_)};
  for (const auto& [address, size] : hearers_) {
    // A beat that cannot be sent is one that is missed: its hearer decides.
    (void)sendto(socket_.number(), words.data(), sizeof words, 0, reinterpret_cast<const sockaddr*>(&address), size);
  }
}

void Heartbeat::listen() {
  Datagram words = {};
  constexpr int kMostAtOnce = 64;  // more wait for the next look
  for (int i = 0; i < kMostAtOnce; ++i) {
    const ssize_t got = recv(socket_.number(), words.data(), sizeof words, MSG_TRUNC);
    if (got < 0) return;
    if (got == sizeof words && words == Datagram{key_, static_cast<std::uint64_t>(number_)})
      page_.heard_ns = monotonic_ns();
  }
}

void Heartbeat::live() {
  std::int64_t next_ns = 0, given_up = 0;
  while (!over_) {
    pollfd here = {.fd = socket_.number(), .events = POLLIN, .revents = 0};
    (void)poll(&here, 1, kLook_ms);  // an interrupted poll is a short one
    const std::lock_guard lock(mutex_);
    listen();
    if (const std::int64_t now = monotonic_ns(); now >= next_ns) {
      page_.beat_ns = now;
      if (number_ > 0) beat();
      next_ns = now + period_ns_;
    }
    if (number_ > 0 && page_.give_up == number_ && given_up != number_) {
      given_up = number_;
      give_up_();
    }
  }
}

}  // namespace assay::collective
