// watched_fleet: the ranks of all nodes, each asked for itself, while some may be lost. Rank 0's leader decides, tick
// by tick; the others carry out and report.
//
//         node 0                                   node 1
//   WatchedFleet (decides)  ---- orders ---->  WatchedFleet (follows)   one broadcast and one gathering a tick, over
//         |                 <- events, ages -        |                  the rendezvous of the leaders
//    WatchedRanks                               WatchedRanks            a pipe to each rank and its page of memory
//      |        |                                 |        |
//   rank 0   rank 1    ~~~~ beats by UDP ~~~~  rank 2   rank 3          Heartbeat: each to up to 8 ranks after it
//
// Two things are watched. That a rank lives: its heartbeat's thread writes the time into its page; a process that is
// stopped or gone writes none. That its network works: it notes when it last heard a beat of another rank; a network
// that drops everything lets it hear no other, while its own page still shows that it lives. losses_of() decides.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/collective/local_ranks.h"
#include "probes/collective/rank_board.h"
#include "probes/collective/rank_child.h"
#include "probes/core/rendezvous.h"
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

/// When a rank counts as lost.
struct HeartbeatLimits {
  Seconds period = {1};     ///< between two beats of a rank
  std::int64_t missed = 3;  ///< beats that do not come, after which it is
  [[nodiscard]] double silence_s() const { return period.count * static_cast<double>(missed); }
};

/// Why each rank counts as lost; nothing for those that do not, and for those not watched. A rank is silent when its
/// own beats stop. It is cut off when it hears no other rank although at least one other is surely alive.
std::vector<std::optional<std::string>> losses_of(const std::vector<std::optional<RankAges>>& ranks,
                                                  const HeartbeatLimits& limits);

/// Event of one rank. Slots count node by node.
struct FleetEvent {
  std::size_t slot = 0;
  bool lost = false;
  nlohmann::json answer;          ///< to the request; null of a loss
  std::string how;                ///< of a loss
  std::optional<double> since_s;  ///< of a loss: how long ago a fault was injected into it; nothing if none was
};

/// The slots of all nodes, as the leader of rank 0 sees them.
class WatchedFleet {
 public:
  /// `group` connects the leaders and outlives the fleet; null on one node. On every node.
  WatchedFleet(WatchedRanks& here, std::size_t slots_here, Rendezvous* group, const HeartbeatLimits& limits);

  [[nodiscard]] std::size_t slots() const { return slots_here_ * nodes_; }
  [[nodiscard]] std::size_t node_of(std::size_t slot) const { return slot / slots_here_; }

  // Node 0. All of these are carried out at the next tick.
  void ask(std::size_t slot, const nlohmann::json& request);
  void watch(const std::vector<std::size_t>& slots);
  void give_up(std::size_t slot, std::int64_t number);
  void end(std::size_t slot);
  void replace(std::size_t slot);
  /// Node 0: carries out orders, and returns the events since the last tick, within about 20 ms. A loss is reported
  /// once. Throws as the rendezvous when a leader is gone.
  std::vector<FleetEvent> tick();
  /// The other nodes: carries out node 0's orders until it releases them.
  void follow();
  /// Node 0: no tick follows.
  void release();

 private:
  void order(std::size_t slot, const char* what, nlohmann::json with);
  void carry_out(const nlohmann::json& orders);
  std::string report();

  WatchedRanks& here_;
  std::size_t slots_here_, node_ = 0, nodes_ = 1;
  Rendezvous* group_;
  HeartbeatLimits limits_;
  nlohmann::json orders_;            ///< by node: lists of [what, slot of the node, with]
  std::vector<bool> reported_lost_;  ///< by slot
};

}  // namespace assay::collective
