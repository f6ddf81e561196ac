// The agent through the ssh launcher, on two sshd instances of our own: storing, running, and every way not to get
// there.
#include <iostream>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "orchestrator/node/process_tree.h"
#include "tests/e2e/agents.h"

namespace assay {
namespace {

namespace asio = boost::asio;
using namespace test;

/// Runs ssh_nodes; its exit code.
int ssh_nodes(std::vector<std::string> words) {
  words.insert(words.begin(), SSH_NODES);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, SSH_NODES, nullptr, nullptr, argv.data(), environ) != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The nodes of one test, with sshd running.
class SshTest : public testing::Test {
 protected:
  void SetUp() override {
    nodes_ = place_.path() + "/nodes";
    ASSERT_EQ(ssh_nodes({"up", "2", nodes_}), 0);
    const auto document = nlohmann::json::parse(read_file(nodes_ + "/site.json").value());
    for (const auto& entry : document.at("nodes")) {
      site_.nodes.push_back({.name = entry.at("name"),
                             .launcher = site::Launcher::ssh,
                             .address = entry.at("address"),
                             .port = entry.at("port"),
                             .user = entry.at("user"),
                             .identity_file = entry.at("identity_file"),
                             .host_key = entry.at("host_key"),
                             .directory = entry.at("directory"),
                             .rack = ""});
    }
    ASSERT_EQ(site_.nodes.size(), 2U);
  }
  void TearDown() override {
    for (const auto& node : site_.nodes) {  // the agent and its supervisors, which end last
      EXPECT_TRUE(eventually([&] { return processes_with(node.directory).empty(); }));
      EXPECT_EQ(entries_in(node.directory + "/scratch"), 0U);
    }
    EXPECT_EQ(ssh_nodes({"down", nodes_}), 0);
    EXPECT_TRUE(eventually([&] { return processes_with(place_.path()).empty(); }));
  }

  asio::awaitable<std::unique_ptr<launch::Agent>> ready_agent(std::size_t node = 0) {
    auto agent = co_await launch::Agent::start(site_.nodes[node], site_, options());
    if (!agent) throw std::runtime_error(fmt::format("{}: {}", agent.error().kind, agent.error().reason));
    const auto delivered = co_await (*agent)->deliver(files::sha256_of_file(UNRULY).value(), UNRULY);
    if (!delivered) throw std::runtime_error(delivered.error().reason);
    co_return std::move(*agent);
  }

  launch::LaunchError failure(const site::Node& node, const launch::LaunchOptions& chosen = options()) {
    launch::LaunchError error{.kind = launch::LaunchFailure::lost, .reason = "an agent answered"};
    complete([&]() -> asio::awaitable<void> {
      const auto agent = co_await launch::Agent::start(node, site_, chosen);
      if (!agent) error = agent.error();
    });
    return error;
  }

