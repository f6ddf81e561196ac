// runner: one thread, one event loop, a lane for each node. Steps first (runner.cpp), then searches
// (runner_searches.cpp).
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "orchestrator/judge/searches.h"
#include "orchestrator/launch/slurm.h"
#include "orchestrator/run/attempt.h"
#include "orchestrator/run/run.h"

namespace assay::run {

/// How often an agent that was lost is started again: a node that goes away twice is a finding, not a hiccup.
inline constexpr int kMostReconnects = 1;

/// A step runs when it is first in the queue of each of its nodes, all of them are idle, and the site has the power for
/// it. The queues hold the plan's order, so the first open step of the whole plan is always first everywhere, and no
/// two nodes can wait for each other.
class Runner {
 public:
  /// `journal` is what `writer` holds so far.
  Runner(const plan::Plan& plan, const std::vector<plan::Program>& programs, const RunOptions& options,
         judge::Journal journal, judge::JournalWriter writer, Progress& progress);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs everything to its end. Throws what a step threw.
  RunEnd go();

 private:
  using Tokens = boost::asio::experimental::channel<void(boost::system::error_code)>;
  using Clock = std::chrono::steady_clock;

  /// One node: its agent, and the steps that it still has to take part in, in the plan's order.
  struct Lane {
    const site::Node* node = nullptr;
    std::unique_ptr<launch::Agent> agent;
    std::deque<const plan::Step*> queue;
    bool busy = true;      ///< its agent is being started, or runs a step
    bool kept = false;     ///< a search may want its agent when its steps are over
    bool resting = false;  ///< its steps are over
    bool gone = false;     ///< its node was given up
    int starts = 0;
  };

  Lane& lane_of(const std::string& node) { return lanes_[index_.at(node)]; }
  void prepare_slurm();
  void spawn(boost::asio::awaitable<void> work);
  void wait_for_signal();
  boost::asio::awaitable<void> tick();
  boost::asio::awaitable<void> whole();
  boost::asio::awaitable<void> change();
  void changed() { change_.cancel(); }

  [[nodiscard]] judge::Journal part_of(const plan::Step& step) const;
  std::vector<judge::Result> results_of(const plan::Step& step);
  bool wants_attempt(const plan::Step& step);
  void begin(Lane& lane);
  boost::asio::awaitable<void> start_agent(Lane& lane);
  boost::asio::awaitable<bool> try_agent(Lane& lane, bool last);
  void advance(Lane& lane);
  void advance_all();
  boost::asio::awaitable<void> perform(const plan::Step& step);
  void after(const plan::Step& step, const std::vector<std::string>& lost);
  boost::asio::awaitable<std::vector<std::string>> attempt(const plan::Step& step, const std::string& purpose);
  void drop(const plan::Step& step);
  void give_up(Lane& lane);
  void rest(Lane& lane);
  void let_go(Lane& lane);
  boost::asio::awaitable<void> close(std::unique_ptr<launch::Agent> agent);
  void node_down(const std::string& node, const std::string& reason);

  [[nodiscard]] bool fits_power(const plan::Step& step) const;
  [[nodiscard]] bool fits_others(const plan::Step& step) const;
  [[nodiscard]] bool fits_time(const plan::Step& step) const;
  void stop_at_failure(const plan::Step& step);
  void leave_out();

  boost::asio::awaitable<void> localise();
  boost::asio::awaitable<void> perform_test(judge::ExtraTest test);
  boost::asio::awaitable<bool> gather(const plan::Step& step);

  const plan::Plan& plan_;
  const std::vector<plan::Program>& programs_;
  const RunOptions& options_;
  Progress& progress_;
  judge::Journal memory_;  ///< what the journal on disk says
  judge::JournalWriter journal_;
  judge::EvidenceReader evidence_;
  std::unordered_map<std::string, std::vector<std::size_t>> attempts_;   ///< of each step, by index in memory_
  std::unordered_map<std::string_view, std::vector<plan::Cell>> cells_;  ///< of each step
  std::map<std::string, std::size_t> index_;                             ///< of each node's lane
  boost::asio::io_context io_{1};
  std::vector<Lane> lanes_;
  std::unique_ptr<launch::SlurmLauncher> slurm_;  ///< null when no node of the plan needs it
  std::set<const plan::Step*> dropped_;           ///< steps that lost a node, or the time, before they began
  std::vector<std::string> too_late_;             ///< those that lost the time
  Tokens tokens_;                                 ///< one is held while an agent is being started
  boost::asio::signal_set signals_;
  boost::asio::steady_timer clock_, change_;
  std::size_t open_lanes_ = 0, closing_ = 0, tests_running_ = 0;
  double power_w_ = 0;             ///< of the running steps, by design
  bool waits_for_others_ = false;  ///< for their power, or to be alone
  std::size_t running_ = 0;        ///< steps of the plan
  bool alone_ = false;             ///< the one that runs is to be alone
  Clock::time_point end_ = Clock::time_point::max();
  bool stopping_ = false, interrupted_ = false;
  std::string failed_;  ///< the required cell at which the run stopped, and why
  std::optional<judge::Searches> searches_;
  std::exception_ptr failure_;
};

}  // namespace assay::run
