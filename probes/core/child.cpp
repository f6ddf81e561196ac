// child: fork and exec, then one loop over the child's output, its end and the deadline.
#include "probes/core/child.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/core/descriptor.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPoll_ms = 50;  // the longest that a request to stop goes unnoticed
constexpr int kNotStarted = 127;

/// All that the child needs between fork and exec, where only async-signal-safe calls are allowed.
struct Setup {
  const char* program;
  char* const* arguments;
  const char* directory;  // or nullptr
  int in, out, err;       // err: negative keeps ours
  int report;             // takes errno when the program cannot be started
  pid_t parent;
};

[[noreturn]] void become(const Setup& setup) {
  errno = 0;
  // A group of its own, so that one kill reaches all that it starts, and death with the parent.
  if (setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == setup.parent &&
      (setup.directory == nullptr || chdir(setup.directory) == 0) && dup2(setup.in, STDIN_FILENO) >= 0 &&
      dup2(setup.out, STDOUT_FILENO) >= 0 && (setup.err < 0 || dup2(setup.err, STDERR_FILENO) >= 0)) {
    (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);  // before Linux 5.11: ours are O_CLOEXEC anyway
    execv(setup.program, setup.arguments);
  }
  const int reason = errno != 0 ? errno : ESRCH;  // ESRCH: the parent died before the kernel knew
  if (write(setup.report, &reason, sizeof reason) < 0) _exit(kNotStarted);  // nothing is left to report it to
  _exit(kNotStarted);
}

Descriptor opened(const std::string& path, int flags) {
  Descriptor file(open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  return file;
}

struct Pipe {
  Descriptor reader, writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Starts the program; `output` is closed here afterwards. Returns its process id.
pid_t start(const std::string& program, const std::vector<std::string>& arguments, const ChildOptions& options,
            Descriptor output) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const Descriptor nothing = opened("/dev/null", O_RDONLY);
  Pipe report = make_pipe();
  const Setup setup{.program = program.c_str(),
                    .arguments = pointers.data(),
                    .directory = options.directory.empty() ? nullptr : options.directory.c_str(),
                    .in = nothing.number(),
                    .out = output.number(),
                    .err = options.log.empty() ? -1 : output.number(),
                    .report = report.writer.number(),
                    .parent = getpid()};
  const pid_t child = fork();
  if (child == 0) become(setup);
  if (child < 0) throw std::system_error(errno, std::generic_category(), "start of " + program);
  report.writer.close();
  int reason = 0;
  ssize_t got = 0;
  do {
    got = read(report.reader.number(), &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return child;        // closed by exec
  (void)waitpid(child, nullptr, 0);  // it exits at once
  throw std::system_error(reason, std::generic_category(), "start of " + program);
}

/// One running child.
class Running {
 public:
  Running(pid_t child, Descriptor output, Seconds deadline, const ChildOptions& options)
      : child_(child),
        ended_(static_cast<int>(syscall(SYS_pidfd_open, child, 0))),  // before Linux 5.3: seen at the next poll
        output_(std::move(output)),
        options_(options),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline.count))) {}

  ChildOutcome wait() {
    int status = 0;
    for (;;) {
      std::array<pollfd, 2> sources = {pollfd{ended_.number(), POLLIN, 0}, pollfd{output_.number(), POLLIN, 0}};
      (void)poll(sources.data(), sources.size(), kPoll_ms);  // an interrupted poll is a short one
      reaped_ = waitpid(child_, &status, WNOHANG) == child_;
      take_output();
      if (reaped_) break;
      if (outcome_.end != ChildEnd::exited) continue;  // killed, and soon gone
      if (options_.stop != nullptr && options_.stop()) {
        kill_group(ChildEnd::stopped);
      } else if (Clock::now() >= end_) {
        kill_group(ChildEnd::overdue);
      }
    }
    outcome_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return std::move(outcome_);
  }

 private:
  /// Takes the output so far. All that the child printed is there once it is reaped.
  void take_output() {
    std::array<char, 65536> piece;
    while (output_) {
      const ssize_t got = read(output_.number(), piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) return output_.close();
      outcome_.output.append(piece.data(), static_cast<std::size_t>(got));
      if (outcome_.output.size() <= options_.max_output) continue;
      kill_group(ChildEnd::flooded);  // before the pipe is closed: the child would die of SIGPIPE instead
      output_.close();
    }
  }

  void kill_group(ChildEnd why) {
    outcome_.end = why;
    if (!reaped_) (void)kill(-child_, SIGKILL);  // gone already is as good
  }

  pid_t child_;
  bool reaped_ = false;  // its number may be another process's from then on
  Descriptor ended_, output_;
  const ChildOptions& options_;
  Clock::time_point end_;
  ChildOutcome outcome_;
};

}  // namespace

std::optional<std::string> find_program(std::string_view name) {
  const char* const path = std::getenv("PATH");
  std::istringstream directories{path == nullptr ? "/usr/bin:/bin" : path};
  for (std::string directory; std::getline(directories, directory, ':');) {
    const auto candidate = std::filesystem::path(directory) / name;
    std::error_code none;  // a PATH entry that cannot be read holds no program for us
    if (!candidate.is_absolute() || !std::filesystem::is_regular_file(candidate, none)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return std::nullopt;
}

ChildOutcome run_child(const std::string& program, const std::vector<std::string>& arguments, Seconds deadline,
                       const ChildOptions& options) {
  if (!options.log.empty()) {
    const pid_t child = start(program, arguments, options, opened(options.log, O_WRONLY | O_CREAT | O_TRUNC));
    return Running(child, Descriptor(), deadline, options).wait();
  }
  Pipe output = make_pipe();
  if (fcntl(output.reader.number(), F_SETFL, O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t child = start(program, arguments, options, std::move(output.writer));
  return Running(child, std::move(output.reader), deadline, options).wait();
}

}  // namespace assay
