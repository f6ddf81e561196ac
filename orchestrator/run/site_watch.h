// site_watch: a companion of the head, which reads the site's meters or switches while a run measures.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "orchestrator/launch/agent.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/run/node_agent.h"
#include "orchestrator/run/run_journal.h"

namespace assay::run {

/// Reads the meters, or the switches, by an agent on this machine, where profile and site ask for it. One watch after
/// another: each is journalled with its record, and a step whose figures are of meters ends one, so that they are on
/// disk when it is judged. Nothing here ends a run: a watch that cannot begin, or ends early, leaves its cells open.
class SiteWatch {
 public:
  /// By the companion `probe`; nothing if it is empty. The others must outlive it.
  SiteWatch(const std::string& probe, const plan::Plan& plan, const std::vector<plan::Program>& programs,
            const RunOptions& options, AgentStarter& starter, RunJournal& journal);

  /// Whether its figures are judged by the attempts of `step`.
  [[nodiscard]] bool judges(const plan::Step& step) const;
  /// Why a load of all nodes must stop: the meters are not read, or one of them is over its limit.
  [[nodiscard]] std::optional<std::string> trouble() const;
  /// Begins a watch, unless one runs or none is wanted. Returns when its program was started. One that guards ends by
  /// itself when a meter is over its limit, or blind.
  boost::asio::awaitable<void> begin(bool guards = false);
  /// Ends the watch that runs; its record is on disk and in the journal then.
  boost::asio::awaitable<void> end();
  /// end(), and the agent's end.
  boost::asio::awaitable<void> close();

 private:
  struct Running {
    int number = 0;
    std::string id;
    std::optional<launch::RunResult> result;
  };

  boost::asio::awaitable<std::string> start_agent();
  static boost::asio::awaitable<void> follow(launch::Agent& agent, launch::RunRequest request,
                                             std::shared_ptr<Running> running);

  const plan::Plan& plan_;
  const plan::Program* program_ = nullptr;  ///< null: nothing is to be read
  std::string directory_;
  AgentStarter& starter_;
  RunJournal& journal_;
  site::Node head_;
  std::unique_ptr<launch::Agent> agent_;
  std::shared_ptr<Running> running_;
};

}  // namespace assay::run
