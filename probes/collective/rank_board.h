// rank_board: memory that a leader shares with its ranks: each rank's state while it works, and one word to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "probes/core/descriptor.h"

namespace assay::collective {

/// State shared by one rank and its leader. Times are of the machine's monotonic clock, in ns; 0: never. The rank
/// writes all but `give_up`.
struct RankPage {
  std::atomic<std::int64_t> beat_ns;    ///< when it was last alive
  std::atomic<std::int64_t> joined_ns;  ///< when it joined its group
  std::atomic<std::int64_t> heard_ns;   ///< when a beat of another rank last came over the network
  std::atomic<std::int64_t> struck_ns;  ///< when a fault was injected
  std::atomic<std::int64_t> place;      ///< grows with its work
  std::atomic<std::int64_t> give_up;  ///< the leader: the group of this number is over; its connections are to be shut
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// The machine's monotonic clock, in ns: the same for every process of the machine.
std::int64_t monotonic_ns();

/// One page for each rank of a node. Children started while it lives inherit its descriptor under the same number.
class RankBoard {
 public:
  /// Throws std::system_error when the kernel gives no such memory.
  explicit RankBoard(std::size_t ranks);
  /// The board that a leader made, in a rank. Throws std::system_error when `descriptor` is none of `ranks` pages.
  RankBoard(int descriptor, std::size_t ranks);

  [[nodiscard]] int descriptor() const { return file_.number(); }
  [[nodiscard]] std::size_t ranks() const { return ranks_; }
  [[nodiscard]] RankPage& page(std::size_t rank) const;
  /// All of it as at the start, for a rank that takes another's place.
  void clear(std::size_t rank);

 private:
  struct Unmap {
    std::size_t size;
    void operator()(void* memory) const noexcept;
  };
  void map();

  Descriptor file_;
  std::size_t ranks_;
  std::unique_ptr<void, Unmap> memory_;
};

}  // namespace assay::collective
