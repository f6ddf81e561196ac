// runner: schedules the steps of a plan on its nodes (runner.cpp), pass after pass and stage after stage
// (runner_stages.cpp), then the extra tests of searches (runner_searches.cpp). One thread, one event loop.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "orchestrator/judge/locate/searches.h"
#include "orchestrator/plan/passes.h"
#include "orchestrator/plan/storage_use.h"
#include "orchestrator/run/admission.h"
#include "orchestrator/run/attempt.h"
#include "orchestrator/run/node_agent.h"
#include "orchestrator/run/run.h"
#include "orchestrator/run/run_journal.h"
#include "orchestrator/run/site_watch.h"

namespace assay::run {

/// A step runs when it is first in the queue of each of its nodes, all of them are idle, and the power cap allows it.
/// The queues keep the order of the passes, so the first open turn is first in every queue that has it, and no two
/// nodes can wait for each other. A node that is through with a pass begins the next one without waiting for the
/// others.
class Runner {
 public:
  /// All five must outlive it.
  Runner(const plan::Plan& plan, const std::vector<plan::Program>& programs, const RunOptions& options,
         RunJournal& journal, Progress& progress);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs until every step and search has ended. Rethrows a step's error. An error where a storage has less free than a
  /// step needs, before any has run.
  std::expected<RunEnd, InputError> go();

 private:
  /// Tasks of one node: its turns of the stage, in order; a step is in it as often as it has attempts.
  struct NodeWork {
    NodeAgent agent;
    std::deque<const plan::Step*> queue;
    bool busy = true;      ///< its agent is being started, or runs a step
    bool kept = false;     ///< a second stage or a search may need its agent after its steps
    bool resting = false;  ///< its steps are over
    bool gone = false;     ///< its node was given up
  };

  NodeWork& work_of(const std::string& node) { return node_work_[index_.at(node)]; }
  void keep_agents();
  void show_kept();
  void prepare_slurm();
  void spawn(boost::asio::awaitable<void> work);
  void wait_for_signal();
  boost::asio::awaitable<void> tick();
  boost::asio::awaitable<void> run_all();
  void demand_space();
  void begin_steps();
  boost::asio::awaitable<void> run_stage();
  void queue_turns();
  [[nodiscard]] bool follows() const;
  [[nodiscard]] judge::Results judged() const;
  [[nodiscard]] bool begin_second_stage(const judge::Results& results);
  boost::asio::awaitable<void> change();
  void changed() { change_.cancel(); }

  void begin(NodeWork& lane);
  boost::asio::awaitable<void> start_agent(NodeWork& lane);
  void advance(NodeWork& lane);
  void advance_all();
  boost::asio::awaitable<void> perform(const plan::Step& step);
  void release(const plan::Step& step, const std::vector<std::string>& lost);
  boost::asio::awaitable<std::vector<std::string>> attempt(const plan::Step& step, const std::string& purpose);
  void drop(const plan::Step& step);
  void give_up(NodeWork& lane);
  void rest(NodeWork& lane);
  void close_agent(NodeWork& lane);
  boost::asio::awaitable<void> closed(boost::asio::awaitable<void> closing);
  void stop_at_failure(const plan::Step& step);
  void stop_at_crossing();
  void stop_at_one_cause();
  void journal_left_out();

  boost::asio::awaitable<void> localise(const judge::Results& results);
  boost::asio::awaitable<void> perform_test(judge::ExtraTest test);
  boost::asio::awaitable<void> make_test(const judge::ExtraTest& test);
  boost::asio::awaitable<bool> gather(const plan::Step& step);

  const plan::Plan& plan_;
  plan::Passes passes_;
  const std::vector<plan::Program>& programs_;
  const RunOptions& options_;
  Progress& progress_;
  RunJournal& journal_;
  Admission admission_;
  boost::asio::io_context io_{1};
  AgentStarter starter_;
  SiteWatch meters_, switches_;
  std::vector<NodeWork> node_work_;
  std::map<std::string, std::size_t> index_;  ///< of each node's lane
  std::set<const plan::Step*> dropped_;       ///< steps that get no further attempt in this stage
  int looked_ = 0;                            ///< attempts of all nodes that the agreed boundaries were looked at for
  std::vector<std::string> too_late_;         ///< those that lost the time
  boost::asio::signal_set signals_;
  boost::asio::steady_timer clock_, change_;
  std::size_t open_lanes_ = 0, closing_ = 0, tests_running_ = 0;
  bool waits_for_others_ = false;  ///< a step waits for power, or for others to end
  bool stopping_ = false;          ///< nothing more starts
  bool interrupted_ = false;       ///< by a signal
  std::string failed_;             ///< why the run stopped: a required cell, or a cause of many attempts
  std::optional<judge::Searches> searches_;
  std::vector<plan::StorageUse> uses_;  ///< writes of open steps to storages
  std::size_t starting_ = 0;            ///< agents that are waited for before the first step
  bool waits_for_agents_ = false;       ///< no step begins before all of them have reported free space
  std::optional<InputError> no_space_;  ///< why none does
  std::map<std::string, std::vector<std::string>> too_large_;  ///< steps left out for want of space, by reason
  std::exception_ptr failure_;
};

}  // namespace assay::run
