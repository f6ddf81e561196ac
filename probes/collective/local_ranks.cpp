// local_ranks: posix_spawn, pipes and deadlines. Nothing of this process is shared with a child but standard error.
#include "probes/collective/local_ranks.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay {
namespace {

using rendezvous::Clock;
using rendezvous::Descriptor;

constexpr std::chrono::milliseconds kSlice{100};  // the longest that a request to stop goes unnoticed

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

Clock::time_point after(Seconds time) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.count));
}

std::string ending(int status) {
  return WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                             : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

LocalRanks::LocalRanks(const std::vector<RankProgram>& programs) {
  try {
    for (const auto& program : programs) {
      auto [theirs_in, ours_out] = make_pipe();
      auto [ours_in, theirs_out] = make_pipe();
      const pid_t process = start(program, theirs_in.number(), theirs_out.number());
      ranks_.push_back(
          {.process = process, .input = std::move(ours_out), .output = std::move(ours_in), .title = program.title});
      // Nothing waits but poll: a request may be longer than a pipe holds, and a rank may have nothing to say.
      if (fcntl(ranks_.back().output.number(), F_SETFL, O_NONBLOCK) != 0 ||
          fcntl(ranks_.back().input.number(), F_SETFL, O_NONBLOCK) != 0) {
        throw std::system_error(errno, std::generic_category(), "the pipes to " + program.title);
      }
    }
  } catch (...) {
    kill_all();
    throw;
  }
}

LocalRanks::LocalRanks(LocalRanks&& other) noexcept : ranks_(std::exchange(other.ranks_, {})) {}
LocalRanks::~LocalRanks() { kill_all(); }

void LocalRanks::kill_all() noexcept {
  for (auto& rank : ranks_) {
    if (!rank.ended) (void)kill(rank.process, SIGKILL);  // gone already is as good
  }
  for (auto& rank : ranks_) {
    while (!rank.ended && waitpid(rank.process, &rank.status, 0) < 0 && errno == EINTR) {
    }
    rank.ended = true;
  }
}

void LocalRanks::lose(Rank& rank, const std::string& how) {
  const std::string reason = fmt::format("{} {}", rank.title, how);
  kill_all();
  throw RankLost(reason);
}

/// Reads what a rank has said; loses it when it has ended or says too much.
void LocalRanks::receive(Rank& rank) {
  std::array<char, 1 << 16> chunk;
  const ssize_t got = read(rank.output.number(), chunk.data(), chunk.size());
  if (got > 0) {
    rank.received.append(chunk.data(), static_cast<std::size_t>(got));
    if (rank.received.size() > kLongestAnswer) lose(rank, fmt::format("said more than {} B at once", kLongestAnswer));
  } else if (got == 0) {
    // Its output is closed, so it ends or has ended; one that closes its output and lives on is ended here.
    (void)kill(rank.process, SIGTERM);
    while (waitpid(rank.process, &rank.status, 0) < 0 && errno == EINTR) {
    }
    rank.ended = true;
    lose(rank, fmt::format("{} before it answered", ending(rank.status)));
  }
}

/// Hands the rank's pipe as much of the request as it takes. A rank that is gone gives EPIPE here, and end of file in
/// receive(), which knows how it ended.
void LocalRanks::tell(Rank& rank) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  (void)sigaction(SIGPIPE, &ignore, &before);  // with these arguments it cannot fail
  const ssize_t taken = write(rank.input.number(), rank.unsent.data(), rank.unsent.size());
  if (taken > 0)
    rank.unsent.erase(0, static_cast<std::size_t>(taken));
  else if (errno != EAGAIN && errno != EINTR)
    rank.unsent.clear();
  (void)sigaction(SIGPIPE, &before, nullptr);
}

std::vector<std::string> LocalRanks::ask(std::string_view request, Seconds limit,
                                         const std::function<void()>& meanwhile) {
  for (auto& rank : ranks_) rank.unsent = std::string(request) + "\n";
  const auto until = after(limit);
  std::vector<std::string> answers(ranks_.size());
  std::vector<bool> here(ranks_.size(), false);
  while (true) {
    std::vector<pollfd> polled;
    std::vector<Rank*> waiting;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      if (!rank.unsent.empty()) tell(rank);
      if (const auto end = rank.received.find('\n'); !here[i] && end != std::string::npos) {
        answers[i] = rank.received.substr(0, end);
        rank.received.erase(0, end + 1);
        here[i] = true;
      }
      if (here[i]) continue;
      polled.push_back({.fd = rank.output.number(), .events = POLLIN, .revents = 0});
      if (!rank.unsent.empty()) polled.push_back({.fd = rank.input.number(), .events = POLLOUT, .revents = 0});
      waiting.push_back(&rank);
    }
    if (waiting.empty()) return answers;
    if (Clock::now() >= until) lose(*waiting.front(), fmt::format("said nothing for {:g} s", limit.count));
    const int ready = poll(polled.data(), polled.size(), static_cast<int>(kSlice.count()));
    if (stop_requested()) throw std::runtime_error("stopped by a signal while ranks were at work");
    if (meanwhile) meanwhile();
    if (ready <= 0) continue;
    for (Rank* rank : waiting) receive(*rank);
  }
}

void LocalRanks::finish(Seconds limit) {
  for (auto& rank : ranks_) rank.input = Descriptor();
  const auto until = after(limit);
  for (auto& rank : ranks_) {
    while (!rank.ended && Clock::now() < until) {
      rank.ended = waitpid(rank.process, &rank.status, WNOHANG) == rank.process;
      if (!rank.ended) (void)poll(nullptr, 0, 1);  // a pause; nothing here is timed
    }
  }
  kill_all();
}

}  // namespace assay
