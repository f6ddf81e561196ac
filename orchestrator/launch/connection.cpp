// connection: reading, writing and waiting with deadlines on the stream to one agent.
#include "orchestrator/launch/connection.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/files/digest.h"
#include "orchestrator/launch/ssh.h"
#include "orchestrator/wire/as_tuple.h"
#include "probes/core/text.h"

namespace assay::launch {

namespace asio = boost::asio;

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

using wire::kAsTuple;
constexpr auto kHeartbeat = 15s;                // a quarter of the agent's time-out
constexpr auto kSilence = 60s;                  // longest silence of an agent that is pinged
constexpr Seconds kEndPatience{30};             // after a run's deadline: grace, killing, reporting
constexpr Seconds kStorePatience{60};           // to store a program, on top of its size over kSlowestLink
constexpr double kSlowestLink = 1e6;            // B/s; a management network is ten times faster
constexpr Seconds kClosePatience{15};           // for an agent to kill its run and end
constexpr Seconds kExitPatience{2};             // for a child whose streams are closed
constexpr auto kLogPatience = 2s;               // for the rest of stderr
constexpr std::size_t kMaxOwnLog = 16 << 10;    // of ssh or the agent: warnings and one error
constexpr std::size_t kMaxPreamble = 64 << 10;  // login scripts that print

LaunchError protocol_error(const InputError& error) {
  return {.kind = LaunchFailure::protocol, .reason = printable(error.where + ": " + error.what)};
}

}  // namespace

void Waiter::wake(std::optional<LaunchError> failure) {
  if (woken_) return;
  woken_ = true;
  failure_ = std::move(failure);
  timer_.cancel();
}

asio::awaitable<bool> Waiter::wait(Seconds patience) {
  timer_.expires_after(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience.count)));
  while (!woken_ && Clock::now() < timer_.expiry())
    (void)co_await timer_.async_wait(kAsTuple);  // the loop checks the cause
  co_return woken_;
}

