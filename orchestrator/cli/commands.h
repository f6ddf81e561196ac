// commands: the commands of `assay`; every function returns the process's exit code.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/files/exit_codes.h"

namespace assay::cli {

struct BundleRequest;
struct KeyRequest;

/// Default and maximum of the agents that are started at the same time; starting an ssh session costs about 0.2 s of
/// CPU time.
inline constexpr int kFanOut = 32, kMostFanOut = 1024;

/// Common options of the planning commands.
struct PlanRequest {
  std::string profile = "host";  ///< name of an embedded profile, or a file
  std::string site;              ///< file; empty: this machine
  std::string directory;         ///< working directory of agents on this machine; empty: the default
  std::vector<std::string> only;
  bool quick = false;
  bool localise = true;
  bool allow_missing = false;   ///< also plan where a probe of the profile is unknown
  bool allow_settings = false;  ///< plan also steps that change settings of machines and restore them
  bool dry_run = false;
  std::string nodes;      ///< host list; empty: all of the site
  std::string continues;  ///< directory of the run whose plan this one continues; empty: none
  std::string challenge;  ///< 64 hexadecimal digits of the receiver's choice; empty: none
  std::string risk;       ///< that vendor and buyer agreed on, as plan::read_agreed_risk takes it; empty: nothing
  std::string stability;  ///< likewise, of hours under load, as plan::read_agreed_stability takes it
  std::string healthy;    ///< assumed fleet without fault, "4,0.5,0.5"; empty: HealthyFleet's defaults
};

/// Settings of a run.
struct RunSettings {
  bool json = false;
  std::string deadline;         ///< "2h", "90min", "600s"; empty: none
  bool allow_settings = false;  ///< of `run`: a plan that changes settings of machines may be run
  bool stop_on_fail = false;    ///< start no step after the first required failure
  int fan_out = kFanOut;        ///< agents that are started at the same time
  bool all = false;             ///< a line for each cell of the verdict, instead of one for each requirement
  std::string board;            ///< page that follows the run; empty: none
  std::string patience;         ///< how long to try to reconnect to a lost node; empty: RunOptions' default
};

/// Writes the plan to `out`, or to stdout when it is empty. With `json`, which needs `out` or a dry run, the steps are
/// printed as a table in JSON.
int command_plan(const PlanRequest& request, const std::string& out, bool json);

/// Plan, run, judge, report and sign into `out`, with `key` or this machine's own key, which is opened before the first
/// step. An interrupted run is judged and not signed.
int command_accept(const PlanRequest& request, const RunSettings& settings, std::string out, KeyRequest key);

/// Runs `plan_file` into the fresh directory `out`; reports and signs where a key is wanted.
int command_run(const std::string& plan_file, const std::string& out, const RunSettings& settings,
                const KeyRequest& key);

/// Resumes the interrupted run in `directory`, likewise. A dossier of the run as it was before is moved aside.
int command_resume(const std::string& directory, const RunSettings& settings, const KeyRequest& key);

/// Starts every probe for at most two seconds in a new folder under `directory` (empty: the system's temporary one),
/// and prints which are ready and the missing parts of others; exit code 1 if one fails in another way.
int command_doctor(const std::string& directory, bool json);

/// Judges the run in `directory`, writes verdict.json, prints the table (with `all` of every cell) or, with `json`, the
/// document.
int command_judge(const std::string& directory, bool json, bool all);

/// Prints the progress of the run in `directory`.
int command_status(const std::string& directory, bool json);

/// How probes are listed: for people, as JSON, or as a Markdown table.
enum class ListForm { text, json, markdown };

/// Lists the probes of this installation.
int command_list(ListForm form);

/// Lists the built-in profiles.
int command_list_profiles(bool json);

/// Prints the description of one probe, or of a profile: a built-in one or a file.
int command_describe(const std::string& name, bool json);

/// Packs this installation into `out`, a folder or a .tar; prints the name of every file in it. With `dry_run` nothing
/// is written; with `json` the list is a table in JSON.
int command_bundle(const BundleRequest& request, std::string out, bool dry_run, bool json);

}  // namespace assay::cli
