// The agent through the local launcher: every way in which a run can end, and that nothing is left afterwards.
#include <sys/wait.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/node/process_tree.h"
#include "tests/e2e/agents.h"

namespace assay {
namespace {

namespace asio = boost::asio;
using namespace test;

class NodeTest : public testing::Test {
 protected:
  [[nodiscard]] site::Site site() const { return {.name = "here", .known_hosts = "", .nodes = {node()}}; }
  [[nodiscard]] site::Node node() const {
    return {.name = "here",
            .launcher = site::Launcher::local,
            .address = "here",
            .user = "",
            .identity_file = "",
            .host_key = "",
            .directory = directory(),
            .rack = ""};
  }
  [[nodiscard]] std::string directory() const { return place_.path() + "/node"; }
  /// In the arguments of every program of this test, and of nothing else on the machine.
  [[nodiscard]] std::string mark() const { return "--mark=" + place_.path(); }
  [[nodiscard]] std::string scratch() const { return directory() + "/scratch"; }

  asio::awaitable<std::unique_ptr<launch::Agent>> ready_agent() {
    auto agent = co_await launch::Agent::start(node(), site(), options());
    if (!agent) throw std::runtime_error(fmt::format("{}: {}", agent.error().kind, agent.error().reason));
    const auto delivered = co_await (*agent)->deliver(files::sha256_of_file(UNRULY).value(), UNRULY);
    if (!delivered) throw std::runtime_error(delivered.error().reason);
    co_return std::move(*agent);
  }

  /// One run on a fresh agent, which is closed afterwards; `change` may tighten the request.
  launch::RunResult run(std::vector<std::string> arguments,
                        const std::function<void(launch::RunRequest&)>& change = {}) {
    launch::RunResult result;
    complete([&]() -> asio::awaitable<void> {
      const auto agent = co_await ready_agent();
      launch::RunRequest wanted = request("step-1", UNRULY, arguments);
      if (change) change(wanted);
      result = co_await agent->run(wanted);
      left_ = entries_in(scratch());
      running_ = processes_with(mark()).size();
      co_await agent->close();
    });
    return result;
  }

  void expect_nothing_left() const {
    EXPECT_EQ(left_, 0U) << "scratch directories after the run";
    EXPECT_EQ(processes_with(place_.path()).size(), 0U) << "processes of the run or its agent";
    EXPECT_EQ(entries_in(scratch()), 0U);
    EXPECT_EQ(entries_in(directory() + "/programs"), 0U);
  }

  Place place_;
  std::size_t left_ = 0;
  std::size_t running_ = 0;
};

TEST_F(NodeTest, an_agent_tells_the_facts_of_its_host) {
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await ready_agent();
    EXPECT_TRUE(agent->facts().at("name").is_string());
    EXPECT_GT(agent->facts().at("cpus").get<int>(), 0);
    EXPECT_FALSE(agent->was_stored());
    co_await agent->close();
  });
  expect_nothing_left();
}

TEST_F(NodeTest, output_log_and_exit_code_come_back) {
  const launch::RunResult result = run({"say", "a record\n", "5", mark()});
  EXPECT_EQ(result.outcome, AttemptOutcome::exited);
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_EQ(result.signal, std::nullopt);
  EXPECT_EQ(result.output, "a record\n");
  EXPECT_EQ(result.log, "log\n");
  EXPECT_EQ(result.left_behind, 0);
  EXPECT_GT(result.elapsed_s, 0);
  expect_nothing_left();
}

