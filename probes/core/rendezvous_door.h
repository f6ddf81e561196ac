// rendezvous_door: rank 0's callers until each has proved that it is a rank of the step, or is let go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/rendezvous_group.h"

namespace assay::rendezvous {

/// Bytes of a nonce and of a proof.
inline constexpr std::size_t kNonce = 32, kProof = 32;

/// Messages of both sides of one join: the caller's identity, and a fresh nonce of each.
struct Join {
  std::uint32_t rank = 0, world = 0;
  std::string caller, listener;
};

/// Which of the two proves.
enum class Side : char { caller = 'C', listener = 'L' };

/// Fresh random bytes. Throws std::system_error when the kernel gives none.
std::string fresh_nonce();

/// HMAC-SHA-256 under `token` of the side and everything in `join`.
std::string proof_of(std::string_view token, Side side, const Join& join);

/// Callers not yet known, at most; one more costs the oldest silent one of the address with the most its place.
inline constexpr std::size_t kMostStrangers = 256;

/// The reason of a refusal that is no verdict on the caller: it may call again.
inline constexpr const char* kTooManyCallers = "too many callers";

/// The callers of a listening socket. A caller with the token joins within two round trips; a caller that says nothing
/// holds a place only while fewer than kMostStrangers newer ones have come.
class Door {
 public:
  /// `listener` must be non-blocking and outlive it.
  Door(int listener, std::string token) : listener_(listener), token_(std::move(token)) {}

  /// Takes every caller that waits in, and reads the frames of each. A caller that has proved the token joins `group`.
  void serve(Group& group);
  /// The links to wait on, appended to `links`; the time at which the next caller is let go, if it is before `until`.
  Clock::time_point add_waits(std::vector<Link*>& links, Clock::time_point until) const;

 private:
  struct Stranger {
    std::unique_ptr<Link> link;
    std::string host;         ///< its address without the port
    Clock::time_point until;  ///< it is let go then
    Join join;
    bool asked = false;  ///< it has said hello and was sent a nonce
  };

  bool take_one(const Group& group);
  void make_room(Group& group);
  bool is_done(Stranger& stranger, Group& group) const;
  static std::string hello(Stranger& stranger, const Frame& frame);
  std::string prove(Stranger& stranger, const Frame& frame, Group& group) const;
  static void let_go(Stranger& stranger, Group& group, const std::string& reason);

  int listener_;
  std::string token_;
  std::list<Stranger> strangers_;  ///< the oldest first
};

}  // namespace assay::rendezvous
