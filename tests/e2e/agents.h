// agents: what the tests of the launchers share: coroutines run to their end, and looks at what is left on the machine.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/files/digest.h"
#include "orchestrator/launch/agent.h"
#include "probes/core/host_facts.h"

namespace assay::test {

/// Beyond every deadline of the launchers; a test that gets here has failed.
inline constexpr auto kPatience = std::chrono::seconds(120);

/// A directory of its own for one test, removed at the end. No symbolic link in its path.
class Place {
 public:
  Place() {
    std::string pattern = "/tmp/assay-test-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = pattern;
  }
  ~Place() {
    std::error_code ignored;  // a test that left something unremovable says so by itself
    std::filesystem::remove_all(path_, ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  /// Its absolute path.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Runs `work` on an event loop of its own until it is done and nothing else is left to do.
inline void complete(const std::function<boost::asio::awaitable<void>()>& work) {
  boost::asio::io_context context(1);
  bool done = false;
  boost::asio::co_spawn(context, work, [&](const std::exception_ptr& error) {
    done = true;
    if (error) std::rethrow_exception(error);
  });
  context.run_for(kPatience);
  if (!done) throw std::runtime_error("the coroutine hangs");
}

/// Waits on a condition from within a coroutine, looking at it now and then. False when it does not come true.
inline boost::asio::awaitable<bool> until(std::function<bool()> condition) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  for (const auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;) {
    if (condition()) co_return true;
    timer.expires_after(std::chrono::milliseconds(5));
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
  co_return false;
}

/// As until, outside of coroutines.
inline bool eventually(const std::function<bool()>& condition) {
  for (const auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // between two looks; nothing is assumed of its length
  }
  return false;
}

/// The processes, zombies apart, that have `marker` somewhere in their arguments; never this one.
inline std::vector<pid_t> processes_with(const std::string& marker) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == getpid()) continue;
    // A process may end between the listing and this; read_fact has nothing of it then, where a stream's buffer throws.
    const std::string arguments = read_fact(entry->path() / "cmdline").value_or("");
    if (arguments.find(marker) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

/// How many entries lie in a directory; 0 when it is missing.
inline std::size_t entries_in(const std::string& path) {
  std::error_code error;
  const std::filesystem::directory_iterator begin(path, error);
  return error ? 0 : static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

/// Texts as a list: g++ 12 refuses braced lists of literals inside coroutines ("array used as initializer").
template <class... Text>
std::vector<std::string> words(const Text&... text) {
  std::vector<std::string> list;
  (list.emplace_back(text), ...);
  return list;
}

/// How the tests start agents.
inline launch::LaunchOptions options(const std::string& agent = ASSAY_NODE, const std::string& ssh = "ssh") {
  return {.agent = agent, .ssh = ssh};
}

/// A request with limits that no well-behaved program meets.
inline launch::RunRequest request(std::string id, const std::string& program, std::vector<std::string> arguments) {
  return {.id = std::move(id),
          .sha256 = files::sha256_of_file(program).value(),
          .arguments = std::move(arguments),
          .deadline = {60},
          .limits = {.memory = {8ULL << 30}, .output = {1 << 20}, .cpu = {60}}};
}

}  // namespace assay::test