TEST_F(NodeTest, a_run_has_clean_surroundings) {
  const launch::RunResult result = run({"surroundings", mark()});
  ASSERT_EQ(result.outcome, AttemptOutcome::exited) << result.reason;
  const std::string home = scratch() + "/step-1-";
  EXPECT_NE(result.output.find("environment PATH=/usr/local/sbin:"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("environment HOME=" + home), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("environment LANG=C\ncwd " + home), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("session leader 1\nopen 0\nopen 1\nopen 2\ncore 0\nwritable 0\n"), std::string::npos)
      << result.output;
  expect_nothing_left();
}

TEST_F(NodeTest, one_that_ignores_sigterm_is_killed_at_its_deadline) {
  const launch::RunResult result = run({"hang", mark()}, [](launch::RunRequest& wanted) { wanted.deadline = {2}; });
  EXPECT_EQ(result.outcome, AttemptOutcome::deadline);
  EXPECT_EQ(result.reason, "not finished at its deadline of 2 s");
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_EQ(result.output, "hanging\n");
  expect_nothing_left();
}

TEST_F(NodeTest, one_that_obeys_sigterm_may_end_its_record_at_the_deadline) {
  const launch::RunResult result = run({"obey", mark()}, [](launch::RunRequest& wanted) { wanted.deadline = {2}; });
  EXPECT_EQ(result.outcome, AttemptOutcome::deadline);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "ready\nend\n");
  expect_nothing_left();
}

TEST_F(NodeTest, a_crash_names_its_signal) {
  const launch::RunResult result = run({"crash", mark()});
  EXPECT_EQ(result.outcome, AttemptOutcome::crashed);
  EXPECT_EQ(result.reason, "killed by SIGSEGV");
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.exit_code, std::nullopt);
  expect_nothing_left();
}

TEST_F(NodeTest, a_flood_is_cut_off_at_the_output_limit) {
  const launch::RunResult result =
      run({"flood", mark()}, [](launch::RunRequest& wanted) { wanted.limits.output = {300'000}; });
  EXPECT_EQ(result.outcome, AttemptOutcome::output_limit);
  EXPECT_EQ(result.reason, "printed more than 300000 bytes");
  EXPECT_EQ(result.output, std::string(300'000, 'x'));
  expect_nothing_left();
}

TEST_F(NodeTest, a_long_log_is_cut_and_does_no_harm) {
  const launch::RunResult result = run({"flood-log", mark()});
  EXPECT_EQ(result.outcome, AttemptOutcome::exited);
  EXPECT_EQ(result.log, std::string(1 << 20, 'e'));
  expect_nothing_left();
}

TEST_F(NodeTest, a_daemon_is_found_and_killed_when_its_parent_ends) {
  const launch::RunResult result = run({"daemonise", mark()});
  EXPECT_EQ(result.outcome, AttemptOutcome::exited);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "parent ends\n");
  EXPECT_EQ(result.left_behind, 1);
  EXPECT_EQ(running_, 0U);
  expect_nothing_left();
}

TEST_F(NodeTest, a_whole_tree_goes_at_the_deadline) {
  const launch::RunResult result =
      run({"fork-and-hang", mark()}, [](launch::RunRequest& wanted) { wanted.deadline = {2}; });
  EXPECT_EQ(result.outcome, AttemptOutcome::deadline);
  EXPECT_EQ(result.output, "tree\n");
  EXPECT_EQ(running_, 0U);
  expect_nothing_left();
}

TEST_F(NodeTest, binary_output_arrives_byte_for_byte) {
  std::string expected;
  for (int i = 0; i < 70000; ++i) expected += static_cast<char>(i * 7);
  EXPECT_EQ(run({"junk", mark()}).output, expected);
  expect_nothing_left();
}

TEST_F(NodeTest, the_memory_limit_holds_for_the_resident_set) {
  const launch::RunResult result =
      run({"eat", mark()}, [](launch::RunRequest& wanted) { wanted.limits.memory = {64 << 20}; });
  EXPECT_EQ(result.outcome, AttemptOutcome::memory_limit);
  EXPECT_EQ(result.reason, "used more than 67108864 bytes of memory");
  expect_nothing_left();
}

TEST_F(NodeTest, the_cpu_limit_holds) {
  const launch::RunResult result = run({"burn", mark()}, [](launch::RunRequest& wanted) { wanted.limits.cpu = {1}; });
  EXPECT_EQ(result.outcome, AttemptOutcome::crashed);
  EXPECT_EQ(result.reason, "reached its CPU limit of 1 s");
  expect_nothing_left();
}

TEST_F(NodeTest, a_companion_runs_beside_a_step_and_is_stopped) {
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await ready_agent();
    launch::RunResult companion;
    bool ended = false;
    asio::co_spawn(co_await asio::this_coro::executor, agent->run(request("companion", UNRULY, words("obey", mark()))),
                   [&](const std::exception_ptr&, launch::RunResult result) {
                     companion = std::move(result);
                     ended = true;
                   });
    const bool started = co_await until([&] { return processes_with(mark()).size() == 1; });
    EXPECT_TRUE(started);
    const launch::RunResult step = co_await agent->run(request("step", UNRULY, words("say", "x", "0", mark())));
    EXPECT_EQ(step.outcome, AttemptOutcome::exited);
    EXPECT_FALSE(ended);
    agent->stop("companion");
    const bool stopped = co_await until([&] { return ended; });
    EXPECT_TRUE(stopped);
    EXPECT_EQ(companion.outcome, AttemptOutcome::stopped);
    EXPECT_EQ(companion.exit_code, 0);
    co_await agent->close();
  });
  expect_nothing_left();
}

TEST_F(NodeTest, bytes_that_do_not_match_their_hash_are_refused) {
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await ready_agent();
    const std::string other(64, 'c');
    const auto delivered = co_await agent->deliver(other, UNRULY);
    EXPECT_FALSE(delivered.has_value());
    if (!delivered) {
      EXPECT_EQ(delivered.error().kind, launch::LaunchFailure::refused);
      EXPECT_EQ(delivered.error().reason, "the bytes do not have the announced SHA-256");
    }
    launch::RunRequest wanted = request("step", UNRULY, words("say", "x", "0"));
    wanted.sha256 = other;
    const launch::RunResult result = co_await agent->run(wanted);
    EXPECT_EQ(result.outcome, AttemptOutcome::refused);
    EXPECT_EQ(result.reason, "the program was not delivered");
    co_await agent->close();
  });
  expect_nothing_left();
}

