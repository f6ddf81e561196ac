// Agents that connect back: through a fake srun that starts them on this machine, and every way in which that goes
// wrong.
#include <array>
#include <cstdlib>
#include <fstream>

#include <sys/resource.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/listener.h"
#include "orchestrator/launch/slurm.h"
#include "orchestrator/run/all_of.h"
#include "orchestrator/wire/stream.h"
#include "orchestrator/wire/tls.h"
#include "tests/e2e/agents.h"

namespace assay {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace test;

/// The job does not come in these tests: long enough for the others on a loaded machine.
constexpr Seconds kPatienceForNoJob{5};

struct Outcome {
  std::unique_ptr<launch::Agent> agent;
  std::optional<launch::LaunchError> error;
};

launch::LaunchError error_of(const Outcome& outcome) {
  return outcome.error.value_or(launch::LaunchError{.kind = launch::LaunchFailure::lost, .reason = "no error"});
}

class DialTest : public testing::Test {
 protected:
  void SetUp() override {
    site_.slurm.wait = {60};
    site_.slurm.bcast_directory = "/tmp";
    for (const char* name : {"n01", "n02", "n03"}) {
      // One directory for all, as srun demands; on one machine their scratch lies side by side in it.
      site_.nodes.push_back(
          {.name = name, .launcher = site::Launcher::slurm, .address = name, .directory = place_.path() + "/node"});
    }
    setenv("FAKE_SLURM_LOG", log().c_str(), 1);
    unsetenv("FAKE_SLURM");
    unsetenv("SLURM_JOB_ID");
    // The fake does not copy the agent as --bcast does, so that --remove-self would remove the one that was built.
    // By a link, because a build may lie below a path that has a blank, and the name of a shared agent has none.
    site_.slurm.agent = place_.path() + "/assay-node";
    std::filesystem::create_symlink(ASSAY_NODE, site_.slurm.agent);
  }
  void TearDown() override {
    EXPECT_TRUE(eventually([&] { return processes_with(place_.path()).empty(); })) << "agents or sruns are left";
    EXPECT_EQ(entries_in(place_.path() + "/node/scratch"), 0U);
  }

  [[nodiscard]] std::string log() const { return place_.path() + "/log"; }
  [[nodiscard]] std::vector<nlohmann::json> calls(const std::string& tool) const {
    std::vector<nlohmann::json> found;
    std::ifstream file(log());
    for (std::string line; std::getline(file, line);) {
      auto words = nlohmann::json::parse(line);
      if (words.at(0) == tool) found.push_back(std::move(words));
    }
    return found;
  }

  /// Starts every node at once, runs a program on those that came, waits for `before_closing` to be true, and closes
  /// all.
  std::map<std::string, Outcome> start_all(const std::string& fault, const std::function<bool()>& before_closing = {}) {
    setenv("FAKE_SLURM", fault.c_str(), 1);
    std::map<std::string, Outcome> outcomes;
    complete([&]() -> asio::awaitable<void> {
      std::vector<std::string> names;
      for (const auto& node : site_.nodes) names.push_back(node.name);
      launch::SlurmTools tools{.agent = ASSAY_NODE, .srun = FAKES "/fake_srun", .sinfo = FAKES "/fake_sinfo"};
      launch::SlurmLauncher slurm(
          co_await asio::this_coro::executor, site_, names, std::move(tools),
          [this](const std::string& who, const std::string& what) { remarks_.push_back(who + ": " + what); });
      const launch::LaunchOptions launch{.agent = ASSAY_NODE, .slurm = &slurm};
      const auto one = [&](std::size_t i) -> asio::awaitable<void> {
        Outcome& outcome = outcomes[site_.nodes[i].name];
        auto agent = co_await launch::Agent::start(site_.nodes[i], site_, launch);
        if (agent) {
          outcome.agent = std::move(*agent);
          outcome.error = co_await use(*outcome.agent, site_.nodes[i].name);
        } else {
          outcome.error = agent.error();
        }
      };
      co_await run::side_by_side(site_.nodes.size(), one);
      if (before_closing) {
        const bool so = co_await until(before_closing);
        EXPECT_TRUE(so);
      }
      for (auto& [name, outcome] : outcomes) {
        if (outcome.agent) co_await outcome.agent->close();
      }
      co_await slurm.close();
    });
    return outcomes;
  }

