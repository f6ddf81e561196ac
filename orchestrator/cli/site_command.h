// site_command: what `assay site` was asked for.
#pragma once

#include <string>

#include "orchestrator/site/sources.h"

namespace assay::cli {

/// Where a site document is made from.
struct SiteSource {
  std::string from;  ///< hostfile | ssh-config | slurm | kubectl | lldp | ibnetdiscover
  std::string file;  ///< of the first two and the last; of lldp a folder
  site::SourceOptions options;
  std::string kube_namespace;          ///< of kubectl; empty: that of its context
  std::string selector = "app=assay";  ///< of kubectl: which pods
  std::string plane;  ///< of lldp and ibnetdiscover: where ports go that the site does not have; empty: nowhere
};

/// Prints a site document; nothing is reached, but Slurm or Kubernetes is asked what it has.
int command_site_from(const SiteSource& source);

/// Prints the site of the file `site_file` with the leaves, switch ports and spines that LLDP or ibnetdiscover tell.
/// Exit code 1, the findings on standard error and no document when the site says otherwise.
int command_site_cables(const SiteSource& source, const std::string& site_file);

/// Reaches every node of `site` (a file; empty: this machine), at most `fan_out` at once, and prints what differs
/// between them. Exit code 0: all reached and alike; 1: something differs; 3: nothing does among those reached, and
/// some were not.
int command_site_check(const std::string& site, int fan_out, bool json);

/// Prints a batch script that accepts `site`, a file with nodes of launcher slurm, against `profile`.
int command_site_sbatch(const std::string& site, const std::string& profile);

/// Prints a Kubernetes DaemonSet of agent pods.
int command_site_manifest(const std::string& image, const std::string& kube_namespace, const std::string& directory);

}  // namespace assay::cli