TEST_F(NodeTest, what_is_no_program_is_refused_with_the_kernels_reason) {
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await ready_agent();
    const std::string text = place_.path() + "/text";
    std::ofstream(text) << "not a program\n";
    const auto delivered = co_await agent->deliver(files::sha256_of_file(text).value(), text);
    EXPECT_TRUE(delivered.has_value());
    const launch::RunResult result = co_await agent->run(request("step", text, words()));
    EXPECT_EQ(result.outcome, AttemptOutcome::refused);
    EXPECT_EQ(result.reason, "the program cannot be executed: Exec format error");
    co_await agent->close();
  });
  expect_nothing_left();
}

/// Starts a tree that obeys nothing, kills one process of the agent's side, and returns how the run ended.
launch::RunResult ended_by_killing(const std::function<asio::awaitable<std::unique_ptr<launch::Agent>>()>& ready_agent,
                                   const std::string& mark, const std::function<pid_t()>& victim) {
  launch::RunResult result;
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await ready_agent();
    bool ended = false;
    asio::co_spawn(co_await asio::this_coro::executor,
                   agent->run(request("step", UNRULY, words("fork-and-hang", mark))),
                   [&](const std::exception_ptr&, launch::RunResult given) {
                     result = std::move(given);
                     ended = true;
                   });
    const bool started = co_await until([&] { return processes_with(mark).size() == 3; });
    EXPECT_TRUE(started);
    kill(victim(), SIGKILL);
    const bool over = co_await until([&] { return ended; });
    EXPECT_TRUE(over);
    co_await agent->close();
  });
  return result;
}

