// callers: unknown connections of the listener: how many are kept, and which make room.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <string>

namespace assay::launch {

/// A connection whose greeting has not been accepted.
struct Caller {
  std::string from;                             ///< its address, without the port
  std::chrono::steady_clock::time_point since;  ///< when it called
  bool speaks = false;                          ///< it has sent something
  std::function<void()> close;                  ///< ends every wait on it; its owner then takes it out
};

/// The callers that wait, the oldest first. One more than `most` costs one of them its place: the oldest silent one of
/// the address with the most callers, or the oldest of those that have sent data for a while without identifying
/// themselves.
class Callers {
 public:
  using Place = std::list<Caller>::iterator;

  explicit Callers(std::size_t most) : most_(most) {}

  /// Whether a caller may be taken in. When all places are taken, closes one that must go; false when there is none.
  bool has_room(std::chrono::steady_clock::time_point now);
  /// Adds a caller; the place stays valid until it leaves.
  Place add(Caller caller) { return all_.insert(all_.end(), std::move(caller)); }
  /// Takes a caller out.
  void leave(Place place) { all_.erase(place); }
  /// Closes every caller.
  void close_all();
  /// How many wait.
  [[nodiscard]] std::size_t size() const { return all_.size(); }

 private:
  Caller* who_goes(std::chrono::steady_clock::time_point now);

  std::size_t most_;
  std::list<Caller> all_;
};

/// Raises this process' limit of open files to its maximum; how many callers leave enough of them for everything else
/// that it opens.
std::size_t callers_within_descriptors();

}  // namespace assay::launch
