// commands: what each command of `assay` does; every function returns the process's exit code.
#pragma once

#include <string>
#include <vector>

namespace assay::cli {

struct BundleRequest;

/// Exit codes of every command: accepted, rejected, bad usage or input, incomplete, verification refused.
inline constexpr int kExitAccepted = 0, kExitRejected = 1, kExitBadInput = 2, kExitIncomplete = 3;

/// Agents that are started at the same time: an ssh session costs about 0.2 s of CPU; and the most that may be asked
/// for.
inline constexpr int kFanOut = 32, kMostFanOut = 1024;

/// What the planning commands share.
struct PlanRequest {
  std::string profile = "host";  ///< name of an embedded profile, or a file
  std::string site;              ///< file; empty: this machine
  std::string directory;         ///< on this machine's own node: where agents work; empty: the default
  std::vector<std::string> only;
  bool quick = false;
  bool localise = true;
  bool dry_run = false;
};

/// How a plan is carried out, beside where.
struct RunWish {
  bool json = false;
  std::string deadline;       ///< as people write durations: "2h", "90min", "600s"; empty: none
  bool stop_on_fail = false;  ///< no step starts any more once a required cell has failed
  int fan_out = kFanOut;      ///< agents that are started at the same time
  std::string patience;       ///< how long a lost node is tried again; empty: RunOptions' own
};

/// Writes the plan to `out`, or to stdout when it is empty.
int command_plan(const PlanRequest& request, const std::string& out);

/// Plan, run, judge, report and sign into `out`, with `key` or this machine's own key.
int command_accept(const PlanRequest& request, const RunWish& wish, std::string out, const std::string& key);

/// Runs `plan_file` into the fresh directory `out`.
int command_run(const std::string& plan_file, const std::string& out, const RunWish& wish);

/// Goes on with the interrupted run in `directory`.
int command_resume(const std::string& directory, const RunWish& wish);

/// Judges the run in `directory`, writes verdict.json, prints the table or, with `json`, the document.
int command_judge(const std::string& directory, bool json);

/// Says how far the run in `directory` is.
int command_status(const std::string& directory, bool json);

/// How probes are listed: for people, as JSON, or as the table of the README.
enum class ListForm { text, json, markdown };

/// Lists the probes at hand.
int command_list(ListForm form);

/// Tells everything of one probe.
int command_describe(const std::string& probe, bool json);

/// Packs this installation into `out`, a folder or a .tar; prints the name of every file in it. With `dry_run` nothing
/// is written.
int command_bundle(const BundleRequest& request, std::string out, bool dry_run);

}  // namespace assay::cli
