// packet_flow: small datagrams in one direction over several flows, each of them one packet for every switch on the
// way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "probes/core/rendezvous.h"
#include "probes/core/rendezvous_link.h"
#include "probes/core/units.h"
#include "probes/host/tcp_flow.h"
#include "probes/host/tcp_streams.h"

namespace assay::host {

/// The smallest datagram: its mark and its number.
inline constexpr std::size_t kLeastDatagram = 16;

/// `count` UDP sockets of this rank at its address `own`, on free ports; socket i is connected to the other rank's
/// socket i, at `peer`, and takes nothing from others. Both ranks call it. Throws std::system_error.
Streams open_packet_flows(Rendezvous& group, const std::string& own, const std::string& peer, std::size_t count);

/// Sends datagrams of `size` B on every flow as fast as the kernel takes them, from construction until finish() or
/// `until`, whichever comes first: a flood may hold up the message that is to end it. No datagram is put together with
/// others before it leaves the socket (no UDP_SEGMENT).
class PacketSender {
 public:
  /// `mark` has 8 B; `flows` outlive the sender.
  PacketSender(const Streams& flows, Bytes size, std::string mark, rendezvous::Clock::time_point until);
  /// Datagrams that the kernel took. Rethrows a flow's error.
  std::uint64_t finish();

 private:
  void send_datagrams(int socket, std::size_t size);

  std::string mark_;
  rendezvous::Clock::time_point until_;
  std::atomic<bool> ending_ = false;
  std::atomic<std::uint64_t> sent_ = 0;
  Crowd crowd_;
};

/// Counts the datagrams of that size and mark which come out of the sockets.
class PacketReceiver {
 public:
  PacketReceiver(const Streams& flows, Bytes size, std::string mark);
  /// Until now. Rethrows a flow's error.
  [[nodiscard]] std::uint64_t received();
  /// Of all; to be called when nothing is under way any more.
  std::uint64_t finish();

 private:
  void receive_datagrams(int socket, std::size_t size);

  std::string mark_;
  std::atomic<bool> ending_ = false;
  std::atomic<std::uint64_t> received_ = 0;
  Crowd crowd_;
};

}  // namespace assay::host
