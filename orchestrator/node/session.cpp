// session: one event loop; a supervisor process for each run enforces its limits.
#include "orchestrator/node/session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <map>
#include <system_error>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/files/digest.h"
#include "orchestrator/node/process_tree.h"
#include "orchestrator/node/supervisor.h"
#include "orchestrator/node/welcome.h"
#include "orchestrator/wire/as_tuple.h"
#include "orchestrator/wire/frame_queue.h"
#include "orchestrator/wire/protocol.h"
#include "probes/core/host_facts.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::node {
namespace asio = boost::asio;

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

using wire::kAsTuple;
constexpr auto kDrainPatience = 5s;         // for the rest of the pipes once the process tree has ended
constexpr auto kShutdownPatience = 45s;     // longer than the supervisors' own 30 s
constexpr auto kTick = 250ms;               // between two checks for silence
constexpr std::size_t kMaxRuns = 64;        // a step with its companions needs below 10
constexpr std::uint64_t kMaxLog = 1 << 20;  // stderr of one run; the rest is read and dropped

/// One run, from its request to its end.
struct ActiveRun {
  Supervisor supervisor;
  std::string scratch;
  std::uint64_t output_limit = 0;
  int pumps = 0;  // of its two streams, those still being read
};

class Session {
 public:
  Session(asio::io_context& context, const NodeOptions& options, wire::Stream stream)
      : context_(context),
        options_(options),
        store_(options.directory, options.programs),
        stream_(std::move(stream)),
        signals_(context, SIGTERM, SIGINT, SIGHUP),
        children_(context, SIGCHLD),
        queue_(stream_) {}

  int serve() {
    asio::co_spawn(context_, read_frames(), asio::detached);
    asio::co_spawn(context_, queue_.write_all(), [this](const std::exception_ptr&) { written_ = true; });
    asio::co_spawn(context_, watch_silence(), asio::detached);
    asio::co_spawn(context_, watch_signals(), asio::detached);
    asio::co_spawn(context_, collect_children(), asio::detached);
    context_.run();
    std::cerr << "assay-node: ends: " << harmless(ending_) << '\n';
    return orderly_ ? 0 : 1;
  }

 private:
  asio::awaitable<void> read_frames() {
    std::array<char, wire::kMaxChunk> buffer;
    while (ending_.empty()) {
      const auto [error, size] = co_await stream_.read_some(buffer);
      if (error) {
        end(error == asio::error::eof ? "the stream is closed" : "the stream failed: " + error.message(),
            error == asio::error::eof);
        break;
      }
      last_read_ = Clock::now();
      reader_.feed({buffer.data(), size});
      if (const auto problem = take_frames()) end(problem->text(), false);
    }
  }

  std::optional<InputError> take_frames() {
    while (ending_.empty()) {
      auto frame = reader_.next();
      if (!frame) return frame.error();
      if (!*frame) break;
      auto message = wire::decode_to_agent(**frame);
      if (!message) return message.error();
      const bool greeting = std::holds_alternative<wire::Hello>(*message);
      if (greeting == greeted_)
        return InputError{"stream", greeted_ ? "a second hello" : "does not begin with hello",
                          "start the agent through assay"};
      std::visit([this](auto& typed) { take(typed); }, *message);
    }
    return std::nullopt;
  }

