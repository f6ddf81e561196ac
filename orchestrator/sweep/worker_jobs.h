// worker_jobs: the jobs that visit nodes through Slurm: command lines of sbatch, squeue and scancel, and their output.
// Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/site/site.h"
#include "orchestrator/sweep/pairs.h"

namespace assay::sweep {

/// Name of the jobs, by which squeue finds them.
inline constexpr const char* kJobName = "assay-sweep";
/// Besides the budget: start of the worker, its checks, and the end of its probes.
inline constexpr double kJobExtra_s = 120;
/// Jobs at most that wait or run at the same time.
inline constexpr std::size_t kMostJobs = 200;

/// One job that visits one node, whichever the scheduler gives it, or a pair of nodes.
struct WorkerJob {
  std::string script;                  ///< path of worker.sh on a file system that all nodes share
  std::string log;                     ///< path of the output, with %j
  std::vector<std::string> exclude;    ///< nodes that are not to be visited
  std::string target = {};             ///< the one node wanted; empty: any
  std::optional<NightPair> pair = {};  ///< in place of one node: both of these at the same time
  double budget_s = 0;
  std::optional<std::chrono::system_clock::time_point> until;  ///< the job is over by then, or does not start
};

/// How many jobs wait or run at the same time for `due` nodes: a quarter of them, at least 1 and at most kMostJobs.
std::size_t jobs_for(std::size_t due);

/// Words after "sbatch": one whole node of its own, or the two of a pair, without requeue, at the lowest priority.
/// Errors: a path or an option of the site with a character that is not allowed.
std::expected<std::vector<std::string>, std::string> sbatch_arguments(const WorkerJob& job,
                                                                      const site::SlurmOptions& options);

/// The script of the job: `assay` with the sweep's folder; of a pair the pair comes as words behind it. Errors: as
/// above.
std::expected<std::string, std::string> worker_script(const std::string& assay, const std::string& folder);

/// The number that `sbatch --parsable` printed: "4711" or "4711;cluster"; nothing for another text.
std::optional<std::string> job_id_in(std::string_view printed);

/// Words after "squeue" for this user's jobs of kJobName.
std::vector<std::string> squeue_arguments();

/// State by job, from squeue's output for those words. Lines that are not of this form are passed over.
std::map<std::string, std::string> jobs_in(std::string_view printed);

}  // namespace assay::sweep
