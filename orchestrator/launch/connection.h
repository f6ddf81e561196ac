// connection: one stream to one agent, and everybody who waits for something from it.
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

/// Somebody who waits for one event, with a deadline.
class Waiter {
 public:
  explicit Waiter(const boost::asio::any_io_executor& executor) : timer_(executor) {}
  /// The event came; or with an error: it never will.
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

/// One run that the agent has not ended yet. It lives in the coroutine that waits for it.
struct PendingRun {
  const RunRequest& request;
  Waiter waiter;
  RunResult result;
  bool flooded = false;  // the agent sent more than it may
};

/// What an agent's stream is made of.
struct ConnectionOptions {
  std::string agent_sha256;                ///< the agent must be this one
  std::optional<std::string> agent_image;  ///< ssh, kubernetes: the agent's bytes, should the node need them
  Descriptor known_hosts;  ///< ssh: a memory file that ssh reads by its number; empty when the site has a file
  /// What it means that the stream ended before the hello: from the child's stderr and its exit code, if it ended by
  /// itself.
  std::function<LaunchError(std::string_view log, std::optional<int> exit_code)> explain;
};

/// The stream. Owned by the coroutine that serves it; Agent and Connection know each other until either ends. While a
/// coroutine is inside one of the awaitable members, serve does not return.
class Connection {
 public:
  /// Speaks over `stream`; `child` is the process that carries it, and null when the agent has dialled in.
  Connection(wire::Stream stream, std::unique_ptr<ChildProcess> child, ConnectionOptions options, Agent& agent);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Reads and writes until the stream ends, then wakes everybody who waits.
  boost::asio::awaitable<void> serve();
  /// Waits for the agent's hello.
  boost::asio::awaitable<std::expected<void, LaunchError>> greet(Seconds patience);
  /// See Agent.
  boost::asio::awaitable<std::expected<void, LaunchError>> deliver(std::string sha256, std::string path);
  boost::asio::awaitable<RunResult> run(const RunRequest& request);
  void stop(const std::string& id);
  boost::asio::awaitable<void> close();
  /// Ends the stream now, for this reason; the first reason stands.
  void abandon(LaunchError reason);

 private:
  friend class Agent;
  struct Visit;  // counts the coroutines inside

  boost::asio::awaitable<void> read_all();
  boost::asio::awaitable<bool> bootstrap();
  boost::asio::awaitable<std::optional<std::string>> read_until_line(std::string_view line, std::string_view other);
  boost::asio::awaitable<void> read_log();
  boost::asio::awaitable<void> heartbeat();
  boost::asio::awaitable<std::expected<void, LaunchError>> send_program(const std::string& sha256,
                                                                        const std::string& path);
  boost::asio::awaitable<void> wake_everybody();
  std::optional<InputError> take_frames();
  std::optional<std::string> take(wire::Welcome& welcome);
  std::optional<std::string> take(const wire::Stored& stored);
  std::optional<std::string> take(const wire::Refused& refused);
  std::optional<std::string> take(const wire::Data& data);
  std::optional<std::string> take(const wire::Ended& ended);
  std::optional<std::string> take(const wire::Pong&) { return std::nullopt; }
  void shut_streams();

  std::unique_ptr<ChildProcess> child_;  // goes after the stream that leads to it
  wire::Stream stream_;
  ConnectionOptions options_;
  Agent* agent_;
  wire::FrameQueue queue_;
  wire::FrameReader reader_;
  boost::asio::steady_timer heart_;
  std::chrono::steady_clock::time_point heard_;
  Waiter greeted_, closed_;
  bool welcome_ = false;
  bool log_ended_ = false;
  bool over_ = false;                  // nothing more is read
  std::optional<LaunchError> reason_;  // why it is over, when we know better than the child's exit code
  std::string log_;                    // the end of the child's stderr
  std::string early_;                  // read during bootstrap beyond its line
  std::map<std::string, PendingRun*> runs_;
  std::set<std::string> forgotten_;  // runs given up here that the agent may still speak of
  std::set<std::string> delivered_;
  std::map<std::string, std::vector<Waiter*>> deliveries_;
  int inside_ = 0;
};

}  // namespace assay::launch
