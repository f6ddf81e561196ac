// attempt: one try of one step on live agents, companions beside it, and what it leaves on disk.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "orchestrator/judge/journal.h"
#include "orchestrator/launch/agent.h"
#include "orchestrator/plan/plan.h"

namespace assay::run {

/// The flags that give a probe `parameters`: "--size=4096"; an empty text is a word of its own behind its flag.
std::vector<std::string> arguments_of(const Values& parameters);

/// An attempt as it belongs into the journal, and the nodes whose agents went away in it.
struct AttemptEnd {
  judge::Attempt attempt;
  std::vector<std::string> lost;
};

/// Runs `step` once as attempt `number`, rank r on `agents[r]`: delivers the probe and its companions, starts the
/// companions on every node, runs all ranks at once under the step's deadline, stops the companions, writes every
/// record and log under `directory` durably. The outcome is that of the rank that tells most: lost, refused, crashed,
/// killed by a limit or deadline, exited. Throws std::system_error when evidence cannot be written.
boost::asio::awaitable<AttemptEnd> run_attempt(std::vector<launch::Agent*> agents, const plan::Plan& plan,
                                               const plan::Step& step, int number,
                                               const std::vector<plan::Program>& programs,
                                               const std::string& directory);

}  // namespace assay::run
