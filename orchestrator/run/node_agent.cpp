// node_agent: starts agents and restarts lost ones with growing pauses.
#include "orchestrator/run/node_agent.h"

#include <algorithm>
#include <chrono>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/wire/protocol.h"

namespace assay::run {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds kFirstPause{1};     // before a lost node is tried again; doubled each time
constexpr std::chrono::seconds kLongestPause{16};  // so that a node that is back is found soon
constexpr int kMostRestarts = 1;                   // a node that is lost twice is a finding

asio::awaitable<void> close_agent(std::unique_ptr<launch::Agent> agent) { co_await agent->close(); }

}  // namespace

AgentStarter::AgentStarter(asio::io_context& io, const site::Site& site, const RunOptions& options, Progress& progress)
    : io_(io),
      site_(site),
      options_(options),
      progress_(progress),
      tokens_(io, static_cast<std::size_t>(options.starts_at_once)) {}

void AgentStarter::use_slurm(std::vector<std::string> nodes) {
  // A site has Slurm nodes of one kind only. Without an agent for it none starts, which each node's error says.
  const std::string& machine = nodes.empty() ? std::string() : site_.node(nodes.front())->machine;
  launch::SlurmTools tools{.agent = launch::agent_for({.agent = options_.agent, .agents = options_.agents}, machine)};
  slurm_ = std::make_unique<launch::SlurmLauncher>(
      io_.get_executor(), site_, std::move(nodes), std::move(tools),
      [this](const std::string& who, const std::string& what) { progress_.node(who, what); });
}

asio::awaitable<std::expected<std::unique_ptr<launch::Agent>, launch::LaunchError>> AgentStarter::start(
    const site::Node& node) {
  boost::system::error_code closed;
  co_await tokens_.async_send({}, asio::redirect_error(asio::use_awaitable, closed));
  progress_.node(node.name, "starting the agent");
  // g++ 12 destroys a braced temporary in a co_await twice; delete the name with g++ 13.
  launch::LaunchOptions launch{.agent = options_.agent, .agents = options_.agents, .slurm = slurm_.get()};
  if (const auto asked = directories_.find(node.name); asked != directories_.end()) {
    launch.directories = asked->second;
    launch.directories.resize(std::min(launch.directories.size(), wire::kMostDirectories));
  }
  std::expected<std::unique_ptr<launch::Agent>, launch::LaunchError> agent;
  try {
    agent = co_await launch::Agent::start(node, site_, launch);
  } catch (const std::exception& error) {  // of one node: it ends no other node's run
    agent = std::unexpected(
        launch::LaunchError{launch::LaunchFailure::lost, std::string("unexpected error: ") + error.what()});
  }
  tokens_.try_receive([](const boost::system::error_code&) {});
  co_return std::move(agent);
}

asio::awaitable<void> AgentStarter::close() {
  if (slurm_) co_await slurm_->close();
}

NodeAgent::NodeAgent(const site::Node& node, AgentStarter& starter, RunJournal& journal)
    : node_(&node), starter_(&starter), journal_(&journal) {}

bool NodeAgent::may_restart() const { return starts_ <= kMostRestarts; }

asio::awaitable<void> NodeAgent::start(const bool& stopping) {
  using Clock = std::chrono::steady_clock;
  const bool again = ++starts_ > 1;
  const auto limit = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(again ? starter_->patience().count : 0));
  std::chrono::seconds pause = kFirstPause;
  boost::system::error_code woken;
  while (!stopping) {
    const bool last = Clock::now() + pause >= limit;
    if (co_await try_once(last) || last) break;
    asio::steady_timer timer(starter_->io(), pause);
    pause = std::min(2 * pause, kLongestPause);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

/// Returns whether the agent is there. The error of the last try is journalled.
asio::awaitable<bool> NodeAgent::try_once(bool last) {
  auto agent = co_await starter_->start(*node_);
  if (!agent) {
    if (last) journal_->node_down(node_->name, agent.error().reason);
    co_return false;
  }
  agent_ = std::move(*agent);
  journal_->node_up(node_->name, agent_->facts());
  co_return true;
}

void NodeAgent::lose(const std::string& reason) {
  agent_.reset();
  journal_->node_down(node_->name, reason);
}

asio::awaitable<void> NodeAgent::close() { return close_agent(std::move(agent_)); }

}  // namespace assay::run
