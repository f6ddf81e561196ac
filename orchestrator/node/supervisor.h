// supervisor: the process between the agent and one run, which enforces limits on the run's whole process tree.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include <sys/types.h>

#include "orchestrator/node/scratch.h"
#include "orchestrator/wire/protocol.h"
#include "probes/core/descriptor.h"

namespace assay::node {

/// Orders of the agent to a supervisor, one byte per datagram. The end of the stream (the agent has ended) means kill.
enum class SupervisorOrder : char {
  stop = 's',          ///< SIGTERM to the program; SIGKILL after the grace period
  kill = 'k',          ///< SIGKILL to the tree
  output_limit = 'o',  ///< as kill, with this outcome
};

/// A supervisor's report: one datagram, sent when no process of the tree is left.
struct SupervisorReport {
  enum class Cause : std::uint8_t { exited, deadline, memory_limit, output_limit, stopped, not_started };
  Cause cause = Cause::exited;
  int start_error = 0;   ///< errno when not_started
  int wait_status = 0;   ///< of the program, as waitpid gives it
  int left_behind = 0;   ///< processes that outlived the program and were killed
  double elapsed_s = 0;  ///< from just before exec to the end of the program
};

/// One run for a supervisor.
struct SupervisorTask {
  int program = -1;  ///< executed through this descriptor
  std::string name;  ///< argv[0]
  std::vector<std::string> arguments;
  std::string token;  ///< given to the program as ASSAY_TOKEN; empty: none
  double deadline_s = 0;
  wire::Limits limits;
};

/// A running supervisor. Closing `control` kills the run.
struct Supervisor {
  pid_t pid = 0;
  Descriptor control;  ///< datagrams: SupervisorOrder out, one SupervisorReport in; not blocking
  Descriptor out;      ///< the program's stdout; not blocking
  Descriptor err;      ///< the program's stderr; not blocking
};

/// Forks a supervisor for `task` with `scratch` as working directory, which the supervisor removes at the end.
/// Precondition: the calling process has one thread. The error is a reason; then `scratch` is removed too.
///
/// The program gets a session of its own, /dev/null as stdin, no core dumps, RLIMIT_CPU, and is the
/// kernel's first choice when memory runs out. Its environment is PATH, HOME (the scratch directory), LANG=C and, where
/// the agent is part of a bundle with libraries or its directory has some, ASSAY_LIBRARY_PATH with their folder
/// (../lib/assay beside the agent's own, or lib/assay in the directory), and nothing else. The memory limit is on the
/// summed resident set of the tree, checked once a second: a cgroup would be exact but needs delegation that few sites
/// grant, and RLIMIT_AS breaks CUDA, which reserves more address space than the machine has memory. At the deadline the
/// tree gets SIGTERM, and SIGKILL two seconds later.
std::expected<Supervisor, std::string> start_supervisor(const SupervisorTask& task, Scratch scratch);

}  // namespace assay::node
