// commands: what each command of `assay` does; every function returns the process's exit code.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/files/exit_codes.h"

namespace assay::cli {

struct BundleRequest;

/// Default and maximum of the agents that are started at the same time; starting an ssh session costs about 0.2 s of
/// CPU time.
inline constexpr int kFanOut = 32, kMostFanOut = 1024;

/// What the planning commands share.
struct PlanRequest {
  std::string profile = "host";  ///< name of an embedded profile, or a file
  std::string site;              ///< file; empty: this machine
  std::string directory;         ///< working directory of agents on this machine; empty: the default
  std::vector<std::string> only;
  bool quick = false;
  bool localise = true;
  bool dry_run = false;
};

/// Settings of a run.
struct RunSettings {
  bool json = false;
  std::string deadline;       ///< "2h", "90min", "600s"; empty: none
  bool stop_on_fail = false;  ///< start no step after the first required failure
  int fan_out = kFanOut;      ///< agents that are started at the same time
  std::string patience;       ///< how long to try to reconnect to a lost node; empty: RunOptions' default
};

/// Writes the plan to `out`, or to stdout when it is empty.
int command_plan(const PlanRequest& request, const std::string& out);

/// Plan, run, judge, report and sign into `out`, with `key` or this machine's own key.
int command_accept(const PlanRequest& request, const RunSettings& settings, std::string out, const std::string& key);

/// Runs `plan_file` into the fresh directory `out`.
int command_run(const std::string& plan_file, const std::string& out, const RunSettings& settings);

/// Resumes the interrupted run in `directory`.
int command_resume(const std::string& directory, const RunSettings& settings);

/// Judges the run in `directory`, writes verdict.json, prints the table or, with `json`, the document.
int command_judge(const std::string& directory, bool json);

/// Prints the progress of the run in `directory`.
int command_status(const std::string& directory, bool json);

/// How probes are listed: for people, as JSON, or as a Markdown table.
enum class ListForm { text, json, markdown };

/// Lists the probes of this installation.
int command_list(ListForm form);

/// Prints the description of one probe.
int command_describe(const std::string& probe, bool json);

/// Packs this installation into `out`, a folder or a .tar; prints the name of every file in it. With `dry_run` nothing
/// is written.
int command_bundle(const BundleRequest& request, std::string out, bool dry_run);

}  // namespace assay::cli