  void take(const wire::Hello& hello) {
    greeted_ = true;
    // Answered for any version: the orchestrator can then name both in its error.
    queue_.push(wire::encode(welcome_to(hello, options_.directory)));
    if (hello.protocol != wire::kProtocol)
      end(fmt::format("the orchestrator has protocol version {}, this agent {}", hello.protocol, wire::kProtocol),
          false);
  }
  void take(const wire::Program& program) {
    if (const auto begun = store_.begin(program.sha256, program.size); !begun) refuse(program.sha256, begun.error());
  }
  void take(const wire::Data& data) {
    if (data.channel != wire::Channel::program || !files::is_sha256(data.id))
      return end("received data that is not part of a program", false);
    const auto whole = store_.add(data.id, data.bytes);
    if (!whole) return refuse(data.id, whole.error());
    if (*whole) queue_.push(wire::encode(wire::Stored{data.id}));
  }
  void take(const wire::Run& run) {
    if (runs_.contains(run.id)) return refuse(run.id, "a run of this id is active");
    if (runs_.size() >= kMaxRuns) return refuse(run.id, fmt::format("more than {} runs at once", kMaxRuns));
    const int program = store_.find(run.sha256);
    if (program < 0) return refuse(run.id, "the program was not delivered");
    auto scratch = make_scratch(options_.directory, run.id);
    if (!scratch) return refuse(run.id, scratch.error());
    constexpr std::size_t kShortHash = 12;
    const SupervisorTask task{.program = program,
                              .name = "assay-probe-" + run.sha256.substr(0, kShortHash),
                              .arguments = run.arguments,
                              .token = run.token,
                              .deadline_s = run.deadline_s,
                              .limits = run.limits};
    const std::string path = scratch->path;
    auto supervisor = start_supervisor(task, std::move(*scratch));
    if (!supervisor) return refuse(run.id, supervisor.error());
    auto [entry, fresh] = runs_.emplace(run.id, ActiveRun{.supervisor = std::move(*supervisor),
                                                          .scratch = path,
                                                          .output_limit = run.limits.output_bytes,
                                                          .pumps = 2});
    ActiveRun& active = entry->second;
    asio::co_spawn(context_, pump(run.id, active, wire::Channel::out), asio::detached);
    asio::co_spawn(context_, pump(run.id, active, wire::Channel::err), asio::detached);
    asio::co_spawn(context_, await_report(run.id, active), asio::detached);
  }
  void take(const wire::Stop& stop) { order(stop.id, SupervisorOrder::stop); }
  void take(const wire::Kill& kill) { order(kill.id, SupervisorOrder::kill); }
  void take(const wire::Ping&) {  // without room, waiting frames already show that the agent is there
    if (queue_.has_room()) queue_.push(wire::encode(wire::Pong{}));
  }
  void take(const wire::Bye&) { end("bye", true); }

  void refuse(const std::string& what, const std::string& reason) {
    queue_.push(wire::encode(wire::Refused{.what = what, .reason = reason}));
  }

  /// A run that is not active has just ended; its end is already queued.
  void order(const std::string& id, SupervisorOrder order) {
    if (const auto found = runs_.find(id); found != runs_.end()) send_order(found->second, order);
  }
  static void send_order(const ActiveRun& run, SupervisorOrder order) {
    const char byte = static_cast<char>(order);
    (void)send(run.supervisor.control.number(), &byte, 1,
               MSG_NOSIGNAL);  // a supervisor that has ended has sent its report
  }

  /// Reads one stream of a run into data frames. Backpressure: it stops reading while the queue has no room.
  asio::awaitable<void> pump(std::string id, ActiveRun& run, wire::Channel channel) {
    const bool is_output = channel == wire::Channel::out;
    Descriptor& end_of_pipe = is_output ? run.supervisor.out : run.supervisor.err;
    asio::posix::stream_descriptor pipe(context_, end_of_pipe.release());
    pipes_[id].push_back(&pipe);
    const std::uint64_t limit = is_output ? run.output_limit : kMaxLog;
    std::uint64_t seen = 0;
    std::array<char, wire::kMaxChunk> buffer;
    while (true) {
      const auto [error, size] = co_await pipe.async_read_some(asio::buffer(buffer), kAsTuple);
      if (error) break;
      const std::uint64_t allowed = std::min<std::uint64_t>(size, limit - std::min(limit, seen));
      seen += size;
      if (is_output && seen > limit && seen - size <= limit) send_order(run, SupervisorOrder::output_limit);  // once
      if (allowed == 0) continue;
      std::string frame =
          wire::encode(wire::Data{.channel = channel, .id = id, .bytes = std::string(buffer.data(), allowed)});
      (void)co_await queue_.push_when_room(
          std::move(frame));  // when the queue is closed, reading continues so that the run can end
    }
    std::erase(pipes_[id], &pipe);
    --run.pumps;
  }

