// controls: figures of alike groups of nodes, by the size of the group, and whether a test is short of them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace assay::judge {

/// Result of a test. A share is the value over its limit, or for an upper limit the limit over the value: at least 1
/// meets it, and more is better.
struct Reading {
  bool broken = false;         ///< it did not run to its end, or gave no value; then there are no shares
  std::vector<double> shares;  ///< of each limit that was missed, always in the same order

  /// Whether every limit is met.
  [[nodiscard]] bool meets() const;
};

/// A reading and the mean of its controls, of the limit in which it is worst.
struct Compared {
  bool is_short = false;
  double share = 0, control = 0;
};

/// Readings of groups of nodes. Those of one size that are close together at the top are alike, and are the controls of
/// that size; a reading is short when it is below their mean by more than `difference()`. Sizes are never mixed,
/// because many figures depend on the number of nodes.
class Controls {
 public:
  /// Adds a reading of a group of `size` nodes. A broken one is left out.
  void add(std::size_t size, const Reading& reading);
  /// Forgets the readings of this size: its groups were alike, but others have been seen to be better than they.
  void forget(std::size_t size);
  /// Takes from the readings of this size, of groups that are compared for the first time, how far alike groups are
  /// apart in each limit: those above the first gap that only a fault leaves. A figure that scatters for a cause common
  /// to all then makes no group look short.
  void expect(std::size_t size);
  /// How many readings of this size are alike, in the limit if they are fewest; 0 when there are none.
  [[nodiscard]] std::size_t count(std::size_t size) const;
  /// `reading` against the controls of its size; nothing if there are none or it is broken.
  [[nodiscard]] std::optional<Compared> compare(std::size_t size, const Reading& reading) const;
  /// Whether the controls of this size meet every limit on average.
  [[nodiscard]] bool meet_limits(std::size_t size) const;
  /// Relative difference from the controls beyond which a reading of limit `limit` is short: 2 %, or four standard
  /// deviations of alike readings, whichever is more; expected ones count among these.
  [[nodiscard]] double difference(std::size_t limit) const;

 private:
  using Falling = std::vector<double>;  ///< shares, the best first
  /// Relative standard deviation of alike readings, and how many readings it counts as.
  struct Deviation {
    double relative = 0.005, weight = 2;  // runs of one group differ by about 0.5 % on quiet machines
  };
  std::vector<std::map<std::size_t, Falling>> shares_;  ///< of each limit, by size
  std::vector<Deviation> expected_;                     ///< of each limit
};

}  // namespace assay::judge
