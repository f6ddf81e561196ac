// worker_jobs: words for Slurm.
#include "orchestrator/sweep/worker_jobs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <sstream>

#include <fmt/ranges.h>

#include "probes/core/text.h"

namespace assay::sweep {
namespace {

constexpr int kNice = 10000;
constexpr std::size_t kNodesOfJob = 4;  // due nodes for each job that waits or runs

/// Local time as Slurm reads it, "2026-01-05T06:00:00".
std::string local_text(std::chrono::system_clock::time_point moment) {
  const std::time_t time = std::chrono::system_clock::to_time_t(moment);
  std::tm local{};
  char text[32] = {};
  if (::localtime_r(&time, &local) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local) == 0)
    return "";
  return text;
}

}  // namespace

std::size_t jobs_for(std::size_t due) {
  return std::clamp<std::size_t>((due + kNodesOfJob - 1) / kNodesOfJob, 1, kMostJobs);
}

std::expected<std::vector<std::string>, std::string> sbatch_arguments(const WorkerJob& job,
                                                                      const site::SlurmOptions& options) {
  if (!is_plain_absolute_path(job.script) || !is_plain_absolute_path(job.log.substr(0, job.log.find('%'))))
    return std::unexpected(fmt::format("the folder '{}' is not of the form /[A-Za-z0-9/._-]*", printable(job.script)));
  std::vector<std::string> argv = {
      "--parsable",
      std::string("--job-name=") + kJobName,
      "--exclusive",
      "--mem=0",
      "--no-requeue",
      fmt::format("--nice={}", kNice),
      fmt::format("--time={}", static_cast<int>(std::ceil((job.budget_s + kJobExtra_s) / 60))),
      "--input=/dev/null",
      "--output=" + job.log,
      "--export=PATH,HOME,SLURM_CONF"};  // the last one for the srun of a pair
  const std::string nodes = job.pair ? "2" : "1";
  argv.insert(argv.end(), {"--nodes=" + nodes, "--ntasks=" + nodes, "--ntasks-per-node=1"});
  if (job.until) argv.push_back("--deadline=" + local_text(*job.until));
  const std::array<std::pair<const char*, const std::string*>, 6> words = {{{"partition", &options.partition},
                                                                            {"account", &options.account},
                                                                            {"qos", &options.qos},
                                                                            {"reservation", &options.reservation},
                                                                            {"constraint", &options.constraint},
                                                                            {"gres", &options.gres}}};
  for (const auto& [option, value] : words) {
    if (!has_only(*value, "_.&|:,-") || value->starts_with('-'))
      return std::unexpected(
          fmt::format("slurm.{} '{}' has a character that is not allowed", option, printable(*value)));
    if (!value->empty()) argv.push_back(fmt::format("--{}={}", option, *value));
  }
  if (job.pair && !pair_named(name_of(*job.pair)))
    return std::unexpected(fmt::format("'{}' does not name two nodes", printable(name_of(*job.pair))));
  for (const auto& node : job.exclude) {
    if (!is_node_name(node)) return std::unexpected(fmt::format("'{}' is not a node name", printable(node)));
  }
  if (job.pair) {
    argv.push_back(fmt::format("--nodelist={},{}", job.pair->first, job.pair->second));
  } else if (!job.target.empty()) {
    if (!is_node_name(job.target))
      return std::unexpected(fmt::format("'{}' is not a node name", printable(job.target)));
    argv.push_back("--nodelist=" + job.target);
  } else if (!job.exclude.empty()) {
    argv.push_back(fmt::format("--exclude={}", fmt::join(job.exclude, ",")));
  }
  argv.push_back(job.script);
  if (job.pair) argv.insert(argv.end(), {"--pair", job.pair->first + "," + job.pair->second});
  return argv;
}

std::expected<std::string, std::string> worker_script(const std::string& assay, const std::string& folder) {
  for (const auto& path : {assay, folder}) {
    if (!is_plain_absolute_path(path))
      return std::unexpected(fmt::format("the path '{}' is not of the form /[A-Za-z0-9/._-]*", printable(path)));
  }
  return fmt::format(
      "#!/bin/sh\n# One node of a nightly sweep, whichever Slurm gives it, or a pair.\nexec {} sweep --worker {} "
      "\"$@\"\n",
      assay, folder);
}

std::optional<std::string> job_id_in(std::string_view printed) {
  const auto end = printed.find_first_not_of("0123456789");
  const std::string_view id = printed.substr(0, end);
  if (id.empty() || id.size() > 12) return std::nullopt;
  if (end != std::string_view::npos && printed[end] != ';' && printed[end] != '\n') return std::nullopt;
  return std::string(id);
}

std::vector<std::string> squeue_arguments() {
  return {"--noheader", "--me", std::string("--name=") + kJobName, "--format=%i %T"};
}

std::map<std::string, std::string> jobs_in(std::string_view printed) {
  std::map<std::string, std::string> jobs;
  std::istringstream lines{std::string(printed)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, state;
    if (words >> id >> state && job_id_in(id)) jobs[id] = printable(state);
  }
  return jobs;
}

}  // namespace assay::sweep