  /// A program runs through the agent; no error when it did as it should.
  asio::awaitable<std::optional<launch::LaunchError>> use(launch::Agent& agent, std::string name) {
    const auto delivered = co_await agent.deliver(files::sha256_of_file(UNRULY).value(), UNRULY);
    if (!delivered) co_return delivered.error();
    const launch::RunResult result =
        co_await agent.run(request("step-" + name, UNRULY, words("say", "hello from " + name, "0", place_.path())));
    std::optional<launch::LaunchError> error;
    if (result.outcome != AttemptOutcome::exited || result.output != "hello from " + name)
      error = {.kind = launch::LaunchFailure::lost, .reason = fmt::format("{}: {}", result.outcome, result.reason)};
    co_return error;
  }

  Place place_;
  site::Site site_{.name = "fake", .known_hosts = "", .nodes = {}};
  std::vector<std::string> remarks_;
};

TEST_F(DialTest, one_srun_starts_all_and_each_agent_speaks_the_protocol) {
  const auto outcomes = start_all("");
  for (const auto& [name, outcome] : outcomes)
    EXPECT_TRUE(outcome.agent && !outcome.error) << name << ": " << error_of(outcome).reason;
  EXPECT_EQ(calls("fake_srun").size(), 1U);
  EXPECT_TRUE(remarks_.empty()) << remarks_.front();
}

TEST_F(DialTest, the_token_is_in_no_argument_and_in_no_environment) {
  std::string seen;
  const auto outcomes = start_all("", [&] {
    for (const pid_t pid : processes_with(place_.path())) {
      for (const char* file : {"cmdline", "environ"})
        seen += read_fact(fmt::format("/proc/{}/{}", pid, file)).value_or("");
    }
    return true;
  });
  ASSERT_EQ(outcomes.size(), 3U);
  const std::string token = calls("token").at(0).at(1);
  EXPECT_EQ(token.size(), 64U);
  EXPECT_NE(seen.find("--pin"), std::string::npos);  // we did look
  EXPECT_EQ(seen.find(token), std::string::npos);
}

TEST_F(DialTest, an_agent_that_never_dials_is_named_and_the_others_work) {
  site_.slurm.wait = kPatienceForNoJob;
  auto outcomes = start_all("absent=n02");
  EXPECT_EQ(error_of(outcomes["n02"]).kind, launch::LaunchFailure::unreachable);
  EXPECT_EQ(error_of(outcomes["n02"]).reason, "no agent connected back from n02 in time");
  for (const char* name : {"n01", "n03"})
    EXPECT_TRUE(outcomes[name].agent && !outcomes[name].error) << error_of(outcomes[name]).reason;
}

TEST_F(DialTest, a_job_that_stays_in_the_queue_says_so) {
  site_.slurm.wait = {2 * kPatienceForNoJob.count};  // srun must have come so far as to say it
  auto outcomes = start_all("pending");
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_EQ(error_of(outcome).kind, launch::LaunchFailure::unreachable);
    EXPECT_EQ(error_of(outcome).reason,
              "no agent connected back from " + name + " in time; srun: srun: job 1 queued and waiting for resources");
  }
}

TEST_F(DialTest, an_srun_that_fails_is_quoted) {
  auto outcomes = start_all("fail");
  EXPECT_EQ(error_of(outcomes["n01"]).reason,
            "no agent connected back from n01: srun ended with exit code 1: srun: error: invalid partition specified: "
            "nowhere");
}

