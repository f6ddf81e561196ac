// slurm_arguments: the words of the slurm launcher. Pure: what srun and sinfo are called with, and what they said.
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
  std::string agent;               ///< our assay-node, for srun to copy, unless the site names one that the nodes share
  std::vector<std::string> nodes;  ///< Slurm's names, at least one
  std::string directory;           ///< of these nodes; one srun has one
  std::vector<std::string> homes;  ///< ADDRESS:PORT where assay listens, numeric
  std::string pin;                 ///< SHA-256 of the certificate there
  bool inside = false;             ///< inside an allocation: a step of it; else srun asks for one with whole nodes
};

/// The words of srun: one agent on each node, with all of its processors and memory, unbound; the step outlives a
/// failing node. Nothing in them is secret: the token goes through stdin. Or a reason: a word of another alphabet.
std::expected<std::vector<std::string>, std::string> srun_arguments(const SrunRequest& request,
                                                                    const site::SlurmOptions& options,
                                                                    const std::string& srun);

/// The words of sinfo for the states of `nodes`; see unusable_nodes.
std::vector<std::string> sinfo_arguments(const std::vector<std::string>& nodes);

/// From what sinfo printed: nodes on which nothing can start (down, drained, not responding, …), each with Slurm's
/// word.
std::map<std::string, std::string> unusable_nodes(std::string_view printed);

}  // namespace assay::launch
