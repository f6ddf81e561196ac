// kubernetes: the command line of kubectl, the meaning of its failures, and the manifest of agent pods. Pure.
#pragma once

#include <array>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launch/agent.h"
#include "orchestrator/site/site.h"
#include "probes/core/words.h"

namespace assay::launch {

/// The arguments of kubectl: argv[0] = `kubectl`, exec -i into the node's pod, `sh -c script` there. The error is a
/// reason: a name with a character that Kubernetes does not allow.
std::expected<std::vector<std::string>, std::string> kubectl_arguments(const site::Node& node,
                                                                       const std::string& kubectl,
                                                                       const std::string& script);

/// Why kubectl, or the script in the pod, ended with `exit_code` before the agent's hello; `log` is its stderr. No
/// exit_code: it was killed.
LaunchError kubectl_failure(std::string_view log, std::optional<int> exit_code);

/// What holds the agent pods: a pod on every node, or as many as a Job has nodes, which a queue can admit.
enum class Workload { daemon_set, job, job_set };

constexpr auto words_of(Workload) {
  using enum Workload;
  return std::to_array<Word<Workload>>({{daemon_set, "daemonset"}, {job, "job"}, {job_set, "jobset"}});
}

struct AgentPods {
  std::string image;  ///< needs sh, sha256sum, head and cut
  std::string kube_namespace = "default";
  std::string directory = "/var/tmp/assay";  ///< of the node, mounted at the same path
  Workload workload = Workload::daemon_set;
  int nodes = 0;  ///< of a Job or JobSet: pods, each on a node of its own
  int gpus = 0;   ///< that each pod of a Job or JobSet asks for; 0: none
  std::string gpu_resource = "nvidia.com/gpu";
  std::string queue;  ///< of Kueue, which starts the pods; empty: none
};

/// A manifest of agent pods, which share the node's network and host name, mount its directory and sleep until kubectl
/// execs into them; those of a Job or JobSet end after a day. A JSON document, which kubectl reads as it reads YAML.
/// The error is a reason: a name with a character that is not allowed, a number of nodes that the workload does not
/// take.
std::expected<std::string, std::string> kubernetes_manifest(const AgentPods& pods);

}  // namespace assay::launch
