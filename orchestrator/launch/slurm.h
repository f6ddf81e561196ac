// slurm: starts agents through srun; each agent connects back to the run over TLS.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "orchestrator/launch/agent.h"
#include "orchestrator/wire/stream.h"

namespace assay::launch {

/// Programs of the slurm launcher; they are looked up in PATH unless they have a slash.
struct SlurmTools {
  std::string agent;  ///< path of our own assay-node
  std::string srun = "srun";
  std::string sinfo = "sinfo";
};

/// Starts the agents of a run through Slurm. The first start of any node starts all of `nodes` with one srun (one for
/// each directory, where the site has several); a node that has to be started again gets an srun of its own. srun's
/// exit code says nothing about agents: an agent is up when it has connected back with the token of its srun, once,
/// under a node name of this srun. Two agents that claim one name are both refused before either is used.
class SlurmLauncher {
 public:
  /// A warning for people that ends nothing: (node or "srun", event).
  using Remark = std::function<void(const std::string& who, const std::string& what)>;

  /// `site` outlives it. `nodes`: those that this run needs.
  SlurmLauncher(const boost::asio::any_io_executor& executor, const site::Site& site, std::vector<std::string> nodes,
                SlurmTools tools, Remark remark);
  ~SlurmLauncher();
  SlurmLauncher(const SlurmLauncher&) = delete;
  SlurmLauncher& operator=(const SlurmLauncher&) = delete;

  /// The stream to the agent of `node`, once it has connected back and been accepted. Waits until every agent of its
  /// srun is up, srun has ended, a minute has passed since the first agent, or the site's wait_s is over: an srun that
  /// fails ends its agents, so none of them is used before.
  boost::asio::awaitable<std::expected<wire::Stream, LaunchError>> start(const site::Node& node);
  /// Whether another start of `node` makes sense after a failed one: its srun had several nodes and is over.
  [[nodiscard]] bool can_start_alone(const std::string& node) const;
  /// Gives each srun 10 s to end after its last agent has ended, then ends it.
  boost::asio::awaitable<void> close();

 private:
  struct Batch;
  struct Job;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::launch