struct Connection::Visit {
  explicit Visit(Connection& visited) : connection(visited) { ++connection.inside_; }
  ~Visit() { --connection.inside_; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  Connection& connection;
};

Connection::Connection(wire::Stream stream, std::unique_ptr<ChildProcess> child, ConnectionOptions options,
                       Agent& agent)
    : child_(std::move(child)),
      stream_(std::move(stream)),
      options_(std::move(options)),
      agent_(&agent),
      queue_(stream_),
      heartbeat_timer_(stream_.executor()),
      last_read_(Clock::now()),
      greeted_(stream_.executor()),
      closed_(stream_.executor()) {
  agent.connection_ = this;
}

Connection::~Connection() {
  if (agent_ == nullptr) return;
  agent_->connection_ = nullptr;
  if (reason_) agent_->gone_ = *reason_;
}

asio::awaitable<void> Connection::serve() {
  using namespace asio::experimental::awaitable_operators;
  co_await (read_all() && queue_.write_all() && read_log() && heartbeat());
  std::optional<int> exit_code;
  if (child_) exit_code = co_await child_->finish(kExitPatience);
  if (!reason_) {
    const std::string line = last_line(log_);
    reason_ = welcome_ ? LaunchError{.kind = LaunchFailure::lost,
                                     .reason = line.empty() ? "the connection to the agent ended"
                                                            : "the connection to the agent ended: " + line}
                       : options_.explain(log_, exit_code);
  }
  co_await wake_all();
}

/// Wakes every waiting coroutine and returns when all have left: see Ownership in connection.h.
asio::awaitable<void> Connection::wake_all() {
  asio::steady_timer timer(stream_.executor());
  while (true) {
    greeted_.wake(reason_);
    closed_.wake();
    for (const auto& [id, run] : runs_) run->waiter.wake(reason_);
    for (const auto& [sha256, waiters] : deliveries_) {
      for (auto* waiter : waiters) waiter->wake(reason_);
    }
    if (inside_ == 0) co_return;
    timer.expires_after(1ms);  // they leave in the loop's next rounds
    (void)co_await timer.async_wait(kAsTuple);
  }
}

void Connection::abandon(LaunchError reason) {
  if (!reason_) reason_ = std::move(reason);
  over_ = true;
  stream_.cancel_reading();
  shut_streams();
}

/// After this every loop of serve ends: the writer at once, the log when the child closes it or after kLogPatience.
void Connection::shut_streams() {
  over_ = true;
  queue_.close();
  stream_.close_writing();
  heartbeat_timer_.cancel();
}

asio::awaitable<void> Connection::read_all() {
  std::array<char, wire::kMaxChunk> buffer;
  if (co_await bootstrap()) {
    queue_.push(wire::encode(wire::Hello{.directories = options_.directories}));
    reader_.feed(early_);
    if (const auto problem = take_frames()) abandon(protocol_error(*problem));
    while (!over_) {
      const auto [error, size] = co_await stream_.read_some(buffer);
      if (error) break;
      last_read_ = Clock::now();
      reader_.feed({buffer.data(), size});
      if (const auto problem = take_frames()) abandon(protocol_error(*problem));
    }
  }
  shut_streams();
}

/// ssh and kubernetes: after the start line the node reports whether it has the agent, and is sent the agent when it
/// lacks it. False when the stream ended.
asio::awaitable<bool> Connection::bootstrap() {
  if (options_.agents.empty()) co_return true;
  queue_.push(std::string(kBootstrapStart));
  std::vector<std::string> lines;
  for (const auto& agent : options_.agents) {
    lines.push_back(std::string(kBootstrapHave) + agent.machine + "\n");
    lines.push_back(std::string(kBootstrapNeed) + agent.machine + "\n");
  }
  const auto answer = co_await read_until_line(lines);
  if (!answer) co_return false;
  const auto which = static_cast<std::size_t>(std::ranges::find(lines, *answer) - lines.begin());
  AgentImage& chosen = options_.agents[which / 2];
  options_.machine = chosen.machine;
  options_.agent_sha256 = chosen.sha256;
  if (which % 2 == 1) {
    queue_.push(std::move(chosen.bytes));
    std::vector<std::string> stored = {std::string(kBootstrapStored)};
    if (!co_await read_until_line(std::move(stored))) co_return false;
    if (agent_ != nullptr) agent_->stored_ = true;
  }
  options_.agents = {};
  co_return true;
}

/// The first of the lines to arrive; later bytes stay in early_. Nothing if the stream ended before.
asio::awaitable<std::optional<std::string>> Connection::read_until_line(std::vector<std::string> lines) {
  std::array<char, 4096> buffer;
  while (true) {
    for (const auto& wanted : lines) {
      const auto found = early_.find(wanted);
      if (found == std::string::npos) continue;
      early_.erase(0, found + wanted.size());
      co_return wanted;
    }
    if (early_.size() > kMaxPreamble) {
      abandon({.kind = LaunchFailure::protocol,
               .reason = "login scripts on the node print more than 64 KiB: " + printable(early_, 80)});
      co_return std::nullopt;
    }
    const auto [error, size] = co_await stream_.read_some(buffer);
    if (error || over_) co_return std::nullopt;
    early_.append(buffer.data(), size);
  }
}

asio::awaitable<void> Connection::read_log() {
  std::array<char, 4096> buffer;
  while (child_) {
    const auto [error, size] = co_await child_->err.async_read_some(asio::buffer(buffer), kAsTuple);
    if (error) break;
    log_.append(buffer.data(), size);
    if (log_.size() > kMaxOwnLog) log_.erase(0, log_.size() - kMaxOwnLog);
  }
  log_ended_ = true;
  if (over_) heartbeat_timer_.cancel();  // which now waits for the log only
}

/// Pings, and abandons an agent that does not answer. After the stream has ended, limits the time for the log.
asio::awaitable<void> Connection::heartbeat() {
  while (!over_) {
    heartbeat_timer_.expires_after(kHeartbeat);
    (void)co_await heartbeat_timer_.async_wait(kAsTuple);  // cancelled when the stream ends
    if (over_) break;
    if (welcome_ && Clock::now() - last_read_ > kSilence) {
      abandon(
          {.kind = LaunchFailure::lost, .reason = fmt::format("no message from the agent for {} s", kSilence.count())});
    } else if (welcome_) {
      queue_.push(wire::encode(wire::Ping{}));
    }
  }
  if (log_ended_) co_return;
  heartbeat_timer_.expires_after(kLogPatience);
  (void)co_await heartbeat_timer_.async_wait(kAsTuple);
  boost::system::error_code ignored;  // usually the log has ended already
  (void)child_->err.cancel(ignored);
}

asio::awaitable<std::expected<void, LaunchError>> Connection::greet(Seconds patience) {
  const Visit visit(*this);
  if (!co_await greeted_.wait(patience)) {
    LaunchError error = options_.explain(log_, std::nullopt);
    error.reason = fmt::format("no agent answered within {} s: {}", patience.count, error.reason);
    abandon(error);
    co_return std::unexpected(error);
  }
  if (greeted_.failure()) co_return std::unexpected(*greeted_.failure());
  co_return std::expected<void, LaunchError>();
}

asio::awaitable<std::expected<void, LaunchError>> Connection::deliver(std::string sha256, std::string path) {
  const Visit visit(*this);
  if (delivered_.contains(sha256)) co_return std::expected<void, LaunchError>();
  Waiter waiter(stream_.executor());
  auto& waiters = deliveries_[sha256];
  waiters.push_back(&waiter);
  Seconds patience = kStorePatience;
  if (waiters.size() == 1) {  // the first request sends it
    std::error_code ignored;  // send_program reports an unreadable file
    const auto size = std::filesystem::file_size(path, ignored);
    if (!ignored) patience.count += static_cast<double>(size) / kSlowestLink;
    const auto sent = co_await send_program(sha256, path);
    if (!sent) {
      for (auto* other : deliveries_[sha256]) other->wake(sent.error());
    }
  } else {
    patience.count += static_cast<double>(wire::kMaxProgram) / kSlowestLink;
  }
  if (!over_ && !co_await waiter.wait(patience))
    waiter.wake(LaunchError{.kind = LaunchFailure::lost, .reason = "the agent did not store the program in time"});
  if (over_) (void)co_await waiter.wait(kExitPatience);  // the reason is known once the child has ended
  std::erase(deliveries_[sha256], &waiter);
  if (deliveries_[sha256].empty()) deliveries_.erase(sha256);
  if (waiter.failure()) co_return std::unexpected(*waiter.failure());
  co_return std::expected<void, LaunchError>();
}

asio::awaitable<std::expected<void, LaunchError>> Connection::send_program(const std::string& sha256,
                                                                           const std::string& path) {
  const auto refused = [&](const char* what) {
    return std::unexpected(
        LaunchError{.kind = LaunchFailure::refused, .reason = fmt::format("program {} {}", printable(path), what)});
  };
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) co_return refused("cannot be read");
  if (size == 0 || size > wire::kMaxProgram) co_return refused("is empty or too large");
  queue_.push(wire::encode(wire::Program{.sha256 = sha256, .size = size}));
  std::string chunk(wire::kMaxChunk, '\0');
  for (std::uint64_t left = size; left > 0;) {
    const auto part = std::min<std::uint64_t>(left, wire::kMaxChunk);
    file.read(chunk.data(), static_cast<std::streamsize>(part));
    if (file.gcount() != static_cast<std::streamsize>(part)) co_return refused("became shorter while it was read");
    std::string frame =
        wire::encode(wire::Data{.channel = wire::Channel::program, .id = sha256, .bytes = chunk.substr(0, part)});
    if (!co_await queue_.push_when_room(std::move(frame)))
      break;  // the connection has ended; the waiter gets the reason
    left -= part;
  }
  co_return std::expected<void, LaunchError>();
}

