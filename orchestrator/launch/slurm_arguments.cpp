// slurm_arguments: command lines of srun and sinfo.
#include "orchestrator/launch/slurm_arguments.h"

#include <array>
#include <sstream>

#include <fmt/ranges.h>

#include "orchestrator/files/digest.h"
#include "probes/core/text.h"

namespace assay::launch {
namespace {}  // namespace

std::expected<std::vector<std::string>, std::string> srun_arguments(const SrunRequest& request,
                                                                    const site::SlurmOptions& options,
                                                                    const std::string& srun) {
  for (const auto& node : request.nodes) {
    if (!is_node_name(node)) return std::unexpected(fmt::format("'{}' is not a node name", printable(node)));
  }
  if (!is_plain_absolute_path(request.directory))
    return std::unexpected(
        fmt::format("directory '{}' is not of the form /[A-Za-z0-9/._-]*", printable(request.directory)));
  if (!files::is_sha256(request.pin) || request.endpoints.empty() || request.nodes.empty())
    return std::unexpected("srun needs at least one node, an endpoint to connect back to and its pin");
  const std::string count = std::to_string(request.nodes.size());
  std::vector<std::string> argv = {srun,
                                   "--job-name=assay",
                                   "--nodes=" + count,
                                   "--ntasks=" + count,
                                   "--ntasks-per-node=1",
                                   fmt::format("--nodelist={}", fmt::join(request.nodes, ","))};
  // The failure of a node and the end of an agent leave the others running, and every agent reads the same token from
  // stdin. --mem=0 is all the memory of the allocation; no -c, which would imply --exact.
  argv.insert(argv.end(), {"--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--input=all", "--mem=0", "--cpu-bind=none",
                           "--mem-bind=none", "--mpi=none", "--export=NONE", "--quiet"});
  const auto add_option = [&argv](std::string_view option, const std::string& value) {
    if (!value.empty()) argv.push_back(fmt::format("--{}={}", option, value));
  };
  if (request.inside) {
    argv.emplace_back("--overlap");
  } else {
    argv.emplace_back("--exclusive");
    const std::array<std::pair<const char*, const std::string*>, 6> words = {{{"partition", &options.partition},
                                                                              {"account", &options.account},
                                                                              {"qos", &options.qos},
                                                                              {"reservation", &options.reservation},
                                                                              {"constraint", &options.constraint},
                                                                              {"time", &options.time}}};
    for (const auto& [option, value] : words) {
      if (!has_only(*value, "_.&|:-") || value->starts_with('-'))
        return std::unexpected(
            fmt::format("slurm.{} '{}' has a character that is not allowed", option, printable(*value)));
      add_option(option, *value);
    }
  }
  if (!has_only(options.gres, "_:,.-"))
    return std::unexpected(fmt::format("slurm.gres '{}' has a character that is not allowed", printable(options.gres)));
  add_option("gres", options.gres);
  if (options.gpus_per_node > 0) add_option("gpus-per-node", std::to_string(options.gpus_per_node));
  const bool shared = !options.agent.empty();
  if (shared ? !is_plain_absolute_path(options.agent) : !is_plain_absolute_path(options.bcast_directory))
    return std::unexpected("slurm.agent or slurm.bcast_directory is not an absolute path");
  // The slash makes it a directory: srun then names each copy after job, step and node.
  if (!shared) add_option("bcast", options.bcast_directory + "/");
  argv.insert(argv.end(),
              {"--", shared ? options.agent : request.agent, "--directory", request.directory, "--pin", request.pin});
  for (const auto& endpoint : request.endpoints) argv.insert(argv.end(), {"--dial", endpoint});
  argv.insert(argv.end(), {"--patience", std::to_string(static_cast<int>(options.wait.count) + 1)});
  if (!shared) argv.emplace_back("--remove-self");
  return argv;
}

std::vector<std::string> sinfo_arguments(const std::vector<std::string>& nodes) {
  return {"--noheader", "--Node", "--format=%N %T", fmt::format("--nodes={}", fmt::join(nodes, ","))};
}

std::map<std::string, std::string> unusable_nodes(std::string_view printed) {
  std::map<std::string, std::string> found;
  std::istringstream lines{std::string(printed)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string node, state;
    if (!(words >> node >> state)) continue;
    // A star: the node does not respond to slurmctld. A draining node still runs its jobs, which may include this one.
    bool unusable = state.ends_with('*');
    for (const char* word : {"down", "drained", "fail", "unknown"}) unusable = unusable || state.starts_with(word);
    if (unusable) found[node] = printable(state);
  }
  return found;
}

}  // namespace assay::launch
