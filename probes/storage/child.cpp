// child: Boost.Process v2 lives in this file alone, because it takes long to compile.
#include "probes/storage/child.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/optional.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/start_dir.hpp>
#include <boost/process/v2/stdio.hpp>

#include "probes/core/probe.h"

namespace assay {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{50};  // the longest that a request to stop goes unnoticed

/// Runs between fork and exec: a group of its own, so that one kill reaches all that the child starts, and death with
/// the parent, so that a killed probe leaves no load behind.
struct DiesWithParent {
  pid_t parent = getpid();

  template <typename Launcher, typename Path>
  boost::system::error_code on_exec_setup(Launcher&, const Path&, const char* const*) const {
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
      return {errno != 0 ? errno : ESRCH, boost::system::system_category()};
    }
    return {};
  }
};

int open_log(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw std::system_error(errno, std::generic_category(), path);
  return file;
}

int exit_code(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/// One child and the timer beside it, on one event loop.
class Watch {
 public:
  Watch(asio::io_context& loop, process::process& child, Seconds deadline)
      : child_(child),
        timer_(loop),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline.count))) {
    child_.async_wait([this](boost::system::error_code, int) {
      timer_.cancel();
      done_ = true;
    });
    arm();
  }

  [[nodiscard]] ChildEnd end() const { return ended_; }

 private:
  void arm() {
    timer_.expires_after(kPoll);
    timer_.async_wait([this](boost::system::error_code) {
      if (done_) return;
      if (ended_ == ChildEnd::exited && stop_requested()) kill_group(ChildEnd::stopped);
      if (ended_ == ChildEnd::exited && Clock::now() >= end_) kill_group(ChildEnd::overdue);
      arm();
    });
  }

  void kill_group(ChildEnd why) {
    ended_ = why;
    (void)kill(-child_.id(), SIGKILL);  // gone already is as good
  }

  process::process& child_;
  asio::steady_timer timer_;
  Clock::time_point end_;
  ChildEnd ended_ = ChildEnd::exited;
  bool done_ = false;
};

}  // namespace

std::optional<std::string> find_program(std::string_view name) {
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return std::nullopt;
  std::istringstream directories{path};
  for (std::string directory; std::getline(directories, directory, ':');) {
    const auto candidate = std::filesystem::path(directory) / name;
    std::error_code none;  // a PATH entry that cannot be read holds no program for us
    if (!candidate.is_absolute() || !std::filesystem::is_regular_file(candidate, none)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return std::nullopt;
}

ChildOutcome run_child(const std::string& program, const std::vector<std::string>& arguments,
                       const std::string& directory, const std::string& log, Seconds deadline) {
  asio::io_context loop;
  const int output = open_log(log);
  const auto launch = [&] {
    try {
      return process::process(loop, process::filesystem::path(program), arguments,
                              process::process_stdio{.in = nullptr, .out = output, .err = output},
                              process::process_start_dir{directory}, DiesWithParent{});
    } catch (const boost::system::system_error& error) {
      close(output);
      throw std::system_error(error.code().value(), std::generic_category(), "start of " + program);
    }
  };
  process::process child = launch();
  close(output);
  const Watch watch(loop, child, deadline);
  loop.run();
  return {.end = watch.end(), .code = exit_code(child.native_exit_code())};
}

}  // namespace assay
