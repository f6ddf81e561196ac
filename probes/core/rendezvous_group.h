// rendezvous_group: internal to the files of the rendezvous.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/rendezvous.h"
#include "probes/core/rendezvous_link.h"

namespace assay::rendezvous {

/// Bytes that rank 0 sends to one rank in one exchange; more is payload and belongs elsewhere.
inline constexpr std::size_t kMaxGathered = 64 << 20;

/// A group of ranks as one of them sees it.
struct Group {
  int rank = 0;
  int world = 1;
  RendezvousLimits limits;
  std::vector<std::unique_ptr<Link>> links;  ///< rank 0: rank r at r - 1, null until it joins; others: rank 0
  std::vector<std::string> refused;
  std::uint32_t sequence = 0;
  std::string broken;                           ///< why the group ended; empty while it lives
  std::vector<std::function<void()>> removals;  ///< of after_failure()

  /// The open links, for wait_for.
  [[nodiscard]] std::vector<Link*> open() const;
  /// Ends the group: rank 0 sends every rank `reason`, another rank sends it to rank 0; waits at most the time of a
  /// parting.
  void part(const std::string& reason) noexcept;
  /// Why another rank has ended the group; drops all other frames sent, so it is for the end.
  std::optional<std::string> ended_by_another();
  /// Other ranks than 0: waits until rank 0 has closed the connection, and so has told all others, or for a while.
  void wait_for_root();
  /// part() and throw RendezvousError.
  [[noreturn]] void abandon(const std::string& reason);
  /// Why `link`, to rank `other`, is closed: the reason it gave in a last frame, or that it vanished.
  static std::string departure(Link& link, int other);
};

}  // namespace assay::rendezvous
