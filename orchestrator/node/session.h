// session: the agent's side of the protocol, from hello to the last process it started.
#pragma once

#include <string>

#include "orchestrator/node/connect_back.h"
#include "orchestrator/node/program_store.h"
#include "probes/core/units.h"

namespace assay::node {

/// How an agent is started.
struct NodeOptions {
  std::string directory;  ///< absolute; its scratch and programs are below
  ProgramPlace programs = ProgramPlace::memfd;
  Seconds silence{60};              ///< time without a message after which the orchestrator counts as lost: four pings
  ConnectBackOptions connect_back;  ///< with endpoints: connect there instead of using stdin and stdout
};

/// Speaks the protocol on stdin and stdout, or on the connection back, until the stream ends, bye, silence, a broken
/// frame, SIGTERM, SIGINT or SIGHUP; then kills every process that it started and removes its scratch. Returns the exit
/// code: 0 after bye or a closed stream, 3 when it cannot connect back, 1 otherwise. Prints on stderr why it ended.
/// Precondition: the process has one thread, and the directory is claimed.
int serve_node(const NodeOptions& options);

}  // namespace assay::node