  Place place_;
  std::string nodes_;
  site::Site site_{.name = "loopback", .known_hosts = "", .nodes = {}};
};

TEST_F(SshTest, agents_of_two_nodes_run_at_the_same_time) {
  complete([&]() -> asio::awaitable<void> {
    const auto first = co_await ready_agent(0);
    const auto second = co_await ready_agent(1);
    launch::RunResult beside;
    bool ended = false;
    asio::co_spawn(co_await asio::this_coro::executor,
                   second->run(request("companion", UNRULY, words("obey", place_.path()))),
                   [&](const std::exception_ptr&, launch::RunResult result) {
                     beside = std::move(result);
                     ended = true;
                   });
    const launch::RunResult result =
        co_await first->run(request("step", UNRULY, words("say", "hello", "0", place_.path())));
    EXPECT_EQ(result.outcome, AttemptOutcome::exited);
    EXPECT_EQ(result.output, "hello");
    EXPECT_EQ(result.log, "log\n");
    second->stop("companion");
    const bool stopped = co_await until([&] { return ended; });
    EXPECT_TRUE(stopped);
    EXPECT_EQ(beside.outcome, AttemptOutcome::stopped);
    co_await first->close();
    co_await second->close();
  });
}

TEST_F(SshTest, the_agent_is_stored_once_and_again_when_it_was_changed) {
  const std::string agents = site_.nodes[0].directory + "/agents";
  const std::string stored = agents + "/" + files::sha256_of_file(ASSAY_NODE).value();
  complete([&]() -> asio::awaitable<void> {
    for (const bool expected : {true, false}) {
      const auto agent = co_await ready_agent();
      EXPECT_EQ(agent->was_stored(), expected);
      co_await agent->close();
    }
    EXPECT_EQ(files::sha256_of_file(stored).value(), files::sha256_of_file(ASSAY_NODE).value());
    EXPECT_EQ(entries_in(agents), 1U);
    std::filesystem::permissions(stored, std::filesystem::perms::owner_all);
    std::fstream(stored, std::ios::in | std::ios::out).seekp(100) << "changed";
    const auto agent = co_await ready_agent();
    EXPECT_TRUE(agent->was_stored());
    co_await agent->close();
  });
}

TEST_F(SshTest, a_large_output_arrives_whole) {
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await ready_agent();
    launch::RunRequest wanted = request("step", UNRULY, words("flood", place_.path()));
    wanted.limits.output = {20'000'000};
    const launch::RunResult result = co_await agent->run(wanted);
    EXPECT_EQ(result.outcome, AttemptOutcome::output_limit);
    EXPECT_EQ(result.output.size(), 20'000'000U);
    co_await agent->close();
  });
}

TEST_F(SshTest, a_changed_host_key_is_told_from_an_absent_node) {
  site::Node node = site_.nodes[0];
  node.host_key = site_.nodes[1].host_key;
  const launch::LaunchError error = failure(node);
  EXPECT_EQ(error.kind, launch::LaunchFailure::host_key);
  EXPECT_EQ(error.reason, "the host key is not the one that the site pins: another host may answer at this address");
}

TEST_F(SshTest, an_unpinned_node_is_not_asked_at_all) {
  site::Node node = site_.nodes[0];
  node.host_key.clear();
  EXPECT_EQ(failure(node).kind, launch::LaunchFailure::host_key);
  EXPECT_EQ(failure(node).reason, "the site pins no host key for this node and names no known_hosts file");
}

TEST_F(SshTest, a_known_hosts_file_of_the_site_pins_as_well) {
  site::Node& node = site_.nodes[0];
  site_.known_hosts = place_.path() + "/known_hosts";
  std::ofstream(site_.known_hosts) << '[' << node.address << "]:" << node.port << ' '
                                   << std::exchange(node.host_key, "") << '\n';
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await ready_agent();
    co_await agent->close();
  });
  std::ofstream(site_.known_hosts) << "# nobody\n";
  const launch::LaunchError error = failure(node);
  EXPECT_EQ(error.kind, launch::LaunchFailure::host_key);
  // The address is what must be in the file: an entry under the node's name would not do.
  EXPECT_TRUE(error.reason.starts_with("the host key is not pinned in the site: No ")) << error.reason;
  const std::string looked_up = fmt::format("host key is known for [{}]:{} ", node.address, node.port);
  EXPECT_NE(error.reason.find(looked_up), std::string::npos) << error.reason;
}

TEST_F(SshTest, a_port_without_a_listener_is_unreachable) {
  const int taken =
      socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // bound and not listening: no other program can listen there
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  ASSERT_EQ(inet_pton(AF_INET, site_.nodes[0].address.c_str(), &address.sin_addr), 1);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  site::Node node = site_.nodes[0];
  node.port = ntohs(address.sin_port);
  const launch::LaunchError error = failure(node);
  close(taken);
  EXPECT_EQ(error.kind, launch::LaunchFailure::unreachable);
  EXPECT_NE(error.reason.find("Connection refused"), std::string::npos) << error.reason;
}

TEST_F(SshTest, a_login_that_is_refused_says_so) {
  site::Node node = site_.nodes[0];
  node.identity_file = nodes_ + "/n01/host_key";  // a key, but not one that opens this door
  const launch::LaunchError error = failure(node);
  EXPECT_EQ(error.kind, launch::LaunchFailure::refused);
  EXPECT_NE(error.reason.find("Permission denied (publickey)"), std::string::npos) << error.reason;
}

