// supervisor: a forked process without an event loop; as a subreaper it learns from waitpid when its tree is empty.
#include "orchestrator/node/supervisor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/node/process_tree.h"

namespace assay::node {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kDeadlineGrace = 2s;  // after SIGTERM at the deadline: enough to write an end record
constexpr auto kStopGrace = 10s;     // after a stop: a companion may be waiting for a BMC
constexpr auto kMemoryPeriod = 1s;   // a walk over /proc costs some 5 us a process; a large node has thousands
constexpr auto kKillPeriod = 20ms;   // a process that forks while it is killed needs another walk
constexpr auto kKillPatience = 30s;  // a process in an uninterruptible wait may never end; the report is sent anyway
constexpr rlim_t kCpuGrace_s = 2;    // between SIGXCPU and SIGKILL

constexpr const char* kPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Data of the program's process between fork and exec.
struct Launch {
  const SupervisorTask& task;
  const Scratch& scratch;
  int out, err, error_pipe;
  pid_t supervisor;
};

void limit(__rlimit_resource resource, rlim_t soft, rlim_t hard) {
  const rlimit wanted = {.rlim_cur = soft, .rlim_max = hard};
  (void)setrlimit(resource, &wanted);  // fails only above the current hard limit, which is then stricter
}

/// The folder of libraries in this agent's bundle, or in its directory: a program that runs from memory has no path of
/// its own to find them by. Empty if there is none.
std::string bundled_libraries(const Scratch& scratch) {
  std::error_code error;
  const auto agent = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto directory = std::filesystem::path(scratch.path).parent_path().parent_path();
  for (const auto& base : {agent.parent_path().parent_path(), directory}) {
    const auto folder = base / "lib/assay";
    // A copy in /tmp has / above it, whose lib is the system's.
    if (base.has_relative_path() && std::filesystem::is_directory(folder, error)) return folder.string();
  }
  return {};
}

/// Executes the program. Returns errno when that fails; the caller reports it and exits.
int exec_program(const Launch& launch) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != launch.supervisor || setsid() < 0)
    return errno == 0 ? ESRCH : errno;
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(launch.out, STDOUT_FILENO) < 0 ||
      dup2(launch.err, STDERR_FILENO) < 0)
    return errno;
  if (fchdir(launch.scratch.handle.number()) != 0) return errno;
  umask(S_IRWXG | S_IRWXO);
  const auto cpu_s = static_cast<rlim_t>(std::ceil(launch.task.limits.cpu_s));
  limit(RLIMIT_CPU, cpu_s, cpu_s + kCpuGrace_s);
  limit(RLIMIT_CORE, 0, 0);
  if (const Descriptor score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score) {
    (void)!write(score.number(), "1000", 4);  // without it the kernel chooses by its own score
  }
  for (int number = 1; number < NSIG; ++number)
    (void)std::signal(number, SIG_DFL);  // fails for SIGKILL and SIGSTOP, which have no handler
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);

  std::vector<std::string> words = {launch.task.name};
  words.insert(words.end(), launch.task.arguments.begin(), launch.task.arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables = {kPath, "HOME=" + launch.scratch.path, "LANG=C"};
  if (!launch.task.token.empty()) variables.push_back("ASSAY_TOKEN=" + launch.task.token);
  if (const std::string libraries = bundled_libraries(launch.scratch); !libraries.empty())
    variables.push_back("ASSAY_LIBRARY_PATH=" + libraries);
  std::vector<char*> environment;
  for (auto& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  (void)syscall(SYS_execveat, launch.task.program, "", argv.data(), environment.data(), AT_EMPTY_PATH);
  // qemu's user mode before 8.1 does not know it: the same file by its descriptor's name. Delete with Debian 12.
  if (errno == ENOSYS)
    (void)execve(fmt::format("/proc/self/fd/{}", launch.task.program).c_str(), argv.data(), environment.data());
  return errno;
}

class SupervisorProcess {
 public:
  SupervisorProcess(const SupervisorTask& task, const Scratch& scratch, Descriptor control)
      : task_(task), scratch_(scratch), control_(std::move(control)) {}

  [[noreturn]] void run(Descriptor out, Descriptor err) {
    prepare(out, err);
    if (start(std::move(out), std::move(err))) watch();
    (void)remove_scratch(scratch_.path);  // the next agent removes the rest, which is unlocked
    (void)send(control_.number(), &report_, sizeof report_, MSG_NOSIGNAL);  // fails when the agent has ended
    _exit(0);
  }

 private:
  /// Closes the agent's descriptors, its streams above all: with them open a dead agent would look alive.
  void prepare(const Descriptor& out, const Descriptor& err) {
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);  // since Linux 3.4
    (void)setsid();                          // no signals from a terminal
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    for (int number = 1; number < NSIG; ++number) (void)std::signal(number, SIG_DFL);
    const std::array keep = {control_.number(), out.number(), err.number(), task_.program, scratch_.handle.number()};
    std::vector<int> open_now;
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
         entry.increment(error)) {
      open_now.push_back(std::stoi(entry->path().filename().string()));
    }
    for (const int number : open_now) {
      if (std::ranges::find(keep, number) == keep.end())
        (void)close(number);  // the listing's own descriptor is already closed
    }
    for (int number = open("/dev/null", O_RDWR); number >= 0 && number < STDERR_FILENO;)
      number = open("/dev/null", O_RDWR);
  }

  bool start(Descriptor out, Descriptor err) {
    std::array<int, 2> pipe_ends = {-1, -1};
    if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return not_started(errno);
    const Descriptor error_reader(pipe_ends[0]);
    Descriptor error_writer(pipe_ends[1]);
    const pid_t supervisor = getpid();
    begin_ = Clock::now();
    program_ = fork();
    if (program_ < 0) return not_started(errno);
    if (program_ == 0) {
      const int error = exec_program({task_, scratch_, out.number(), err.number(), error_writer.number(), supervisor});
      (void)!write(error_writer.number(), &error, sizeof error);
      _exit(127);
    }
    error_writer.close();
    int error = 0;
    if (read(error_reader.number(), &error, sizeof error) != sizeof error) return true;  // exec closed the pipe
    (void)waitpid(program_, nullptr, 0);
    return not_started(error);
  }

  bool not_started(int error) {
    report_.cause = SupervisorReport::Cause::not_started;
    report_.start_error = error;
    return false;
  }

  void watch() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const Descriptor signals(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    deadline_ = begin_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(task_.deadline_s));
    next_memory_ = begin_ + kMemoryPeriod;
    while (!reap()) {
      act();
      std::array<pollfd, 2> waits = {pollfd{signals.number(), POLLIN, 0},
                                     pollfd{control_ ? control_.number() : -1, POLLIN, 0}};
      (void)poll(waits.data(), waits.size(),
                 timeout_ms());  // the loop checks every condition again, for any result of poll
      std::array<char, 4 * sizeof(signalfd_siginfo)> ignored;
      while (read(signals.number(), ignored.data(), ignored.size()) > 0) {
      }
      listen();
      if (give_up_ && Clock::now() > *give_up_) return;
    }
  }

  /// Collects processes that have ended; true when the program has ended and no process is left.
  bool reap() {
    while (true) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid == 0) return false;
      if (pid < 0) return true;  // ECHILD: a subreaper without children has no descendants
      if (pid == program_) {
        ended_ = true;
        report_.wait_status = status;
        report_.elapsed_s = std::chrono::duration<double>(Clock::now() - begin_).count();
      }
    }
  }

  void act() {
    const auto now = Clock::now();
    if (!ended_ && now >= deadline_ && set_cause(SupervisorReport::Cause::deadline)) terminate(kDeadlineGrace);
    if (!ended_ && now >= next_memory_) watch_memory(now);
    if (kill_at_ && now >= *kill_at_) killing_ = true;
    if (ended_ && !killing_) {
      killing_ = true;
      report_.left_behind = static_cast<int>(
          std::ranges::count(without_restorers_at_work(descendants(getpid()), {}), false, &ProcessEntry::zombie));
    }
    if (!killing_) return;
    if (!give_up_) give_up_ = now + kKillPatience;
    signal_each(without_restorers_at_work(descendants(getpid()), now - (*give_up_ - kKillPatience)), SIGKILL);
  }

  void watch_memory(Clock::time_point now) {
    next_memory_ = now + kMemoryPeriod;
    std::uint64_t resident = 0;
    for (const auto& process : descendants(getpid())) resident += process.resident;
    if (resident > task_.limits.memory_bytes && set_cause(SupervisorReport::Cause::memory_limit)) killing_ = true;
  }

  void listen() {
    if (!control_) return;
    char order = 0;
    const ssize_t size = recv(control_.number(), &order, 1, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size == 1 && order == static_cast<char>(SupervisorOrder::stop)) {
      if (set_cause(SupervisorReport::Cause::stopped)) {
        (void)kill(program_, SIGTERM);  // a child that is not reaped yet: its pid cannot be reused
        kill_at_ = Clock::now() + kStopGrace;
      }
      return;
    }
    const bool flooded = size == 1 && order == static_cast<char>(SupervisorOrder::output_limit);
    (void)set_cause(flooded ? SupervisorReport::Cause::output_limit
                            : SupervisorReport::Cause::stopped);  // an earlier cause is kept
    killing_ = true;
    if (size <= 0) control_.close();  // the agent has ended
  }

  /// Sets the cause of the end. False when there is one already, which is kept.
  bool set_cause(SupervisorReport::Cause cause) {
    if (ended_ || report_.cause != SupervisorReport::Cause::exited) return false;
    report_.cause = cause;
    return true;
  }

  void terminate(Clock::duration grace) {
    signal_each(descendants(getpid()), SIGTERM);
    kill_at_ = Clock::now() + grace;
  }

  [[nodiscard]] int timeout_ms() const {
    const auto now = Clock::now();
    auto wake = now + kMemoryPeriod;
    if (!ended_)
      wake = std::min({wake, next_memory_, report_.cause == SupervisorReport::Cause::exited ? deadline_ : wake});
    if (kill_at_) wake = std::min(wake, *kill_at_);
    if (killing_) wake = now + kKillPeriod;
    return static_cast<int>(
        std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(wake - now).count()));
  }

  const SupervisorTask& task_;
  const Scratch& scratch_;
  Descriptor control_;
  pid_t program_ = -1;
  Clock::time_point begin_, deadline_, next_memory_;
  std::optional<Clock::time_point> kill_at_, give_up_;
  bool ended_ = false;
  bool killing_ = false;
  SupervisorReport report_;
};

struct Pair {
  Descriptor ours, theirs;
};

/// The two ends of a pipe, the first for reading; both empty if the kernel refuses.
Pair make_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);  // cannot fail for a pipe; the program's end stays blocking
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

std::expected<Supervisor, std::string> start_supervisor(const SupervisorTask& task, Scratch scratch) {
  Pair out = make_pipe();
  Pair err = make_pipe();
  std::array<int, 2> ends = {-1, -1};
  const bool control = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0;
  Pair sockets = {Descriptor(ends[0]), Descriptor(ends[1])};
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);  // the agent's signal handlers must not run in the supervisor
  const pid_t pid = out.ours && err.ours && control ? fork() : -1;
  const int error = errno;
  if (pid == 0)
    SupervisorProcess(task, scratch, std::move(sockets.theirs)).run(std::move(out.theirs), std::move(err.theirs));
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    (void)remove_scratch(scratch.path);
    return std::unexpected(
        fmt::format("cannot start a process for the run: {}", std::generic_category().message(error)));
  }
  return Supervisor{
      .pid = pid, .control = std::move(sockets.ours), .out = std::move(out.ours), .err = std::move(err.ours)};
}

}  // namespace assay::node
