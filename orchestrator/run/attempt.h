// attempt: one attempt of one step on live agents, with its companions and its evidence on disk.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/launch/agent.h"
#include "orchestrator/plan/plan.h"

namespace assay::run {

/// The flags that give a probe `parameters`: "--size=4096"; an empty text is a separate argument after its flag.
std::vector<std::string> arguments_of(const Values& parameters);

/// Most output of a probe: as much as the reader of records takes.
inline constexpr Bytes kMostRecord{64 << 20};

/// An attempt as it is journalled, and the nodes whose agents were lost in it.
struct AttemptEnd {
  judge::Attempt attempt;
  std::vector<std::string> lost;
  bool measured = false;  ///< every rank ended as one whose record is complete
};

/// Common state of all attempts of a run.
struct AttemptInputs {
  const plan::Plan& plan;
  const std::vector<plan::Program>& programs;
  const std::string& directory;                           ///< the run directory
  std::function<std::optional<std::string>()> stop = {};  ///< why all ranks have to end; empty: never
  std::string challenge = {};  ///< to a probe that asks hardware, as Placement::challenge has it; empty: none
};

/// Runs the probe of `step`, which asks the TPM, on `agent` without a question, for the keys of the TPM. Its output is
/// no evidence; empty if it did not run.
boost::asio::awaitable<std::string> keys_of_tpm(launch::Agent& agent, const AttemptInputs& inputs,
                                                const plan::Step& step);

/// Runs `step` once as attempt `number`, rank r on `agents[r]`: delivers the probe and its companions, starts the
/// companions on every node, runs all ranks at once under the step's deadline, stops the companions, writes every
/// record and log in the run directory durably. The outcome is the most severe of all ranks: lost, refused, crashed,
/// killed by a limit or deadline, told to end, exited. Throws std::system_error when evidence cannot be written.
boost::asio::awaitable<AttemptEnd> run_attempt(std::vector<launch::Agent*> agents, const AttemptInputs& inputs,
                                               const plan::Step& step, int number);

/// Ports that rank 0 listens on, which a firewall between the nodes must allow: below the kernel's ephemeral range, and
/// enough of them that concurrent steps on one machine do not collide.
inline constexpr int kFirstRendezvousPort = 28700, kRendezvousPorts = 256;

/// "host:port" where rank 0 of `step` listens: the rendezvous address of its first node, or that node's address in the
/// step's plane where the site has one, and a port from the step's ordinal in the plan.
std::string rendezvous_endpoint(const plan::Plan& plan, const plan::Step& step);

/// 64 hexadecimal digits from the system's random source, for one attempt. Throws std::runtime_error when it fails.
std::string rendezvous_token();

}  // namespace assay::run
