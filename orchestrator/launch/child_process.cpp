// child_process: a child process through Boost.Process v2, which is slow to compile and is included only here.
#include "orchestrator/launch/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/optional.hpp>  // Process v2 of Boost 1.81 forgets it; delete with 1.82
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>

#include <fmt/format.h>

#include "orchestrator/files/child.h"
#include "probes/core/descriptor.h"

namespace assay::launch {

namespace asio = boost::asio;
namespace process = boost::process::v2;

using Clock = std::chrono::steady_clock;

namespace {

/// Runs in the child between fork and exec.
struct OwnSession {
  pid_t parent = getpid();
  template <class Launcher>
  boost::system::error_code on_exec_setup(Launcher&, const process::filesystem::path&, const char* const*) {
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return {errno, boost::system::system_category()};
    if (getppid() != parent)
      return {ESRCH, boost::system::system_category()};  // the parent was killed before prctl took effect
    return {};
  }
};

struct Pipe {
  Descriptor reader, writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

struct ChildProcess::Handle {
  process::process child;
};

ChildProcess::ChildProcess(const asio::any_io_executor& executor) : in(executor), out(executor), err(executor) {}

ChildProcess::~ChildProcess() {
  if (!handle_) return;
  for (auto* stream : {&in, &out, &err}) {
    boost::system::error_code closed;
    stream->close(closed);
  }
  boost::system::error_code error;
  if (!handle_->child.running(error)) return;
  handle_->child.request_exit(error);
  constexpr auto kPatience = std::chrono::seconds(2);
  constexpr auto kTick = std::chrono::milliseconds(5);
  for (const auto end = Clock::now() + kPatience; handle_->child.running(error) && Clock::now() < end;)
    std::this_thread::sleep_for(kTick);
  // ~process kills it if it is still running.
}

std::expected<std::unique_ptr<ChildProcess>, std::string> ChildProcess::start(const asio::any_io_executor& executor,
                                                                              const std::vector<std::string>& argv) {
  process::filesystem::path program = argv.front();
  if (!program.has_parent_path()) program = files::find_in_path(argv.front());
  if (program.empty()) return std::unexpected(fmt::format("{} is not installed", argv.front()));
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  if (!in.reader || !out.reader || !err.reader) {
    return std::unexpected(fmt::format("no pipe for {}: {}", program.string(), std::generic_category().message(errno)));
  }
  try {
    std::unique_ptr<ChildProcess> child(new ChildProcess(executor));  // the constructor is private
    process::process_stdio streams{.in = in.reader.number(), .out = out.writer.number(), .err = err.writer.number()};
    child->handle_ = std::make_unique<Handle>(Handle{process::process(
        executor, program, std::vector<std::string>(argv.begin() + 1, argv.end()), streams, OwnSession{})});
    child->in.assign(in.writer.release());
    child->out.assign(out.reader.release());
    child->err.assign(err.reader.release());
    return child;
  } catch (const std::system_error& error) {
    return std::unexpected(fmt::format("{} cannot be started: {}", program.string(), error.code().message()));
  }
}

void ChildProcess::ask_to_end() {
  boost::system::error_code error;
  if (handle_->child.running(error)) handle_->child.request_exit(error);
}

asio::awaitable<std::optional<int>> ChildProcess::finish(Seconds patience, std::chrono::milliseconds tick) {
  asio::steady_timer timer(err.get_executor());  // the other two may have been moved from
  const auto end = Clock::now() + std::chrono::duration<double>(patience.count);
  boost::system::error_code error;
  // The handle's own async_wait cannot be cancelled without losing the exit code, so the state is polled.
  while (handle_->child.running(error) && Clock::now() < end) {
    timer.expires_after(tick);
    (void)co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  if (error) co_return std::nullopt;
  if (handle_->child.running(error)) {
    handle_->child.terminate(error);
    co_return std::nullopt;
  }
  const int status = handle_->child.native_exit_code();
  if (!WIFEXITED(status)) co_return std::nullopt;
  co_return WEXITSTATUS(status);
}

}  // namespace assay::launch
