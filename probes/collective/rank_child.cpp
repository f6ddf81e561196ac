// rank_child: posix_spawn and pipes. Nothing of this process is shared with a child but standard error.
#include "probes/collective/rank_child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace assay {
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

/// Starts `program` between the two pipe ends.
pid_t start(RankProgram program, int input, int output) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) throw std::bad_alloc();
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  const auto arguments = pointers(program.arguments), environment = pointers(program.environment);
  pid_t process = -1;
  const int failed =
      posix_spawn(&process, program.path.c_str(), &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "start of " + program.title);
  return process;
}

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
    if (!ended_) (void)::kill(process_, SIGTERM);
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

bool RankChild::ended() {
  if (!ended_) ended_ = waitpid(process_, &status_, WNOHANG) == process_;
  return ended_;
}

void RankChild::kill() noexcept {
  if (!ended_) (void)::kill(process_, SIGKILL);  // gone already is as good
}

void RankChild::reap() noexcept {
  while (!ended_ && waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
}

}  // namespace assay
