// connection: one stream to one agent, and the coroutines that wait for its messages.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "orchestrator/launch/agent.h"
#include "orchestrator/launch/child_process.h"
#include "orchestrator/wire/frame_queue.h"
#include "orchestrator/wire/protocol.h"
#include "orchestrator/wire/stream.h"
#include "probes/core/descriptor.h"

namespace assay::launch {

/// One coroutine that waits for one event, with a deadline.
class Waiter {
 public:
  explicit Waiter(const boost::asio::any_io_executor& executor) : timer_(executor) {}
  /// The event has come; with `failure`, it never will.
  void wake(std::optional<LaunchError> failure = std::nullopt);
  /// Waits until wake or for `patience`; true when it was woken.
  boost::asio::awaitable<bool> wait(Seconds patience);
  /// The error that wake was given.
  [[nodiscard]] const std::optional<LaunchError>& failure() const { return failure_; }

 private:
  boost::asio::steady_timer timer_;
  bool woken_ = false;
  std::optional<LaunchError> failure_;
};

/// One run that the agent has not ended yet. It is a local of the coroutine that waits for it.
struct PendingRun {
  const RunRequest& request;
  Waiter waiter;
  RunResult result;
  bool flooded = false;  // the agent sent more than it may
};

/// The bytes of an agent, in case the node lacks them.
struct AgentImage {
  std::string machine, sha256, bytes;
};

/// Parameters of a connection besides its stream.
struct ConnectionOptions {
  std::string machine;                   ///< of the node; with `agents` it is found when the node answers
  std::string agent_sha256;              ///< of the agent that must be at the other end; likewise
  std::vector<std::string> directories;  ///< of which it is asked how much is free
  std::vector<AgentImage> agents;        ///< ssh, kubernetes: one for each machine that the node may be
  Descriptor known_hosts;  ///< ssh: a memory file that ssh reads by its number; empty if the site has a file
  /// Why the stream ended before the hello, from the child's stderr and its exit code; no exit code when it was killed.
  std::function<LaunchError(std::string_view log, std::optional<int> exit_code)> explain;
};

/// The stream to an agent and the state of its requests.
///
/// Ownership. The coroutine that runs serve() owns the Connection; the user of an Agent owns the Agent. Each has a
/// plain pointer to the other, and either may be destroyed first:
/// - ~Agent sets agent_ to null here and abandons the stream, which ends serve();
/// - ~Connection sets the agent's connection_ to null and leaves it the reason.
/// Both happen on one executor, so a pointer that is not null is valid until the next co_await. serve() returns only
/// when no other coroutine is inside an awaitable member (inside_ is 0), so such a member may use the Connection until
/// it returns, even when its Agent has been destroyed meanwhile.
class Connection {
 public:
  /// `child` is the process at the other end of `stream`; null when the agent has connected back.
  Connection(wire::Stream stream, std::unique_ptr<ChildProcess> child, ConnectionOptions options, Agent& agent);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Reads and writes until the stream ends, then wakes every waiting coroutine.
  boost::asio::awaitable<void> serve();
  /// Waits for the agent's hello.
  boost::asio::awaitable<std::expected<void, LaunchError>> greet(Seconds patience);
  /// See Agent.
  boost::asio::awaitable<std::expected<void, LaunchError>> deliver(std::string sha256, std::string path);
  boost::asio::awaitable<RunResult> run(const RunRequest& request);
  void stop(const std::string& id);
  boost::asio::awaitable<void> close();
  /// Ends the stream now; of several reasons the first is kept.
  void abandon(LaunchError reason);

 private:
  friend class Agent;
  struct Visit;  // counts a coroutine in inside_

  boost::asio::awaitable<void> read_all();
  boost::asio::awaitable<bool> bootstrap();
  boost::asio::awaitable<std::optional<std::string>> read_until_line(std::vector<std::string> lines);
  boost::asio::awaitable<void> read_log();
  boost::asio::awaitable<void> heartbeat();
  boost::asio::awaitable<std::expected<void, LaunchError>> send_program(const std::string& sha256,
                                                                        const std::string& path);
  boost::asio::awaitable<void> wake_all();
  std::optional<InputError> take_frames();
  std::optional<std::string> take(wire::Welcome& welcome);
  std::optional<std::string> take(const wire::Stored& stored);
  std::optional<std::string> take(const wire::Refused& refused);
  std::optional<std::string> take(const wire::Data& data);
  std::optional<std::string> take(const wire::Ended& ended);
  std::optional<std::string> take(const wire::Pong&) { return std::nullopt; }
  void shut_streams();

  std::unique_ptr<ChildProcess> child_;  // destroyed after the stream to it
  wire::Stream stream_;
  ConnectionOptions options_;
  Agent* agent_;  // not owned; null once the agent has been destroyed
  wire::FrameQueue queue_;
  wire::FrameReader reader_;
  boost::asio::steady_timer heartbeat_timer_;
  std::chrono::steady_clock::time_point last_read_;
  Waiter greeted_, closed_;
  bool welcome_ = false;
  bool log_ended_ = false;
  bool over_ = false;                  // the stream has ended; nothing more is read
  std::optional<LaunchError> reason_;  // why it ended, when that is known besides the child's exit code
  std::string log_;                    // the end of the child's stderr
  std::string early_;                  // bytes that followed a bootstrap line
  std::map<std::string, PendingRun*> runs_;
  std::set<std::string> forgotten_;  // runs that were given up and that the agent may still report on
  std::set<std::string> delivered_;
  std::map<std::string, std::vector<Waiter*>> deliveries_;
  int inside_ = 0;  // coroutines in awaitable members other than serve
};

}  // namespace assay::launch
