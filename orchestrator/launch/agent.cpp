// agent: chooses the launcher, starts the agent's process, and hands the rest to its connection.
#include "orchestrator/launch/agent.h"

#include <csignal>
#include <system_error>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include "orchestrator/files/digest.h"
#include "orchestrator/launch/child_process.h"
#include "orchestrator/launch/connection.h"
#include "orchestrator/launch/kubernetes.h"
#include "orchestrator/launch/slurm.h"
#include "orchestrator/launch/ssh.h"

namespace assay::launch {

namespace asio = boost::asio;

namespace {

constexpr Seconds kHelloPatience{60};        // for storing some megabytes on a slow node and reading its facts
constexpr std::size_t kMaxAgent = 64 << 20;  // a static agent with symbols has below 20 MB

/// The command to start, and the options of its connection.
struct LaunchPlan {
  std::vector<std::string> argv;
  ConnectionOptions options;
};

std::unexpected<LaunchError> refused(std::string reason) {
  return std::unexpected(LaunchError{.kind = LaunchFailure::refused, .reason = std::move(reason)});
}

std::string no_agent_for(const std::string& machine) {
  return fmt::format("this installation has no agent for {}: install assay-machine-{} here", machine,
                     machine == "aarch64"  ? "arm64"
                     : machine == "x86_64" ? "amd64"
                                           : machine);
}

/// A memory file with the pinned key. ssh closes inherited descriptors, so it reads the file through this process's
/// /proc entry: no file is left behind however this process ends, and no other process can write to it.
std::expected<Descriptor, std::string> write_known_hosts(const std::string& line) {
  Descriptor file(memfd_create("assay-known-hosts", MFD_CLOEXEC));
  if (!file)
    return std::unexpected(
        fmt::format("cannot create a memory file for the pinned key: {}", std::generic_category().message(errno)));
  if (write(file.number(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return std::unexpected("cannot write the pinned key to its memory file");
  return file;
}

/// The known_hosts file for a host with this `key`: `pinned` when the site pins one, else the site's own file.
std::expected<std::string, LaunchError> known_hosts_for(const std::string& key, const std::string& pinned,
                                                        const site::Site& site, const char* whose) {
  if (!key.empty()) return pinned;
  if (!site.known_hosts.empty()) return site.known_hosts;
  return std::unexpected(
      LaunchError{.kind = LaunchFailure::host_key,
                  .reason = fmt::format("the site pins no host key for {} and names no known_hosts file", whose)});
}

std::vector<AgentFile> files_of(const std::vector<AgentImage>& images) {
  std::vector<AgentFile> agents;
  for (const auto& image : images)
    agents.push_back({.machine = image.machine, .sha256 = image.sha256, .size = image.bytes.size()});
  return agents;
}

/// The agents for `node`: that of its machine, or of every machine that is installed where the site names none.
std::expected<std::vector<AgentImage>, LaunchError> images_for(const site::Node& node, const LaunchOptions& options) {
  std::map<std::string, std::string> paths = options.agents;
  paths[site::own_machine()] = options.agent;
  std::vector<AgentImage> images;
  for (const auto& [machine, path] : paths) {
    if (!node.machine.empty() && machine != node.machine) continue;
    auto bytes = read_file(path, kMaxAgent);
    if (!bytes) return refused(fmt::format("{} {}", bytes.error().where, bytes.error().what));
    std::string sha256 = files::sha256(*bytes);
    images.push_back({.machine = machine, .sha256 = std::move(sha256), .bytes = std::move(*bytes)});
  }
  if (images.empty()) return refused(no_agent_for(node.machine));
  return images;
}

std::expected<LaunchPlan, LaunchError> plan_ssh(const site::Node& node, const site::Site& site,
                                                const LaunchOptions& options, std::vector<AgentImage> images) {
  LaunchPlan plan;
  plan.options.explain = ssh_failure;
  const auto command = bootstrap_command(node.directory, files_of(images));
  if (!command) return refused(command.error());
  const auto lines = known_hosts_lines(node);
  if (!lines) return std::unexpected(LaunchError{.kind = LaunchFailure::host_key, .reason = lines.error()});
  auto file = write_known_hosts(*lines);
  if (!file) return refused(file.error());
  const std::string pinned = fmt::format("/proc/{}/fd/{}", getpid(), file->number());
  const auto of_node = known_hosts_for(node.host_key, pinned, site, "this node");
  if (!of_node) return std::unexpected(of_node.error());
  KnownHosts known_hosts{.node = *of_node};
  if (node.jump) {
    const auto of_jump = known_hosts_for(node.jump->host_key, pinned, site, "its jump host");
    if (!of_jump) return std::unexpected(of_jump.error());
    known_hosts.jump = *of_jump;
  }
  plan.options.known_hosts = std::move(*file);
  auto argv = ssh_arguments(node, options, known_hosts, *command);
  if (!argv) return refused(argv.error());
  plan.argv = std::move(*argv);
  plan.options.agents = std::move(images);
  return plan;
}

std::expected<LaunchPlan, LaunchError> plan_kubernetes(const site::Node& node, const LaunchOptions& options,
                                                       std::vector<AgentImage> images) {
  LaunchPlan plan;
  plan.options.explain = kubectl_failure;
  const auto script = bootstrap_script(node.directory, files_of(images));
  if (!script) return refused(script.error());
  auto argv = kubectl_arguments(node, options.kubectl, *script);
  if (!argv) return refused(argv.error());
  plan.argv = std::move(*argv);
  plan.options.agents = std::move(images);
  return plan;
}

std::expected<LaunchPlan, LaunchError> plan_launch(const site::Node& node, const site::Site& site,
                                                   const LaunchOptions& options) {
  if (node.launcher == site::Launcher::ssh || node.launcher == site::Launcher::kubernetes) {
    auto images = images_for(node, options);
    if (!images) return std::unexpected(images.error());
    if (node.launcher == site::Launcher::ssh) return plan_ssh(node, site, options, std::move(*images));
    return plan_kubernetes(node, options, std::move(*images));
  }
  if (!node.machine.empty() && node.machine != site::own_machine())
    return refused(fmt::format("this machine is {}, and the site says {}", site::own_machine(), node.machine));
  const auto digest = files::sha256_of_file(options.agent);
  if (!digest) return refused(fmt::format("{} {}", digest.error().where, digest.error().what));
  LaunchPlan plan;
  plan.argv = {options.agent, "--directory", node.directory};
  plan.options.machine = site::own_machine();
  plan.options.agent_sha256 = *digest;
  plan.options.explain = ssh_failure;  // which also explains an agent that ended without ssh
  return plan;
}

asio::awaitable<void> serve(std::unique_ptr<Connection> connection) { co_await connection->serve(); }

}  // namespace

std::string agent_for(const LaunchOptions& options, const std::string& machine) {
  if (machine.empty() || machine == site::own_machine()) return options.agent;
  const auto found = options.agents.find(machine);
  return found == options.agents.end() ? "" : found->second;
}

asio::awaitable<std::expected<std::unique_ptr<Agent>, LaunchError>> Agent::start(const site::Node& node,
                                                                                 const site::Site& site,
                                                                                 const LaunchOptions& options) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  if (node.launcher == site::Launcher::slurm) co_return co_await start_by_slurm(node, options);
  auto plan = plan_launch(node, site, options);
  if (!plan) co_return std::unexpected(plan.error());
  plan->options.directories = options.directories;
  auto child = ChildProcess::start(co_await asio::this_coro::executor, plan->argv);
  if (!child) co_return refused(child.error());
  const Seconds patience{options.connect_timeout.count + kHelloPatience.count};
  wire::Stream stream(std::move((*child)->out), std::move((*child)->in));
  co_return co_await connect(std::move(stream), std::move(*child), std::move(plan->options), patience);
}

/// A node whose srun failed together with other nodes is started again with an srun of its own.
asio::awaitable<std::expected<std::unique_ptr<Agent>, LaunchError>> Agent::start_by_slurm(site::Node node,
                                                                                          LaunchOptions options) {
  if (options.slurm == nullptr)
    co_return refused("nodes of launcher slurm are started together, which this command does not do");
  const std::string path = agent_for(options, node.machine);
  if (path.empty()) co_return refused(no_agent_for(node.machine));
  const auto agent_sha256 = files::sha256_of_file(path);
  if (!agent_sha256) co_return refused(fmt::format("{} {}", agent_sha256.error().where, agent_sha256.error().what));
  std::string earlier;
  while (true) {
    std::expected<std::unique_ptr<Agent>, LaunchError> agent;
    auto stream = co_await options.slurm->start(node);
    if (stream) {
      ConnectionOptions connection{.machine = node.machine.empty() ? site::own_machine() : node.machine,
                                   .agent_sha256 = *agent_sha256,
                                   .directories = options.directories};
      connection.explain = [](std::string_view, std::optional<int>) {
        return LaunchError{.kind = LaunchFailure::unreachable,
                           .reason = "the agent connected back and ended the connection without a hello"};
      };
      agent = co_await connect(std::move(*stream), nullptr, std::move(connection), kHelloPatience);
    } else {
      agent = std::unexpected(stream.error());
    }
    if (agent) co_return std::move(agent);
    if (!options.slurm->can_start_alone(node.name)) {
      if (!earlier.empty() && earlier != agent.error().reason) agent.error().reason += "; first attempt: " + earlier;
      co_return std::move(agent);
    }
    earlier = agent.error().reason;
  }
}

asio::awaitable<std::expected<std::unique_ptr<Agent>, LaunchError>> Agent::connect(wire::Stream stream,
                                                                                   std::unique_ptr<ChildProcess> child,
                                                                                   ConnectionOptions options,
                                                                                   Seconds patience) {
  std::unique_ptr<Agent> agent(new Agent());  // the constructor is private
  auto connection = std::make_unique<Connection>(std::move(stream), std::move(child), std::move(options), *agent);
  asio::co_spawn(co_await asio::this_coro::executor, serve(std::move(connection)), asio::detached);
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

}  // namespace assay::launch
