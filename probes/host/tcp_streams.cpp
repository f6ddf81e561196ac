// tcp_streams: sockets that wait in slices, so that a deadline or a stop is seen for any peer.
#include "probes/host/tcp_streams.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/host/encryption.h"

namespace assay::host {

Windows::Windows(std::function<std::uint64_t()> count, Seconds window)
    : count_(std::move(count)), window_(window), at_(Clock::now()), before_(count_()) {}

double Windows::next() {
  std::this_thread::sleep_until(
      at_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(window_.count)));
  if (stop_requested()) throw std::runtime_error("stopped while payload was moving");
  const auto now = Clock::now();
  const std::uint64_t after = count_();
  const double rate = static_cast<double>(after - before_) / std::chrono::duration<double>(now - at_).count();
  at_ = now;
  before_ = after;
  return rate;
}

std::string words_of(const Sampling& taken) {
  return nlohmann::json{{"samples", taken.samples}, {"warmup", taken.warmup}, {"stopped", taken.stopped}}.dump();
}

Sampling windows_in(const std::string& words) {
  const auto document = parse_json_or_throw(words, "the other rank's windows");
  return {.samples = document.at("samples"), .warmup = document.at("warmup"), .stopped = document.at("stopped")};
}

using rendezvous::Clock;
using rendezvous::Descriptor;

namespace {

constexpr timeval kSlice = {.tv_sec = 0, .tv_usec = 200'000};  // the longest a stop goes unnoticed
constexpr std::chrono::seconds kStall{30};  // a link that moves nothing for so long is dead, not slow
constexpr std::chrono::seconds kHello{5};   // a caller says at once which stream it is
constexpr int kBacklog = 128;

std::system_error failure(const std::string& what) { return {errno, std::generic_category(), what}; }

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// The first address of `at`, on which the ranks have met a moment ago.
std::unique_ptr<addrinfo, FreeAddresses> address_of(const Endpoint& at) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &list);
  if (failed != 0) throw std::runtime_error(fmt::format("{}: {}", at.host, gai_strerror(failed)));
  return std::unique_ptr<addrinfo, FreeAddresses>(list);
}

Descriptor socket_for(const addrinfo& address, const StreamKind& kind, int flags = 0) {
  Descriptor made(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (made.number() < 0) throw failure("no socket can be made");
  if (kind.without_ipsec) pass_by_ipsec(made.number(), address.ai_family);
  return made;
}

/// Blocking calls on the socket return after a slice at the latest.
void prepare(const Descriptor& socket) {
  const int on = 1;
  if (setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &kSlice, sizeof kSlice) != 0 ||
      setsockopt(socket.number(), SOL_SOCKET, SO_SNDTIMEO, &kSlice, sizeof kSlice) != 0 ||
      setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    throw failure("a socket cannot be prepared");
  }
}

bool slice_over() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == EINPROGRESS; }

/// Waits for one direction of a socket until `until`; false when the time has passed.
bool ready(int socket, short events, Clock::time_point until) {
  while (Clock::now() < until && !stop_requested()) {
    pollfd polled{.fd = socket, .events = events, .revents = 0};
    if (poll(&polled, 1, static_cast<int>(kSlice.tv_usec / 1000)) > 0) return true;
  }
  return false;
}

Descriptor listen_at(const Endpoint& at, const StreamKind& kind) {
  const auto address = address_of(at);
  Descriptor listener = socket_for(*address, kind, SOCK_NONBLOCK);
  const int on = 1;  // the connections of the rendezvous still use the port
  (void)setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // bind reports errors
  if (bind(listener.number(), address->ai_addr, address->ai_addrlen) != 0 || listen(listener.number(), kBacklog) != 0) {
    throw failure(fmt::format("cannot listen at {} port {} for streams", at.host, at.port));
  }
  return listener;
}

/// Reads the hello of a caller; its number when it knows the token, -1 otherwise.
long stream_number_of(const Descriptor& caller, const std::string& token) {
  std::string bytes(token.size() + 4, '\0');
  const auto until = Clock::now() + kHello;
  for (std::size_t have = 0; have < bytes.size();) {
    if (!ready(caller.number(), POLLIN, until)) return -1;
    const ssize_t got = recv(caller.number(), bytes.data() + have, bytes.size() - have, 0);
    if (got == 0 || (got < 0 && !slice_over())) return -1;
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  if (!rendezvous::equal_in_constant_time(std::string_view(bytes).substr(4), token)) return -1;
  return rendezvous::u32_at(bytes, 0);
}

}  // namespace

Descriptor listen_for_streams(const Endpoint& at, StreamKind kind) {
  try {
    return listen_at(at, kind);
  } catch (const std::system_error& taken) {
    if (taken.code().value() != EADDRINUSE) throw;
    return listen_at({.host = at.host, .port = 0}, kind);
  }
}

