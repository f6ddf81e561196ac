// watched_ranks: ranks of this node that survive each other: each is asked for itself, the end of one is reported, and
// another can take its place. Spares wait as well.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/collective/rank_board.h"
#include "probes/collective/rank_child.h"
#include "probes/collective/stillness.h"
#include "probes/core/units.h"

namespace assay::collective {

/// A line that a rank said, or the end of its process.
struct RankEvent {
  std::size_t slot = 0;
  bool lost = false;
  std::string words;  ///< the answer, or how it ended
};

/// The board's facts of one watched rank: how long ago something was, in s, and no longer than it has been watched.
struct RankAges {
  double beat_s = 0;               ///< its last beat
  double heard_s = 0;              ///< the last beat of another rank that it heard, or when it joined its group
  std::optional<double> struck_s;  ///< a fault that was injected into it; nothing if none was
  bool has_beaten = true;          ///< a new process may not have, and is not known to be alive then
};

/// The processes of one node, by slot. None outlives this object.
class WatchedRanks {
 public:
  /// The program of a slot; its page on `board` has the number of the slot. `board` outlives this object.
  using Programs = std::function<RankProgram(std::size_t slot)>;
  /// Starts all `board.ranks()` of them.
  WatchedRanks(RankBoard& board, Programs programs);

  /// Puts a line to one rank; a slot whose rank is lost takes it and nothing follows.
  void ask(std::size_t slot, std::string_view line);
  /// From now on these, and no others, owe beats.
  void watch(const std::vector<std::size_t>& slots);
  /// The group `number` is over: the rank of `slot` shuts its connections, so that nothing in it waits any longer.
  void give_up(std::size_t slot, std::int64_t number);
  /// Kills the rank of `slot` and waits for its end; nothing of it is reported any more.
  void end(std::size_t slot);
  /// A new process in a slot. Throws std::system_error when it cannot be started.
  void replace(std::size_t slot);
  /// New events; waits at most `limit` for the first event. The end of a process is reported once, as is one that owes
  /// no beats and has been stopped by a signal for as long as RankPatience has it. Throws std::runtime_error when this
  /// process is to stop.
  std::vector<RankEvent> poll(Seconds limit);
  /// By slot; nothing for those that are not watched.
  [[nodiscard]] std::vector<std::optional<RankAges>> ages() const;

 private:
  struct Slot {
    RankChild child;
    bool watched = false, lost = false;
    std::int64_t watched_ns = 0;  ///< since when it owes beats
    Lasting stopped = {};
  };
  void hear(std::vector<RankEvent>& events);
  void look(std::vector<RankEvent>& events);

  RankBoard& board_;
  Programs programs_;
  std::vector<std::optional<Slot>> slots_;
  std::int64_t looked_ns_ = 0;
};

}  // namespace assay::collective
