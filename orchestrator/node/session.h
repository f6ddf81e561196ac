// session: the agent's side of the protocol, from hello to the last process it started.
#pragma once

#include <string>

#include "orchestrator/node/connect_back.h"
#include "orchestrator/node/program_store.h"
#include "probes/core/units.h"

namespace assay::node {

/// How an agent is started.
struct NodeOptions {
  std::string directory;  ///< absolute; its scratch and programs lie below
  ProgramPlace programs = ProgramPlace::memfd;
  Seconds silence{60};  ///< four missed pings of the orchestrator: it is gone
  DialOptions dial;     ///< with homes: dial there instead of speaking on stdin and stdout
};

/// Speaks the protocol on stdin and stdout, or with whom it has dialled, until the stream ends, bye, silence, a broken
/// frame, SIGTERM, SIGINT or SIGHUP; then kills everything it started and removes its scratch. Returns the exit code: 0
/// after bye or a closed stream, 1 otherwise. Says on stderr why it ended. 3: nobody at home. Precondition: the process
/// has one thread, and the directory is claimed.
int serve_node(const NodeOptions& options);

}  // namespace assay::node
