// launch: chooses the launcher, starts the agent's process, and hands the rest to its connection.
#include "orchestrator/launch.h"

#include <csignal>
#include <system_error>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "orchestrator/digest.h"
#include "orchestrator/launch_connection.h"
#include "orchestrator/launch_process.h"
#include "orchestrator/launch_ssh.h"

namespace assay {

namespace asio = boost::asio;

namespace {

constexpr Seconds kHelloPatience{60};        // for storing some megabytes on a slow node and reading its facts
constexpr std::size_t kMaxAgent = 64 << 20;  // a static agent with symbols has below 20 MB

/// What to start, and what its connection must know.
struct LaunchPlan {
  std::vector<std::string> argv;
  ConnectionOptions options;
};

std::unexpected<LaunchError> refused(std::string reason) { return std::unexpected(LaunchError{.kind = "refused", .reason = std::move(reason)}); }

/// A memory file with the pinned key. ssh closes what it inherits, so it reads it through our /proc entry: no file is left
/// behind however we end, and nobody else can write to it.
std::expected<Descriptor, std::string> write_known_hosts(const std::string& line) {
  Descriptor file(memfd_create("assay-known-hosts", MFD_CLOEXEC));
  if (!file) return std::unexpected(fmt::format("no memory file for the pinned key: {}", std::generic_category().message(errno)));
  if (write(file.number(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) return std::unexpected("the pinned key cannot be written");
  return file;
}

std::expected<LaunchPlan, LaunchError> plan_ssh(const Node& node, const Site& site, const LaunchOptions& options, std::string image) {
  LaunchPlan plan;
  plan.options.agent_sha256 = sha256(image);
  const auto command = bootstrap_command(node.directory, plan.options.agent_sha256, image.size());
  if (!command) return refused(command.error());
  std::string known_hosts = site.known_hosts;
  if (!node.host_key.empty()) {
    const auto line = known_hosts_line(node);
    if (!line) return std::unexpected(LaunchError{.kind = "host_key", .reason = line.error()});
    auto file = write_known_hosts(*line);
    if (!file) return refused(file.error());
    known_hosts = fmt::format("/proc/{}/fd/{}", getpid(), file->number());
    plan.options.known_hosts = std::move(*file);
  } else if (known_hosts.empty()) {
    return std::unexpected(LaunchError{.kind = "host_key", .reason = "the site pins no host key for this node and names no known_hosts file"});
  }
  auto argv = ssh_arguments(node, options, known_hosts, *command);
  if (!argv) return refused(argv.error());
  plan.argv = std::move(*argv);
  plan.options.agent_image = std::move(image);
  return plan;
}

std::expected<LaunchPlan, LaunchError> plan_launch(const Node& node, const Site& site, const LaunchOptions& options) {
  auto image = read_file(options.agent, kMaxAgent);
  if (!image) return refused(fmt::format("{} {}", image.error().where, image.error().what));
  if (node.launcher == Launcher::ssh) return plan_ssh(node, site, options, std::move(*image));
  LaunchPlan plan;
  plan.argv = {options.agent, "--directory", node.directory};
  plan.options.agent_sha256 = sha256(*image);
  return plan;
}

asio::awaitable<void> serve(std::unique_ptr<Connection> connection) { co_await connection->serve(); }

}  // namespace

asio::awaitable<std::expected<std::unique_ptr<Agent>, LaunchError>> Agent::start(const Node& node, const Site& site, const LaunchOptions& options) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  auto plan = plan_launch(node, site, options);
  if (!plan) co_return std::unexpected(plan.error());
  const auto executor = co_await asio::this_coro::executor;
  auto child = ChildProcess::start(executor, plan->argv);
  if (!child) co_return refused(child.error());
  std::unique_ptr<Agent> agent(new Agent());  // the constructor is private
  auto connection = std::make_unique<Connection>(std::move(*child), std::move(plan->options), *agent);
  asio::co_spawn(executor, serve(std::move(connection)), asio::detached);
  const Seconds patience{options.connect_timeout.count + kHelloPatience.count};
  const auto greeted = co_await agent->connection_->greet(patience);
  if (!greeted) co_return std::unexpected(greeted.error());
  co_return std::move(agent);
}

Agent::~Agent() {
  if (connection_ == nullptr) return;
  connection_->agent_ = nullptr;
  connection_->abandon(gone_);
}

asio::awaitable<std::expected<void, LaunchError>> Agent::deliver(std::string sha256, std::string path) {
  if (connection_ == nullptr) co_return std::unexpected(gone_);
  co_return co_await connection_->deliver(std::move(sha256), std::move(path));
}

asio::awaitable<RunResult> Agent::run(RunRequest request) {
  if (connection_ == nullptr) {
    RunResult result;
    result.outcome = "lost";
    result.reason = gone_.reason;
    co_return result;
  }
  co_return co_await connection_->run(request);
}

void Agent::stop(const std::string& id) {
  if (connection_ != nullptr) connection_->stop(id);
}

asio::awaitable<void> Agent::close() {
  if (connection_ != nullptr) co_await connection_->close();
}

}  // namespace assay