TEST_F(SshTest, a_directory_that_cannot_be_used_is_refused) {
  std::ofstream(nodes_ + "/file") << "in the way";
  site::Node node = site_.nodes[0];
  node.directory = nodes_ + "/file";
  const launch::LaunchError error = failure(node);
  EXPECT_EQ(error.kind, launch::LaunchFailure::refused);
  EXPECT_EQ(error.reason,
            "assay: directory " + node.directory + " cannot be used, is a link or belongs to another user");
}

TEST_F(SshTest, without_an_ssh_client_there_is_a_plain_reason) {
  const launch::LaunchError error = failure(site_.nodes[0], options(ASSAY_NODE, "ssh-not-installed"));
  EXPECT_EQ(error.kind, launch::LaunchFailure::refused);
  EXPECT_EQ(error.reason, "ssh-not-installed is not installed");
}

TEST_F(SshTest, a_node_behind_a_jump_host_is_reached_and_both_keys_are_pinned) {
  const site::Node& jump = site_.nodes[1];
  site_.nodes[0].jump = site::JumpHost{.address = jump.address,
                                       .port = jump.port,
                                       .user = jump.user,
                                       .identity_file = jump.identity_file,
                                       .host_key = jump.host_key};
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await ready_agent(0);
    const launch::RunResult result =
        co_await agent->run(request("step", UNRULY, words("say", "hello", "0", place_.path())));
    EXPECT_EQ(result.output, "hello");
    co_await agent->close();
  });
  site::Node node = site_.nodes[0];
  node.jump->host_key = node.host_key;  // of another machine
  EXPECT_EQ(failure(node).kind, launch::LaunchFailure::host_key);
  node.jump->host_key.clear();
  EXPECT_EQ(failure(node).reason, "the site pins no host key for its jump host and names no known_hosts file");
  node = site_.nodes[0];
  node.host_key = jump.host_key;
  EXPECT_EQ(failure(node).kind, launch::LaunchFailure::host_key);
}

/// Kills what sshd of the first node started for the session, as when a node falls out of the network at once.
TEST_F(SshTest, a_node_that_drops_in_the_middle_of_a_run_is_lost) {
  const pid_t sshd = std::stoi(read_file(nodes_ + "/n01/sshd.pid").value());
  complete([&]() -> asio::awaitable<void> {
    const auto agent = co_await ready_agent();
    launch::RunResult result;
    bool ended = false;
    asio::co_spawn(co_await asio::this_coro::executor,
                   agent->run(request("step", UNRULY, words("fork-and-hang", "--mark=" + place_.path()))),
                   [&](const std::exception_ptr&, launch::RunResult given) {
                     result = std::move(given);
                     ended = true;
                   });
    const bool started = co_await until([&] { return processes_with("--mark=" + place_.path()).size() == 3; });
    EXPECT_TRUE(started);
    for (const auto& process : node::descendants(sshd)) {
      if (process.parent == sshd) kill(process.pid, SIGKILL);
    }
    const bool lost = co_await until([&] { return ended; });
    EXPECT_TRUE(lost);
    EXPECT_EQ(result.outcome, AttemptOutcome::lost);
    EXPECT_EQ(result.reason.find("the connection to the agent ended: "), 0U) << result.reason;
    co_await agent->close();
  });
  EXPECT_TRUE(eventually([&] { return processes_with("--mark=" + place_.path()).empty(); }));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr int kSkip = 77;
  const assay::test::Place place;
  if (const int code = assay::ssh_nodes({"up", "1", place.path() + "/probe"}); code != 0) {
    std::cerr << (code == kSkip ? "SKIPPED: install openssh-server and openssh-client to run this test\n"
                                : "no sshd can be started\n");
    return code == kSkip ? kSkip : 1;
  }
  if (assay::ssh_nodes({"down", place.path() + "/probe"}) != 0) return 1;
  return RUN_ALL_TESTS();
}
