// attempt: one try of one step on a live agent, companions beside it, and what it leaves on disk.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "orchestrator/journal.h"
#include "orchestrator/launch.h"
#include "orchestrator/plan.h"

namespace assay {

/// The flags that give a probe `parameters`: "--size=4096".
std::vector<std::string> arguments_of(const Values& parameters);

/// Runs `step` once as attempt `number` on `agent`: delivers the probe and its companions, starts the companions, runs
/// the probe under its deadline, stops the companions, writes every record and log under `directory` durably. Returns
/// the attempt as it belongs into the journal. Throws std::system_error when evidence cannot be written.
boost::asio::awaitable<Attempt> run_attempt(Agent& agent, const Plan& plan, const Step& step, int number,
                                            const std::vector<Program>& programs, const std::string& directory);

}  // namespace assay
