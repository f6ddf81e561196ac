// tcp_streams: TCP connections between the two ranks of a pair, which carry payload apart from their rendezvous, and
// the windows of time in which it counts.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/rendezvous.h"
#include "probes/core/rendezvous_link.h"
#include "probes/core/sampling.h"
#include "probes/core/units.h"

namespace assay::host {

/// Rates of a counter that other threads move.
class Windows {
 public:
  /// The first window begins now; `count` reads the counter.
  Windows(std::function<std::uint64_t()> count, Seconds window);

  /// Waits until a window has passed since the last one's end; the growth a second, by the wall clock. Throws
  /// std::runtime_error when the process is to stop.
  double next();

 private:
  using Clock = std::chrono::steady_clock;
  std::function<std::uint64_t()> count_;
  Seconds window_;
  Clock::time_point at_;
  std::uint64_t before_;
};

/// Samples for another rank, and as it reads them. Throws std::runtime_error for other words.
std::string words_of(const Sampling& taken);
Sampling windows_in(const std::string& words);

using Streams = std::vector<rendezvous::Descriptor>;

/// Properties of a stream.
struct StreamKind {
  int mss = 0;                 ///< no segment of either direction is over so many bytes; 0: as large as the path takes
  bool without_ipsec = false;  ///< the node's IPsec policies pass it by
};

/// Opens `count` connections, rank 1 to rank 0, on the address and port of the rendezvous, so that a firewall which
/// lets ranks meet lets them measure. Both ranks call it. A caller that does not know the token is turned away.
/// Neighbouring small segments are not put together (TCP_NODELAY). Throws RendezvousError or std::runtime_error when
/// they are not there within `patience`.
Streams open_streams(const Placement& placement, Rendezvous& group, std::size_t count, Seconds patience,
                     StreamKind kind = {});

/// A socket, which never blocks, that listens for streams on the address of `at` and its port; if that port is taken
/// (on one machine another rank has it) on a free one. Throws std::system_error.
rendezvous::Descriptor listen_for_streams(const Endpoint& at, StreamKind kind = {});

/// The port that it listens on.
std::uint16_t port_of(const rendezvous::Descriptor& listener);

/// The streams 0 to count - 1 that dial_stream() opens with this token. Throws std::runtime_error when they have not
/// come by `until`.
Streams accept_streams(const rendezvous::Descriptor& listener, const std::string& token, std::size_t count,
                       rendezvous::Clock::time_point until);

/// The next caller and its number; an empty descriptor if none comes by `until`, or it does not know the token.
std::pair<rendezvous::Descriptor, std::uint32_t> accept_stream(const rendezvous::Descriptor& listener,
                                                               const std::string& token,
                                                               rendezvous::Clock::time_point until);

/// Opens stream `number` to the listener at `at`. Throws std::system_error.
rendezvous::Descriptor dial_stream(const Endpoint& at, const std::string& token, std::uint32_t number,
                                   rendezvous::Clock::time_point until, StreamKind kind = {});

/// This machine's address on its way to `at`, by the kernel's routes; nothing is sent. Throws std::system_error.
std::string address_towards(const Endpoint& at);

/// Sends all of `bytes`; with `more` the kernel may wait for more bytes. Throws when the peer has gone, takes nothing
/// for 30 s, or `abandoned` turns true.
void send_all(int socket, std::span<const std::byte> bytes, const std::atomic<bool>& abandoned, bool more = false);

/// Receives exactly `bytes.size()` bytes and adds received bytes to `counted` as they come. Throws as send_all.
void receive_all(int socket, std::span<std::byte> bytes, const std::atomic<bool>& abandoned,
                 std::atomic<std::uint64_t>& counted);

/// The kernel's counters of a connection since it was opened.
struct TcpCounters {
  std::uint64_t segments = 0;       ///< sent, those sent again among them
  std::uint64_t retransmitted = 0;  ///< segments sent again
};

/// Of one connected socket (TCP_INFO). Throws std::system_error when the kernel does not report.
TcpCounters counters_of(int socket);
/// The sum over `streams`. Throws std::system_error when the kernel does not report.
TcpCounters counters_of(const Streams& streams);

}  // namespace assay::host