  asio::awaitable<void> await_report(std::string id, ActiveRun& run) {
    asio::posix::stream_descriptor control(context_, run.supervisor.control.number());
    SupervisorReport report;
    ssize_t size = -1;
    while (size < 0) {
      const auto [error] = co_await control.async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
      size = error ? 0 : recv(control.native_handle(), &report, sizeof report, MSG_DONTWAIT);
      // ECONNRESET: the supervisor ended without reading an order; its report is read next.
      if (size < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNRESET) size = 0;
    }
    if (size != sizeof report) report = co_await kill_orphans(run);
    asio::steady_timer timer(context_);
    for (const auto begin = Clock::now(); run.pumps > 0;) {
      if (Clock::now() > begin + kDrainPatience) {
        for (auto* pipe : pipes_[id]) pipe->cancel();  // a process outside the tree holds the pipe
      }
      constexpr auto kDrainTick = 5ms;
      timer.expires_after(kDrainTick);
      (void)co_await timer.async_wait(kAsTuple);
    }
    report_end(id, report);
    (void)control.release();  // run owns it
    pipes_.erase(id);
    runs_.erase(id);
  }

  void report_end(const std::string& id, const SupervisorReport& report) {
    using Cause = SupervisorReport::Cause;
    if (report.cause == Cause::not_started) {
      return refuse(
          id, fmt::format("the program cannot be executed: {}", std::generic_category().message(report.start_error)));
    }
    wire::Ended ended{
        .id = id, .outcome = "exited", .elapsed_s = std::max(0.0, report.elapsed_s), .left_behind = report.left_behind};
    if (WIFEXITED(report.wait_status)) ended.exit_code = WEXITSTATUS(report.wait_status);
    if (WIFSIGNALED(report.wait_status)) ended.signal = WTERMSIG(report.wait_status);
    switch (report.cause) {
      case Cause::deadline:
        ended.outcome = "deadline";
        break;
      case Cause::memory_limit:
        ended.outcome = "memory_limit";
        break;
      case Cause::output_limit:
        ended.outcome = "output_limit";
        break;
      case Cause::stopped:
        ended.outcome = "stopped";
        break;
      default:
        ended.outcome = ended.signal ? "signalled" : "exited";
    }
    queue_.push(wire::encode(ended));
  }

