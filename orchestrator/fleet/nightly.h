// nightly: the commands of nightly sweeps: `assay sweep`, `verdict`, `drain` and `install`.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/cli/options.h"

namespace assay::cli {

/// Of `assay sweep`.
struct SweepArguments {
  std::string profile = "nightly-5m", site, directory, nodes, out;
  std::string budget = "5min";     ///< of one node
  std::string until;               ///< "06:00", local time
  std::string deadline;            ///< "4h", from now
  std::string patience = "30min";  ///< with slurm: stop when no node was begun for so long
  std::string stagger = "0s";
  std::string state;       ///< folder of the ledger; empty: the user's state directory
  std::string drift;       ///< drift.json: watched units, and units to be tested again
  std::string history;     ///< database that the sweep is added to; empty: none
  std::string night, now;  ///< in place of the clock's
  std::string worker, collect, node, pair;
  std::string board;  ///< page that follows the sweep; empty: none
  int rotate = 1, max_age = 5, fan_out = kFanOut;
  bool slurm = false, prepare = false, retests = false, dry_run = false, quiet = false, json = false;
};
int command_sweep(const SweepArguments& given);

/// Of `assay verdict`.
struct VerdictArguments {
  std::string file;  ///< to read; empty: sweep::kVerdictPath
  std::string node;  ///< empty: any
  std::string drift, history, policy, out;
  bool publish = false, json = false;
};
int command_verdict(const VerdictArguments& given);

/// Of `assay drain`.
struct DrainArguments {
  std::string action;  ///< plan, apply or release
  std::string drift, policy, site, journal, actor = "slurm", program, history, now;
  std::vector<std::string> sweeps;
  bool apply = false, json = false;
};
int command_drain(const DrainArguments& given);

/// Of `assay install`.
struct InstallArguments {
  std::string what;  ///< timer, slurm, cron or npd
  std::string out, site = "/etc/assay/site.json", profile = "nightly-5m", budget = "5min", at = "01:00",
                   until = "06:00";
  std::string folder = "/var/lib/assay", image = "assay:0.1.0", kube_namespace = "assay",
              gpu_resource = "nvidia.com/gpu";
  std::string history;  ///< database of nights; empty: history.db in the folder
  int gpus = 0, nodes = 1;
};
int command_install(const InstallArguments& given);

/// Arguments of each of them.
struct NightlyArguments {
  SweepArguments sweep;
  VerdictArguments verdict;
  DrainArguments drain;
  InstallArguments install;
};
/// Adds the four commands.
void add_nightly(Command& app, NightlyArguments& given, Action& action);

}  // namespace assay::cli
