// agent: the agent of a node as the orchestrator uses it. A launcher starts `assay-node` there and yields a stream to
// it.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "orchestrator/site/launch_failure.h"
#include "orchestrator/site/site.h"
#include "probes/core/attempt_outcome.h"
#include "probes/core/units.h"

namespace assay::wire {
class Stream;
}  // namespace assay::wire

namespace assay::launch {

class ChildProcess;
class Connection;
class SlurmLauncher;
struct ConnectionOptions;

using site::LaunchFailure;

/// Why there is no agent, or no longer one.
struct LaunchError {
  LaunchFailure kind = LaunchFailure::unreachable;
  std::string reason;  ///< for people, printable ASCII; may be the last line that ssh or the agent wrote to stderr
};

/// How agents are started.
struct LaunchOptions {
  std::string agent;                               ///< path of our own assay-node
  std::map<std::string, std::string> agents = {};  ///< paths of assay-node for other machines, by uname -m
  std::string ssh = "ssh";                         ///< OpenSSH client; looked up in PATH unless it is a path
  Seconds connect_timeout{10};                ///< until ssh is connected; storing the agent and its hello take longer
  std::string kubectl = "kubectl";            ///< as ssh
  std::vector<std::string> directories = {};  ///< the agent is asked how much is free in each; few (wire/protocol.h)
  SlurmLauncher* slurm = nullptr;             ///< for nodes of launcher slurm, which are started together; not owned
};

/// The path of the agent for `machine`, empty for this one; empty if there is none.
std::string agent_for(const LaunchOptions& options, const std::string& machine);

/// Limits of a run, which is killed when it passes one; its outcome says which. Every figure is positive.
struct RunLimits {
  Bytes memory;  ///< resident set of the process tree
  Bytes output;  ///< stdout
  Seconds cpu;   ///< CPU time of each process
};

/// One program to run on a node.
struct RunRequest {
  std::string id;      ///< unique among the runs of this agent; is_run_id (protocol.h)
  std::string sha256;  ///< of the program, delivered before
  std::vector<std::string> arguments;
  std::string token;  ///< secret of the step's ranks, hexadecimal, at most 128 digits; empty: none
  Seconds deadline;   ///< SIGTERM then, SIGKILL two seconds later
  RunLimits limits;
};

/// How a run ended; never as interrupted.
struct RunResult {
  AttemptOutcome outcome = AttemptOutcome::lost;
  std::string reason;            ///< for people; empty if exited
  std::optional<int> exit_code;  ///< the program's, when it exited
  std::optional<int> signal;     ///< the signal that killed it, if one did
  double elapsed_s = 0;          ///< measured by the agent
  int left_behind = 0;           ///< processes that outlived the program and were killed
  std::string output;            ///< stdout, at most limits.output bytes: hostile
  std::string log;               ///< stderr, at most 1 MiB: hostile
};

/// One live agent. Single-threaded: all work is done on the executor of the coroutine that started it. Every wait has a
/// deadline. Destroying it drops the connection, and the agent then kills its run; close() is the orderly end. For the
/// ownership of the connection behind it see connection.h.
class Agent {
 public:
  /// Starts the agent of `node` and waits for its hello. Ignores SIGPIPE in this process from then on, because a stream
  /// to a node may close at any time. Fails with kind unreachable, host_key, refused or protocol.
  static boost::asio::awaitable<std::expected<std::unique_ptr<Agent>, LaunchError>> start(const site::Node& node,
                                                                                          const site::Site& site,
                                                                                          const LaunchOptions& options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// host_facts of the node as the agent reported them: an object of scalars.
  [[nodiscard]] const nlohmann::json& facts() const { return facts_; }
  /// The node's machine, as uname -m writes it.
  [[nodiscard]] const std::string& machine() const { return machine_; }
  /// B free in each of LaunchOptions::directories that could be asked, when the agent started.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& free() const { return free_; }
  /// Whether the ssh or kubernetes launcher had to store the agent on the node first; false for others.
  [[nodiscard]] bool was_stored() const { return stored_; }

  /// Sends the program at `path` to the agent; does nothing if the agent has it. Fails with kind refused when the bytes
  /// do not have this SHA-256 or the agent has no room, lost when the connection ended.
  boost::asio::awaitable<std::expected<void, LaunchError>> deliver(std::string sha256, std::string path);

  /// Runs a program to its end. Concurrent calls with different ids are allowed. Every failure is an outcome.
  boost::asio::awaitable<RunResult> run(RunRequest request);

  /// SIGTERM to a run, as for a companion that is no longer needed; SIGKILL ten seconds later. Its outcome is
  /// `stopped`.
  void stop(const std::string& id);

  /// Sends bye and waits until the agent has cleaned up and ended; drops the connection when that takes too long.
  boost::asio::awaitable<void> close();

 private:
  friend class Connection;
  Agent() = default;
  static boost::asio::awaitable<std::expected<std::unique_ptr<Agent>, LaunchError>> start_by_slurm(
      site::Node node, LaunchOptions options);
  static boost::asio::awaitable<std::expected<std::unique_ptr<Agent>, LaunchError>> connect(
      wire::Stream stream, std::unique_ptr<ChildProcess> child, ConnectionOptions options, Seconds patience);

  Connection* connection_ = nullptr;  // not owned; null once the connection has ended
  LaunchError gone_{.kind = LaunchFailure::lost,
                    .reason = "the agent was closed"};  // why connection_ is null, once it is
  nlohmann::json facts_;
  std::string machine_;
  std::map<std::string, std::uint64_t> free_;
  bool stored_ = false;
};

}  // namespace assay::launch
