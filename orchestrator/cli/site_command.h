// site_command: `assay site`: writing site files and comparing nodes.
#pragma once

#include <string>

#include "orchestrator/launch/kubernetes.h"
#include "orchestrator/site/sources.h"

namespace assay::cli {

/// Where a site document is made from.
struct SiteSource {
  std::string from;  ///< hostfile | ssh-config | slurm | kubectl | lldp | ibnetdiscover
  std::string file;  ///< of the first two and the last; of lldp a folder
  site::SourceOptions options;
  std::string kube_namespace;          ///< of kubectl; empty: that of its context
  std::string selector = "app=assay";  ///< of kubectl: label selector of the pods
  std::string directory;               ///< of the agents on each node; empty: the default
  std::string plane;  ///< of lldp and ibnetdiscover: plane of ports that the site does not list; empty: omit
};

/// Prints a site document. No node is contacted; Slurm or Kubernetes is queried for its nodes.
int command_site_from(SiteSource source);

/// Prints the site of the file `site_file` with the leaves, switch ports and spines that LLDP or ibnetdiscover report.
/// Where the site contradicts them: exit code 1, the findings on standard error and no document.
int command_site_cables(const SiteSource& source, const std::string& site_file);

/// Connects to every node of `site` (a file; empty: this machine), at most `fan_out` at once, and prints the
/// differences between them. Exit code 0: all reached, no differences; 1: differences; 3: no differences, but some
/// nodes were not reached.
int command_site_check(const std::string& site, int fan_out, bool json);

/// Prints a batch script that accepts `site`, a file with nodes of launcher slurm, against `profile`.
int command_site_sbatch(const std::string& site, const std::string& profile);

/// Prints a Kubernetes manifest of agent pods.
int command_site_manifest(const launch::AgentPods& pods);

}  // namespace assay::cli
