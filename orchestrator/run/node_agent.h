// node_agent: the life cycle of one node's agent in a run: start, loss, restart within the run's patience, end.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>

#include "orchestrator/launch/agent.h"
#include "orchestrator/launch/slurm.h"
#include "orchestrator/run/progress.h"
#include "orchestrator/run/run.h"
#include "orchestrator/run/run_journal.h"

namespace assay::run {

/// Starts the agents of a run, at most `starts_at_once` of them at the same time, and those of launcher slurm together.
class AgentStarter {
 public:
  /// `site`, `options` and `progress` must outlive it.
  AgentStarter(boost::asio::io_context& io, const site::Site& site, const RunOptions& options, Progress& progress);

  /// Of which directories the agent of each node is asked how much is free, before the first is started.
  void ask_free(std::map<std::string, std::vector<std::string>> directories) { directories_ = std::move(directories); }
  /// Names the nodes of launcher slurm that this run needs, before the first of them is started.
  void use_slurm(std::vector<std::string> nodes);
  /// Starts the agent of `node` once.
  boost::asio::awaitable<std::expected<std::unique_ptr<launch::Agent>, launch::LaunchError>> start(
      const site::Node& node);
  /// Ends processes started for all nodes together, once their agents are closed.
  boost::asio::awaitable<void> close();

  /// The loop that agents run on.
  [[nodiscard]] boost::asio::io_context& io() const { return io_; }
  /// How long a node that was lost is tried again.
  [[nodiscard]] Seconds patience() const { return options_.patience; }

 private:
  boost::asio::io_context& io_;
  const site::Site& site_;
  const RunOptions& options_;
  Progress& progress_;
  boost::asio::experimental::channel<void(boost::system::error_code)> tokens_;  ///< holds one per agent being started
  std::map<std::string, std::vector<std::string>> directories_;                 ///< by node
  std::unique_ptr<launch::SlurmLauncher> slurm_;                                ///< null when no node needs it
};

/// The agent of one node. It is absent before the first start, after a loss and after its end. Every start that failed
/// for good, and every loss, is journalled.
class NodeAgent {
 public:
  /// All three must outlive it.
  NodeAgent(const site::Node& node, AgentStarter& starter, RunJournal& journal);

  /// The node it runs on.
  [[nodiscard]] const site::Node& node() const { return *node_; }
  /// The live agent; null while it is absent.
  [[nodiscard]] launch::Agent* get() const { return agent_.get(); }
  /// Whether a lost agent may still be restarted.
  [[nodiscard]] bool may_restart() const;

  /// Starts the agent. A first start is tried once, a restart again and again until the run's patience is over; no
  /// further try is made once `stopping` is true. get() says whether the agent is there.
  boost::asio::awaitable<void> start(const bool& stopping);
  /// Drops the agent, whose connection was lost, and journals `reason`.
  void lose(const std::string& reason);
  /// Ends the agent, which counts as absent from now on; ready when it is gone from its node.
  boost::asio::awaitable<void> close();

 private:
  boost::asio::awaitable<bool> try_once(bool last);

  const site::Node* node_;
  AgentStarter* starter_;
  RunJournal* journal_;
  std::unique_ptr<launch::Agent> agent_;
  int starts_ = 0;
};

}  // namespace assay::run