std::uint16_t port_of(const Descriptor& listener) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  if (getsockname(listener.number(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw failure("a listener has no address");
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in*>(&address)->sin_port
                                            : reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
}

std::string address_towards(const Endpoint& at) {
  const auto there = address_of(at);
  const Descriptor socket(::socket(there->ai_family, SOCK_DGRAM | SOCK_CLOEXEC,
                                   0));  // connecting a datagram socket asks only for the route
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  if (socket.number() < 0 || connect(socket.number(), there->ai_addr, there->ai_addrlen) != 0 ||
      getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw failure(fmt::format("there is no way to {}", at.host));
  }
  char host[NI_MAXHOST] = {};
  const int failed =
      getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  if (failed != 0) throw std::runtime_error(fmt::format("an address cannot be read: {}", gai_strerror(failed)));
  return host;
}

std::pair<Descriptor, std::uint32_t> accept_stream(const Descriptor& listener, const std::string& token,
                                                   Clock::time_point until) {
  if (!ready(listener.number(), POLLIN, until)) return {};
  Descriptor caller(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!caller) return {};  // it has gone again
  prepare(caller);
  const long number = stream_number_of(caller, token);
  if (number < 0) return {};
  return {std::move(caller), static_cast<std::uint32_t>(number)};
}

Streams accept_streams(const Descriptor& listener, const std::string& token, std::size_t count,
                       Clock::time_point until) {
  Streams streams(count);
  for (std::size_t have = 0; have < count;) {
    if (Clock::now() >= until || stop_requested())
      throw std::runtime_error(fmt::format("{} of {} streams came in time", have, count));
    auto [caller, number] = accept_stream(listener, token, until);
    if (!caller || number >= count || streams[number]) continue;
    streams[number] = std::move(caller);
    ++have;
  }
  return streams;
}

Descriptor dial_stream(const Endpoint& at, const std::string& token, std::uint32_t number, Clock::time_point until,
                       StreamKind kind) {
  const auto address = address_of(at);
  Descriptor stream = socket_for(*address, kind);
  if (kind.mss > 0 && setsockopt(stream.number(), IPPROTO_TCP, TCP_MAXSEG, &kind.mss, sizeof kind.mss) != 0)
    throw failure(fmt::format("segments of {} B", kind.mss));
  prepare(stream);  // connect() returns after a slice, too, and continues in the kernel
  if (connect(stream.number(), address->ai_addr, address->ai_addrlen) != 0) {
    if (!slice_over()) throw failure(fmt::format("stream {} to {} port {}", number, at.host, at.port));
    int error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (ready(stream.number(), POLLOUT, until))
      (void)getsockopt(stream.number(), SOL_SOCKET, SO_ERROR, &error, &size);  // else it stays
    errno = error;
    if (error != 0) throw failure(fmt::format("stream {} to {} port {}", number, at.host, at.port));
  }
  std::string hello;
  rendezvous::put_u32(hello, number);
  hello += token;
  const std::atomic<bool> never = false;
  send_all(stream.number(), std::as_bytes(std::span(hello)), never);
  return stream;
}

namespace {

/// Passes over one slice in which nothing moved; throws when it was one too many.
void pass_over(Clock::time_point since, const std::atomic<bool>& abandoned, const char* what) {
  if (abandoned || stop_requested()) throw std::runtime_error("stopped while payload was moving");
  if (Clock::now() - since > kStall)
    throw std::runtime_error(fmt::format("the other rank {} for {} s", what, kStall.count()));
}

}  // namespace

Streams open_streams(const Placement& placement, Rendezvous& group, std::size_t count, Seconds patience,
                     StreamKind kind) {
  const Endpoint at = parse_endpoint(placement.rendezvous);
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience.count));
  if (group.rank() == 0) {
    const Descriptor listener = listen_at(at, kind);
    group.barrier();  // the other rank may dial
    Streams streams = accept_streams(listener, placement.token, count, until);
    group.barrier();
    return streams;
  }
  group.barrier();
  Streams streams;
  for (std::size_t i = 0; i < count; ++i)
    streams.push_back(dial_stream(at, placement.token, static_cast<std::uint32_t>(i), until, kind));
  group.barrier();
  return streams;
}

void send_all(int socket, std::span<const std::byte> bytes, const std::atomic<bool>& abandoned, bool more) {
  auto moved = Clock::now();
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      moved = Clock::now();
    } else if (!slice_over()) {
      throw failure("a stream broke while it was sent");
    } else {
      pass_over(moved, abandoned, "took nothing");
    }
  }
}

void receive_all(int socket, std::span<std::byte> bytes, const std::atomic<bool>& abandoned,
                 std::atomic<std::uint64_t>& counted) {
  auto moved = Clock::now();
  while (!bytes.empty()) {
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
      counted.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
      moved = Clock::now();
    } else if (got == 0) {
      throw std::runtime_error("the other rank closed a stream before its end");
    } else if (!slice_over()) {
      throw failure("a stream broke while it was received");
    } else {
      pass_over(moved, abandoned, "sent nothing");
    }
  }
}

TcpCounters counters_of(int socket) {
  tcp_info told = {};
  socklen_t size = sizeof told;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &told, &size) != 0) throw failure("TCP_INFO cannot be read");
  if (size < offsetof(tcp_info, tcpi_segs_out) + sizeof told.tcpi_segs_out)
    throw std::runtime_error("this kernel does not count segments (Linux 4.2 does)");
  return {.segments = told.tcpi_segs_out, .retransmitted = told.tcpi_total_retrans};
}

TcpCounters counters_of(const Streams& streams) {
  TcpCounters sum;
  for (const auto& stream : streams) {
    const TcpCounters one = counters_of(stream.number());
    sum.segments += one.segments;
    sum.retransmitted += one.retransmitted;
  }
  return sum;
}

}  // namespace assay::host