TEST_F(DialTest, without_srun_there_is_a_plain_reason) {
  complete([&]() -> asio::awaitable<void> {
    launch::SlurmTools tools{.agent = ASSAY_NODE, .srun = "srun-not-installed", .sinfo = "sinfo-not-installed"};
    launch::SlurmLauncher slurm(co_await asio::this_coro::executor, site_, words("n01"), std::move(tools),
                                [](const std::string&, const std::string&) {});
    const launch::LaunchOptions launch{.agent = ASSAY_NODE, .slurm = &slurm};
    const auto agent = co_await launch::Agent::start(site_.nodes[0], site_, launch);
    EXPECT_EQ(agent ? "an agent" : agent.error().reason,
              "no agent connected back from n01: srun-not-installed is not installed");
    co_await slurm.close();
  });
}

TEST_F(DialTest, two_agents_of_one_name_are_both_refused) {
  site_.slurm.wait = kPatienceForNoJob;
  auto outcomes = start_all("twice=n02 absent=n03");
  EXPECT_EQ(error_of(outcomes["n02"]).kind, launch::LaunchFailure::refused);
  EXPECT_EQ(error_of(outcomes["n02"]).reason.find("two agents claim to be n02, one from "), 0U)
      << error_of(outcomes["n02"]).reason;
  EXPECT_TRUE(outcomes["n01"].agent) << error_of(outcomes["n01"]).reason;
}

TEST_F(DialTest, a_wrong_token_is_turned_away_by_name_of_its_address) {
  site_.slurm.wait = kPatienceForNoJob;
  auto outcomes = start_all("wrong=n03");
  EXPECT_EQ(error_of(outcomes["n03"]).kind, launch::LaunchFailure::unreachable);
  ASSERT_FALSE(remarks_.empty());
  EXPECT_TRUE(remarks_.front().starts_with("srun: rejected a connection from ") &&
              remarks_.front().ends_with(": the token does not belong to this run"))
      << remarks_.front();
  EXPECT_TRUE(outcomes["n01"].agent);
}

TEST_F(DialTest, an_agent_of_a_node_that_was_not_asked_for_is_turned_away) {
  site_.slurm.wait = kPatienceForNoJob;
  auto outcomes = start_all("stranger absent=n03");
  ASSERT_FALSE(remarks_.empty());
  EXPECT_TRUE(remarks_.front().starts_with("n99: rejected a connection from ") &&
              remarks_.front().ends_with(": this srun starts no agent on n99"))
      << remarks_.front();
  EXPECT_TRUE(outcomes["n01"].agent);
}

TEST_F(DialTest, a_node_that_slurm_calls_down_is_left_out_and_named) {
  auto outcomes = start_all("down=n02");
  EXPECT_EQ(error_of(outcomes["n02"]).kind, launch::LaunchFailure::refused);
  EXPECT_EQ(error_of(outcomes["n02"]).reason, "Slurm reports n02 as down*");
  EXPECT_TRUE(outcomes["n01"].agent && outcomes["n03"].agent);
  const auto call = calls("fake_srun").at(0);
  EXPECT_NE(std::ranges::find(call, "--nodelist=n01,n03"), call.end());
}

TEST_F(DialTest, agents_that_went_with_their_srun_are_started_again_one_by_one) {
  const auto outcomes = start_all("together");
  for (const auto& [name, outcome] : outcomes)
    EXPECT_TRUE(outcome.agent && !outcome.error) << name << ": " << error_of(outcome).reason;
  EXPECT_EQ(calls("fake_srun").size(), 4U);
}

TEST_F(DialTest, agents_work_on_when_srun_is_killed_and_that_is_said) {
  const auto outcomes = start_all("dies", [&] { return !remarks_.empty(); });
  for (const auto& [name, outcome] : outcomes)
    EXPECT_TRUE(outcome.agent && !outcome.error) << name << ": " << error_of(outcome).reason;
  ASSERT_EQ(remarks_.size(), 1U);
  EXPECT_EQ(remarks_.front(), "srun: srun was killed");
}

