// rank_child: fork, exec and pipes. Nothing of this process is shared with a child but standard error. Not posix_spawn:
// that waits in the kernel, without a limit, for a child that is stopped before it begins its program.
#include "probes/collective/rank_child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/rendezvous_link.h"

namespace assay::collective {
namespace {

std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2] = {};
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "a pipe to a rank");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (auto& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// In the child: becomes the program. An error is written to `failure`, which a start that succeeds closes.
[[noreturn]] void become(const char* path, char* const* arguments, char* const* environment, int input, int output,
                         int failure) {
  if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0) (void)execve(path, arguments, environment);
  const int reason = errno;
  (void)!::write(failure, &reason, sizeof reason);  // a leader that is gone needs no reason
  _exit(127);
}

/// Why a child did not begin its program, as an errno; 0 when it did. `from` ends when it does.
int start_failure(int from) {
  const auto until = rendezvous::after(RankChild::kStartLimit);
  int reason = 0;
  while (true) {
    pollfd one = {.fd = from, .events = POLLIN, .revents = 0};
    constexpr int kSlice_ms = 1000;
    const int ready = poll(&one, 1, kSlice_ms);
    if (ready > 0) {
      const ssize_t got = ::read(from, &reason, sizeof reason);
      if (got == 0) return 0;
      if (got == sizeof reason) return reason;
    }
    if (rendezvous::Clock::now() >= until) return ETIMEDOUT;
  }
}

/// Whether a child has ended, and is reaped with its `status`, within `limit`.
bool reaped(pid_t process, int& status, Seconds limit) {
  const auto until = rendezvous::after(limit);
  constexpr int kPause_ms = 1;  // nothing here is timed
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (rendezvous::Clock::now() >= until) return false;
    (void)poll(nullptr, 0, kPause_ms);
  }
  return true;
}

/// Starts `program` between the two pipe ends.
pid_t start(RankProgram program, int input, int output) {
  auto [failure, theirs] = make_pipe();
  const auto arguments = pointers(program.arguments), environment = pointers(program.environment);
  const pid_t process = fork();
  if (process == 0) become(program.path.c_str(), arguments.data(), environment.data(), input, output, theirs.number());
  if (process < 0) throw std::system_error(errno, std::generic_category(), "start of " + program.title);
  theirs.close();
  const int failed = start_failure(failure.number());
  if (failed == 0) return process;
  (void)::kill(process, SIGKILL);  // gone already is as good
  int status = 0;
  (void)reaped(process, status, RankChild::kReapLimit);  // one that a device holds on to is left to the kernel
  throw std::system_error(failed, std::generic_category(), "start of " + program.title);
}

constexpr Seconds kLeave = {1};  // until a rank that has closed its output must end, and until it is killed

std::string ending(int status) {
  return WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                             : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

RankChild::RankChild(const RankProgram& program) : title_(program.title) {
  auto [theirs_in, ours_out] = make_pipe();
  auto [ours_in, theirs_out] = make_pipe();
  // Nothing waits but poll: a request may be longer than a pipe holds, and a rank may have nothing to say.
  if (fcntl(ours_in.number(), F_SETFL, O_NONBLOCK) != 0 || fcntl(ours_out.number(), F_SETFL, O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "the pipes to " + title_);
  process_ = start(program, theirs_in.number(), theirs_out.number());
  input_ = std::move(ours_out);
  output_ = std::move(ours_in);
}

RankChild::RankChild(RankChild&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      title_(std::move(other.title_)),
      received_(std::move(other.received_)),
      unsent_(std::move(other.unsent_)),
      ended_(std::exchange(other.ended_, true)),
      status_(other.status_) {}

RankChild::~RankChild() {
  kill();
  reap();
}

void RankChild::ask(std::string_view request) {
  unsent_ += request;
  unsent_ += '\n';
}

void RankChild::write() {
  if (unsent_.empty()) return;
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  (void)sigaction(SIGPIPE, &ignore, &before);  // with these arguments it cannot fail
  const ssize_t taken = ::write(input_.number(), unsent_.data(), unsent_.size());
  if (taken > 0)
    unsent_.erase(0, static_cast<std::size_t>(taken));
  else if (errno != EAGAIN && errno != EINTR)
    unsent_.clear();  // EPIPE here, and end of file in read(), which knows how it ended
  (void)sigaction(SIGPIPE, &before, nullptr);
}

std::optional<std::string> RankChild::read() {
  std::array<char, 1 << 16> chunk;
  const ssize_t got = ::read(output_.number(), chunk.data(), chunk.size());
  if (got > 0) {
    received_.append(chunk.data(), static_cast<std::size_t>(got));
    if (received_.size() > kLongestAnswer) return fmt::format("said more than {} B at once", kLongestAnswer);
  } else if (got == 0) {
    // Its output is closed, so it ends or has ended; one that closes its output and lives on is ended here.
    if (!await_end(kLeave)) (void)::kill(process_, SIGTERM);
    if (!await_end(kLeave)) kill();
    reap();
    return fmt::format("{} before it answered", ending(status_));
  }
  return std::nullopt;
}

std::optional<std::string> RankChild::line() {
  const auto end = received_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string one = received_.substr(0, end);
  received_.erase(0, end + 1);
  return one;
}

bool RankChild::ended() noexcept { return await_end({0}); }

std::optional<ProcessSign> RankChild::sign() const {
  if (ended_) return std::nullopt;
  std::ifstream file(fmt::format("/proc/{}/stat", process_));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto name_end = text.rfind(')');  // proc(5): the name before it may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  char state = 0;
  fields >> state;
  constexpr int kBeforeTimes = 10;  // ppid to cmajflt
  std::string skipped;
  for (int i = 0; i < kBeforeTimes; ++i) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  const auto each = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ProcessSign{.stopped = state == 'T' || state == 't', .cpu = {static_cast<double>(user + system) / each}};
}

bool RankChild::await_end(Seconds limit) noexcept {
  if (!ended_) ended_ = reaped(process_, status_, limit);
  return ended_;
}

void RankChild::kill() noexcept {
  if (!ended_) (void)::kill(process_, SIGKILL);  // gone already is as good
}

void RankChild::reap() noexcept {
  (void)await_end(kReapLimit);  // the kernel ends it when it can
  ended_ = true;
}

}  // namespace assay::collective
