// local_ranks: one child process for each rank of this node, asked over pipes, one line at a time. Knows nothing of
// GPUs.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "probes/core/rendezvous_link.h"
#include "probes/core/units.h"

namespace assay {

/// One rank's program. `title` names it in errors ("rank 3 (GPU-8f2…)").
struct RankProgram {
  std::string path;
  std::vector<std::string> arguments;    ///< argv, its own name first
  std::vector<std::string> environment;  ///< "NAME=VALUE"
  std::string title;
};

/// A rank ended, fell silent or said too much. what() names it.
struct RankLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The children of this node. None outlives this object: the destructor kills and reaps those that are left.
class LocalRanks {
 public:
  /// Longest answer of one rank, in B: the times of a batch or what a log says are a few thousand.
  static constexpr std::size_t kLongestAnswer = 1 << 20;

  /// Starts all of them, with pipes for standard input and output; standard error is this process'. Throws
  /// std::system_error when one cannot be started.
  explicit LocalRanks(const std::vector<RankProgram>& programs);
  LocalRanks(LocalRanks&&) noexcept;
  LocalRanks& operator=(LocalRanks&&) = delete;
  ~LocalRanks();

  /// Number of ranks.
  [[nodiscard]] std::size_t count() const { return ranks_.size(); }
  /// Sends `request`, a line without its end, to every rank, and waits for a line of each. Throws RankLost when one
  /// ends, has not answered within `limit` or says too much: then all are killed. Throws std::runtime_error when this
  /// process is to stop. `meanwhile`, where given, is called some ten times a second, and what it throws ends the
  /// waiting.
  std::vector<std::string> ask(std::string_view request, Seconds limit, const std::function<void()>& meanwhile = {});
  /// Closes the ranks' input, on which they end, and waits for that at most `limit`; those that are left are killed.
  void finish(Seconds limit);

 private:
  struct Rank {
    pid_t process = -1;
    rendezvous::Descriptor input, output;
    std::string title, received;
    std::string unsent = {};  ///< what of the request its pipe has not taken yet
    bool ended = false;
    int status = 0;
  };
  static void tell(Rank& rank);
  void receive(Rank& rank);
  void kill_all() noexcept;
  [[noreturn]] void lose(Rank& rank, const std::string& how);

  std::vector<Rank> ranks_;
};

}  // namespace assay
