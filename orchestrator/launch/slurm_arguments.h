// slurm_arguments: the command lines of srun and sinfo, and sinfo's output. Pure.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launch/agent.h"
#include "orchestrator/site/site.h"

namespace assay::launch {

/// One start of agents by srun.
struct SrunRequest {
  std::string agent;                   ///< path of assay-node, for srun to copy, unless the site names a shared one
  std::vector<std::string> nodes;      ///< Slurm's names, at least one
  std::string directory;               ///< of these nodes; one srun has one
  std::vector<std::string> endpoints;  ///< ADDRESS:PORT where assay listens, numeric
  std::string pin;                     ///< SHA-256 of the certificate there
  bool inside = false;                 ///< inside an allocation, srun starts a step of it; else it requests whole nodes
};

/// The arguments of srun: one agent on each node, with all of its processors and memory, unbound; the step outlives a
/// failing node. Nothing in them is secret: the token goes through stdin. The error is a reason: an argument has a
/// character that is not allowed.
std::expected<std::vector<std::string>, std::string> srun_arguments(const SrunRequest& request,
                                                                    const site::SlurmOptions& options,
                                                                    const std::string& srun);

/// The arguments of sinfo for the states of `nodes`; see unusable_nodes.
std::vector<std::string> sinfo_arguments(const std::vector<std::string>& nodes);

/// From sinfo's output: nodes on which nothing can start (down, drained, not responding, …), each with Slurm's state.
std::map<std::string, std::string> unusable_nodes(std::string_view printed);

}  // namespace assay::launch
