// rendezvous_link: one TCP connection between two ranks, as framed messages with bounds.
//
// A frame is four u32, little endian: "ARV2", the kind, the number of the exchange (sequence), the length of the
// payload; then the payload. Their order on one connection:
//   caller -> rank 0   hello      rank (u32), world (u32), a nonce of 32 B
//   rank 0 -> caller   challenge  a nonce of 32 B
//   caller -> rank 0   proof      HMAC of 32 B (rendezvous_door.h)
//   rank 0 -> caller   welcome    HMAC of 32 B of rank 0's side; or refused: the reason as text
//   in an exchange     gather     to rank 0: this rank's bytes; then spread: every rank's, or rank 0's
//   at any time        failed     the reason as text; the group has ended
// Frames before the first exchange have sequence 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "probes/core/descriptor.h"
#include "probes/core/units.h"

namespace assay::rendezvous {

/// The clock of every deadline of the rendezvous.
using Clock = std::chrono::steady_clock;

/// The moment `time` from now.
inline Clock::time_point after(Seconds time) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.count));
}

/// Kind of a frame. `hello` comes first from a rank, `challenge` asks for a `proof`, `welcome` and `refused` answer
/// that, `gather` goes to rank 0, `spread` comes from it, `failed` carries the reason why the whole group ends.
enum class Kind : std::uint32_t { hello = 1, challenge, proof, welcome, refused, gather, spread, failed };

/// One message. `sequence` counts the exchanges of a group, so that ranks which run apart are noticed.
struct Frame {
  Kind kind = Kind::hello;
  std::uint32_t sequence = 0;
  std::string payload;
};

using assay::Descriptor;

/// A connected non-blocking socket with frames going out and coming in. Nothing here waits; wait_for() does.
class Link {
 public:
  /// Takes the connected socket over, makes it non-blocking and unbuffered. `peer` is its address for messages; `limit`
  /// bounds the payload of a frame that it may send, in B.
  Link(Descriptor socket, std::string peer, std::size_t limit);

  /// The peer's address, "10.0.0.7:41234".
  [[nodiscard]] const std::string& peer() const { return peer_; }
  /// Queues a frame; flush() sends it.
  void queue(const Frame& frame);
  /// Writes as much of the queue as the socket takes now.
  void flush();
  /// Reads received bytes, one frame of the largest size at most.
  void read();
  /// The next whole frame. A frame of an unknown kind or with a payload over the limit closes the link and leaves the
  /// reason in trouble().
  std::optional<Frame> next();
  /// Changes the limit, once the peer is known.
  void allow(std::size_t limit) { limit_ = limit; }
  /// Whether everything queued has been handed to the kernel.
  [[nodiscard]] bool flushed() const { return out_.empty(); }
  /// Whether the peer is gone or the link is broken; whole frames that came before can still be taken.
  [[nodiscard]] bool closed() const { return closed_; }
  /// The error of the link in words; empty if the peer just closed it.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  /// The socket, for poll.
  [[nodiscard]] int descriptor() const { return socket_.number(); }

 private:
  void close(std::string trouble);

  Descriptor socket_;
  std::string peer_;
  std::size_t limit_;
  std::string in_, out_, trouble_;
  bool closed_ = false;
};

/// Waits until a link can move (then reads and writes what it can), `listener` (-1: none) has a caller, or `until` has
/// passed. Returns false when the time has passed. Throws
/// std::runtime_error when this process is to stop.
bool wait_for(std::span<Link* const> links, int listener, Clock::time_point until);

/// Reads and writes what `links` can at this moment. Throws as wait_for() does.
void move_now(std::span<Link* const> links);

/// Whether two texts are equal, in a time that depends only on their lengths.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// Appends `value` in little-endian order.
void put_u32(std::string& to, std::uint32_t value);
/// The little-endian number at `at`; the caller has checked that four bytes are there.
std::uint32_t u32_at(std::string_view from, std::size_t at);

}  // namespace assay::rendezvous