asio::awaitable<RunResult> Connection::run(const RunRequest& request) {
  const Visit visit(*this);
  PendingRun pending{.request = request, .waiter = Waiter(stream_.executor()), .result = {}};
  if (runs_.contains(request.id) || !is_run_id(request.id)) {
    pending.result.outcome = AttemptOutcome::refused;
    pending.result.reason = fmt::format("'{}' is not a valid run id, or is in use", printable(request.id));
    co_return std::move(pending.result);
  }
  runs_[request.id] = &pending;
  queue_.push(wire::encode(wire::Run{.id = request.id,
                                     .sha256 = request.sha256,
                                     .arguments = request.arguments,
                                     .token = request.token,
                                     .deadline_s = request.deadline.count,
                                     .limits = {.memory_bytes = request.limits.memory.count,
                                                .output_bytes = request.limits.output.count,
                                                .cpu_s = request.limits.cpu.count}}));
  const Seconds patience{request.deadline.count + kEndPatience.count};
  const bool woken = co_await pending.waiter.wait(patience);
  runs_.erase(request.id);
  if (!woken) {
    forgotten_.insert(request.id);
    queue_.push(wire::encode(wire::Kill{request.id}));
    pending.result.outcome = AttemptOutcome::lost;
    pending.result.reason = fmt::format("no end reported {} s after its deadline", kEndPatience.count);
  } else if (pending.waiter.failure()) {
    pending.result.outcome =
        pending.waiter.failure()->kind == LaunchFailure::refused ? AttemptOutcome::refused : AttemptOutcome::lost;
    pending.result.reason = pending.waiter.failure()->reason;
  }
  co_return std::move(pending.result);
}

void Connection::stop(const std::string& id) {
  if (runs_.contains(id)) queue_.push(wire::encode(wire::Stop{id}));
}

asio::awaitable<void> Connection::close() {
  const Visit visit(*this);
  queue_.push(wire::encode(wire::Bye{}));
  queue_.finish();
  if (!reason_) reason_ = LaunchError{.kind = LaunchFailure::lost, .reason = "the agent was closed"};
  if (!co_await closed_.wait(kClosePatience)) abandon(*reason_);
}

}  // namespace assay::launch
