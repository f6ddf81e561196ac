// local_ranks: one child process for each rank of this node, asked together; the loss of one ends all. Knows nothing of
// GPUs.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "probes/collective/rank_child.h"
#include "probes/core/units.h"

namespace assay::collective {

/// When ranks of this node that owe an answer count as silent before the limit of their request.
struct RankPatience {
  /// One of them has been stopped by a signal for so long: it does not compute, and the others wait for it.
  Seconds stopped = {5};
  /// None of them has run for so long. Only for ranks that wait for no other node; nothing: they are waited for.
  std::optional<Seconds> idle = {};
  /// One of them has answered with an error so long ago: the others may wait for it, and {} replaces their answers.
  /// Nothing: they are waited for.
  std::optional<Seconds> after_error = {};
};

/// Adds up how long something has lasted. Only time in which this process has looked counts: a leader that was stopped
/// with its ranks, and continues before them, finds nothing that lasted.
class Lasting {
 public:
  using Clock = std::chrono::steady_clock;

  /// Notes whether it lasts at `now`. Returns how long it has.
  Seconds look(bool lasts, Clock::time_point now);

 private:
  std::optional<Clock::time_point> looked_;
  Seconds lasted_;
};

/// How a rank was lost.
enum class RankLoss { ended, silent, garbled };

/// A rank ended, fell silent or said too much. what() names it; of those that are silent together, the first.
struct RankLost : std::runtime_error {
  RankLost(RankLoss how_it_was, const std::string& what) : std::runtime_error(what), how(how_it_was) {}
  RankLoss how;
};

/// The children of this node. None outlives this object: the destructor kills and reaps those that are left.
class LocalRanks {
 public:
  /// Starts all of them. Throws std::system_error when one cannot be started.
  explicit LocalRanks(const std::vector<RankProgram>& programs, const RankPatience& patience = {});
  LocalRanks(LocalRanks&&) noexcept = default;
  LocalRanks& operator=(LocalRanks&&) = delete;
  ~LocalRanks();

  /// Number of ranks.
  [[nodiscard]] std::size_t count() const { return ranks_.size(); }
  /// Sends `request`, a line without its end, to every rank, and waits for a line of each. Throws RankLost when one
  /// ends, has not answered within `limit` or the patience, or says too much: then all are killed. Throws
  /// std::runtime_error when this process is to stop. `meanwhile`, where given, is called some ten times a second, and
  /// its exception ends the waiting.
  std::vector<std::string> ask(std::string_view request, Seconds limit, const std::function<void()>& meanwhile = {});
  /// Closes the ranks' input, on which they end, and waits for that at most `limit`, and for one that is stopped no
  /// longer than the patience; those that are left are killed.
  void finish(Seconds limit);

 private:
  void kill_all() noexcept;
  [[noreturn]] void lose(const RankChild& rank, RankLoss loss, const std::string& how);

  /// One that has been stopped, or all that `waiting` is when none has run, for longer than the patience.
  void demand_life(const std::vector<RankChild*>& waiting);

  /// The leader's view of its ranks while it waits.
  struct Sight {
    std::vector<Lasting> stopped;  ///< by rank
    Lasting idle;
    Seconds cpu;                    ///< of all that are waited for
    Lasting::Clock::time_point at;  ///< of the last look
  };

  std::vector<RankChild> ranks_;
  RankPatience patience_;
  Sight sight_;
};

}  // namespace assay::collective