  /// A supervisor without a report was killed from outside. The rest of its tree is now below this process, which is a
  /// subreaper, and is killed.
  asio::awaitable<SupervisorReport> kill_orphans(const ActiveRun& run) {
    SupervisorReport report{.cause = SupervisorReport::Cause::exited, .wait_status = SIGKILL};
    asio::steady_timer timer(context_);
    constexpr int kRounds = 250;  // five seconds: a process that forks while it is killed needs another walk
    const auto begin = Clock::now();
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<ProcessEntry> lost = orphans_of(run);
      if (lost.empty()) break;
      const auto killed = without_restorers_at_work(lost, Clock::now() - begin);
      report.left_behind = std::max(report.left_behind, static_cast<int>(killed.size()));
      signal_each(killed, SIGKILL);
      constexpr auto kRound = 20ms;
      timer.expires_after(kRound);
      (void)co_await timer.async_wait(kAsTuple);
    }
    (void)remove_scratch(run.scratch);  // the next agent removes the rest, which is unlocked
    co_return report;
  }

  /// Living descendants of this process that belong to no other run.
  [[nodiscard]] std::vector<ProcessEntry> orphans_of(const ActiveRun& run) const {
    std::vector<ProcessEntry> lost = descendants(getpid());
    for (const auto& [id, other] : runs_) {
      if (&other == &run) continue;
      std::vector<pid_t> spared = {other.supervisor.pid};
      for (const auto& process : descendants(other.supervisor.pid)) spared.push_back(process.pid);
      std::erase_if(
          lost, [&](const ProcessEntry& process) { return std::ranges::find(spared, process.pid) != spared.end(); });
    }
    std::erase_if(lost, [](const ProcessEntry& process) { return process.zombie; });
    return lost;
  }

  asio::awaitable<void> watch_silence() {
    asio::steady_timer timer(context_);
    while (ending_.empty()) {
      if (std::chrono::duration<double>(Clock::now() - last_read_).count() > options_.silence.count) {
        end(fmt::format("no message from the orchestrator for {} s", options_.silence.count), false);
      }
      timer.expires_after(kTick);
      (void)co_await timer.async_wait(kAsTuple);
    }
  }

  asio::awaitable<void> watch_signals() {
    const auto [error, number] = co_await signals_.async_wait(kAsTuple);
    if (!error) end(fmt::format("signal {}", number), false);
  }

  /// Supervisors, and orphans of killed supervisors.
  asio::awaitable<void> collect_children() {
    while (true) {
      const auto [error, number] = co_await children_.async_wait(kAsTuple);
      if (error) co_return;
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
  }

  /// Kills every run; the loop ends when all have ended. Of several reasons the first is kept.
  void end(const std::string& reason, bool orderly) {
    if (!ending_.empty()) return;
    ending_ = reason;
    orderly_ = orderly;
    stream_.cancel_reading();
    asio::co_spawn(context_, shut_down(), asio::detached);
  }

  asio::awaitable<void> shut_down() {
    for (const auto& [id, run] : runs_) send_order(run, SupervisorOrder::kill);
    queue_.finish();
    asio::steady_timer timer(context_);
    constexpr auto kWritePatience = 2s;  // for frames that the other side no longer reads
    const auto begin = Clock::now();
    while ((!runs_.empty() || !written_) && Clock::now() < begin + kShutdownPatience) {
      if (Clock::now() > begin + kWritePatience) {
        queue_.close();
        stream_.close_writing();
      }
      constexpr auto kShutdownTick = 10ms;
      timer.expires_after(kShutdownTick);
      (void)co_await timer.async_wait(kAsTuple);
    }
    context_.stop();
  }

  asio::io_context& context_;
  const NodeOptions& options_;
  ProgramStore store_;
  wire::Stream stream_;
  asio::signal_set signals_, children_;
  wire::FrameQueue queue_;
  wire::FrameReader reader_;
  std::map<std::string, ActiveRun> runs_;
  std::map<std::string, std::vector<asio::posix::stream_descriptor*>> pipes_;  // of the runs, while they are read
  Clock::time_point last_read_ = Clock::now();
  std::string ending_;
  bool greeted_ = false;
  bool orderly_ = false;
  bool written_ = false;  // nothing more is written
};

}  // namespace

int serve_node(const NodeOptions& options) {
  (void)std::signal(SIGPIPE, SIG_IGN);     // a closed stream is reported by the write
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);  // since Linux 3.4; see Session::kill_orphans
  if (const int removed = clean_scratch(options.directory); removed > 0) {
    std::cerr << "assay-node: removed " << removed << " scratch directories of dead agents\n";
  }
  try {
    asio::io_context context(1);
    std::expected<wire::Stream, std::string> stream = std::unexpected("");
    if (options.connect_back.endpoints.empty()) {
      stream = wire::Stream(asio::posix::stream_descriptor(context, STDIN_FILENO),
                            asio::posix::stream_descriptor(context, STDOUT_FILENO));
    } else {
      stream = connect_back(context, options.connect_back);
    }
    if (!stream) {
      constexpr int kNotConnected = 3;
      std::cerr << "assay-node: " << harmless(stream.error()) << '\n';
      return kNotConnected;
    }
    Session session(context, options, std::move(*stream));
    return session.serve();
  } catch (const boost::system::system_error& error) {
    std::cerr << "assay-node: stdin and stdout must be pipes or sockets: " << error.what()
              << "\nhint: assay starts the agent; do not start it by hand\n";
    return 2;
  }
}

}  // namespace assay::node