pid_t child_of(pid_t parent) {
  for (const auto& process : node::descendants(parent)) {
    if (process.parent == parent) return process.pid;
  }
  throw std::runtime_error("no child");
}

TEST_F(NodeTest, a_dead_agent_loses_its_runs_and_leaves_nothing) {
  const launch::RunResult result =
      ended_by_killing([&] { return ready_agent(); }, mark(), [] { return child_of(getpid()); });
  EXPECT_EQ(result.outcome, AttemptOutcome::lost);
  EXPECT_EQ(result.reason, "the connection to the agent ended");
  EXPECT_TRUE(eventually([&] { return processes_with(place_.path()).empty(); }));
  EXPECT_EQ(entries_in(scratch()), 0U);
}

TEST_F(NodeTest, a_dead_supervisor_loses_its_run_and_leaves_nothing) {
  const launch::RunResult result =
      ended_by_killing([&] { return ready_agent(); }, mark(), [] { return child_of(child_of(getpid())); });
  EXPECT_EQ(result.outcome, AttemptOutcome::crashed);
  EXPECT_EQ(result.reason, "killed by SIGKILL");
  expect_nothing_left();
}

TEST_F(NodeTest, scratch_of_a_dead_agent_is_removed_and_that_of_a_living_one_is_not) {
  std::filesystem::create_directories(scratch() + "/dead-0123456789abcdef/deep");
  complete([&]() -> asio::awaitable<void> {
    const auto first = co_await ready_agent();
    EXPECT_EQ(entries_in(scratch()), 0U);
    asio::co_spawn(co_await asio::this_coro::executor, first->run(request("step", UNRULY, words("hang", mark()))),
                   [](const std::exception_ptr&, const launch::RunResult& result) {
                     EXPECT_EQ(result.outcome, AttemptOutcome::lost);
                   });
    const bool started = co_await until([&] { return entries_in(scratch()) == 1; });
    EXPECT_TRUE(started);
    const auto second = co_await ready_agent();
    EXPECT_EQ(entries_in(scratch()), 1U);
    co_await second->close();
    co_await first->close();
  });
  EXPECT_EQ(entries_in(scratch()), 0U);
}

/// The orchestrator as a process of its own, killed in the middle of a run.
TEST_F(NodeTest, an_orchestrator_killed_with_sigkill_leaves_nothing) {
  const pid_t orchestrator = fork();
  ASSERT_GE(orchestrator, 0);
  if (orchestrator == 0) {
    complete([&]() -> asio::awaitable<void> {
      const auto agent = co_await ready_agent();
      (void)co_await agent->run(request("step", UNRULY, words("fork-and-hang", mark())));
    });
    _exit(0);
  }
  EXPECT_TRUE(eventually([&] { return processes_with(mark()).size() == 3; }));
  kill(orchestrator, SIGKILL);
  waitpid(orchestrator, nullptr, 0);
  EXPECT_TRUE(eventually([&] { return processes_with(place_.path()).empty(); }));
  EXPECT_EQ(entries_in(scratch()), 0U);
}

TEST_F(NodeTest, an_agent_that_cannot_start_is_refused_with_its_own_words) {
  std::ofstream(place_.path() + "/node") << "a file in the way";
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await launch::Agent::start(node(), site(), options());
    EXPECT_FALSE(agent.has_value());
    if (!agent) {
      EXPECT_EQ(agent.error().kind, launch::LaunchFailure::refused);
      EXPECT_NE(agent.error().reason.find("/node cannot be opened: Not a directory"), std::string::npos)
          << agent.error().reason;
    }
  });
}

TEST_F(NodeTest, what_speaks_no_protocol_is_no_agent) {
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await launch::Agent::start(node(), site(), options("/bin/echo"));
    EXPECT_FALSE(agent.has_value());
    if (!agent) {
      EXPECT_EQ(agent.error().kind, launch::LaunchFailure::protocol);
    }
  });
}

}  // namespace
}  // namespace assay
