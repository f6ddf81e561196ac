// install_files: files that hand sweeps to a scheduler: systemd units, scripts for Slurm, manifests for Kubernetes.
// Pure.
#pragma once

#include <expected>
#include <map>
#include <string>

#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::sweep {

/// Where sweeps are installed. cron: a CronJob of Kubernetes; npd: a plugin of node-problem-detector.
enum class InstallKind { timer, slurm, cron, npd };

constexpr auto words_of(InstallKind) { return names_as_words<InstallKind>(); }

/// Content of the files.
struct InstallRequest {
  std::string assay;                  ///< absolute path of the program
  std::string site;                   ///< absolute path of the site file
  std::string profile;                ///< name, or absolute path
  std::string budget;                 ///< as written, "5min"
  double budget_s = 0;                ///< the same in seconds
  std::string at, until;              ///< "01:00", "06:00"
  std::string folder;                 ///< absolute: ledger and sweeps; shared by the nodes for jobs
  std::string image, kube_namespace;  ///< cron
  int gpus = 0;                       ///< cron: of each node; a pod takes all of them
  int nodes = 1;                      ///< cron: pods of one night
  /// cron: by which GPUs are asked for, "amd.com/gpu".
  std::string gpu_resource = "nvidia.com/gpu";
  std::string history = {};  ///< absolute: the database, on a local disk; empty: history.db in `folder`
};

/// Path of the database of `request`.
std::string history_of(const InstallRequest& request);

/// Text by file name. Errors: a path, name or time with a character that is not allowed.
std::expected<std::map<std::string, std::string>, InputError> install_files(InstallKind kind,
                                                                            const InstallRequest& request);

}  // namespace assay::sweep
