// rendezvous_door: rank 0's callers until each has proved that it is a rank of the step, or is let go.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "probes/core/rendezvous_group.h"
#include "probes/core/rendezvous_proof.h"

namespace assay::rendezvous {

/// Callers not yet known, at most; one more costs the oldest silent one of the address with the most its place.
inline constexpr std::size_t kMostStrangers = 256;

/// The reason of a refusal that is no verdict on the caller: it may call again.
inline constexpr const char* kTooManyCallers = "too many callers";

/// The callers of a listening socket. Who knows the token is through within two round trips; a caller that says nothing
/// holds a place only while fewer than kMostStrangers newer ones have come.
class Door {
 public:
  /// `listener` must be non-blocking and outlive it.
  Door(int listener, std::string token) : listener_(listener), token_(std::move(token)) {}

  /// Takes every caller that waits in, and looks at what each has said. Who has proved the token joins `group`.
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