TEST_F(DialTest, what_does_not_hold_the_pinned_key_gets_no_token) {
  complete([&]() -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    bool asked = false;
    auto muster = launch::AgentListener::open(
        executor, 0, [&](const wire::Greeting&, const std::string&, wire::Stream&) -> std::optional<std::string> {
          asked = true;
          return "nobody";
        });
    const auto other = wire::make_tls_identity();
    auto tls = wire::pinned_tls((*other)->pin);
    auto stream =
        std::make_unique<wire::TlsStream>(wire::TlsStream{asio::ssl::stream<tcp::socket>(executor, tls->context)});
    const tcp::endpoint home(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>((*muster)->port()));
    co_await stream->stream.lowest_layer().async_connect(home, asio::use_awaitable);
    const auto [error] =
        co_await stream->stream.async_handshake(asio::ssl::stream_base::client, asio::as_tuple(asio::use_awaitable));
    EXPECT_TRUE(error);
    EXPECT_FALSE(asked);
  });
}

TEST_F(DialTest, silent_callers_keep_no_agent_out_and_leave_descriptors) {
  // What a login shell often has. Each test is a process of its own, so it is not taken back, which only root could do.
  const rlimit usual = {.rlim_cur = 1024, .rlim_max = 1024};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  complete([&]() -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    std::vector<wire::Stream> taken;
    auto muster = launch::AgentListener::open(
        executor, 0,
        [&](const wire::Greeting&, const std::string&, wire::Stream& stream) -> std::optional<std::string> {
          taken.push_back(std::move(stream));
          return std::nullopt;
        });
    const tcp::endpoint home(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>((*muster)->port()));
    std::vector<tcp::socket> silent;
    for (int i = 0; i < 400; ++i) co_await silent.emplace_back(executor).async_connect(home, asio::use_awaitable);
    auto tls = wire::pinned_tls((*muster)->pin());
    auto caller =
        std::make_unique<wire::TlsStream>(wire::TlsStream{asio::ssl::stream<tcp::socket>(executor, tls->context)});
    co_await caller->stream.lowest_layer().async_connect(home, asio::use_awaitable);
    co_await caller->stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
    wire::Stream stream(std::move(caller));
    // Not in the co_await: g++ 12 destroys a braced temporary there twice.
    const std::string greeting = wire::to_line({.token = std::string(64, '1'), .node = "n01"});
    (void)co_await stream.write(greeting);
    const bool in = co_await until([&] { return taken.size() == 1; });
    EXPECT_TRUE(in);
    // Both ends of every caller are in this process: 400 of them, and the listener's at most (1024 - 512) / 2.
    EXPECT_LT(entries_in("/proc/self/fd"), 400U + 256U + 40U);
  });
}

TEST_F(DialTest, a_caller_that_greets_wrongly_is_hung_up_on_and_one_that_is_refused_is_told_why) {
  complete([&]() -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    auto muster = launch::AgentListener::open(
        executor, 0,
        [&](const wire::Greeting& greeting, const std::string& from, wire::Stream&) -> std::optional<std::string> {
          return greeting.node + " from " + from + " is not wanted";
        });
    auto tls = wire::pinned_tls((*muster)->pin());
    const tcp::endpoint home(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>((*muster)->port()));
    const std::string greeting = wire::to_line({.token = std::string(64, '1'), .node = "n01"});
    const std::map<std::string, std::string> answers = {
        {"GET / HTTP/1.1\r\n", ""}, {greeting, "assay-dial/1 refused n01 from 127.0.0.1 is not wanted\n"}};
    for (const auto& [line, expected] : answers) {
      auto caller =
          std::make_unique<wire::TlsStream>(wire::TlsStream{asio::ssl::stream<tcp::socket>(executor, tls->context)});
      co_await caller->stream.lowest_layer().async_connect(home, asio::use_awaitable);
      co_await caller->stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
      wire::Stream stream(std::move(caller));
      (void)co_await stream.write(line);
      std::string answer;
      std::array<char, 600> buffer;
      while (true) {
        const wire::ReadResult read = co_await stream.read_some(buffer);
        if (read.error) break;
        answer.append(buffer.data(), read.size);
      }
      if (const auto mapped = answer.find("::ffff:"); mapped != std::string::npos)
        answer.erase(mapped, 7);  // where the kernel has IPv6
      EXPECT_EQ(answer, expected);
    }
  });
}

}  // namespace
}  // namespace assay
