// kubernetes: command line of kubectl, its error messages, the manifest.
#include "orchestrator/launch/kubernetes.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/ssh.h"
#include "probes/core/text.h"

namespace assay::launch {
namespace {

using nlohmann::ordered_json;

constexpr int kLongestJob_s = 24 * 3600;

bool is_lower_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// The characters of RFC 1123, which Kubernetes requires, and of a context, which kubectl leaves open. They are checked
/// again here because no name may be taken for an option.
bool is_name(std::string_view text, std::string_view punctuation) {
  return !text.empty() && is_lower_alphanumeric(text.front()) && is_lower_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_lower_alphanumeric(c) || punctuation.contains(c); });
}
bool is_context(std::string_view text) {
  return text.front() != '-' && std::ranges::all_of(text, [](char c) {
           return is_lower_alphanumeric(c) || (c >= 'A' && c <= 'Z') || std::string_view("@.:/_-").contains(c);
         });
}

std::optional<std::string> reason_against(const AgentPods& pods) {
  const auto is_image = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
      return is_lower_alphanumeric(c) || (c >= 'A' && c <= 'Z') || std::string_view(".:/@_-").contains(c);
    });
  };
  if (!is_image(pods.image)) return fmt::format("image '{}' is not a valid image name", printable(pods.image));
  if (!is_name(pods.kube_namespace, "-"))
    return fmt::format("namespace '{}' is not a valid namespace name", printable(pods.kube_namespace));
  if (!pods.queue.empty() && !is_name(pods.queue, ".-"))
    return fmt::format("queue '{}' is not a valid queue name", printable(pods.queue));
  if (!is_name(pods.gpu_resource, "./-"))
    return fmt::format("resource '{}' is not a valid resource name", printable(pods.gpu_resource));
  if (pods.workload == Workload::daemon_set && (pods.nodes != 0 || pods.gpus != 0 || !pods.queue.empty()))
    return "a DaemonSet has a pod on every node: nodes, gpus and queue are of job and jobset";
  if (pods.workload != Workload::daemon_set && pods.nodes < 1)
    return fmt::format("a {} needs its number of nodes", word_of(pods.workload));
  return std::nullopt;
}

/// A DaemonSet is on every node. The pods of a Job choose their nodes: only nodes that assay drained, and those kept
/// for the GPUs that they ask for, are theirs beside the nodes without taints.
ordered_json agent_pod(const AgentPods& pods) {
  ordered_json tolerations = ordered_json::array({{{"operator", "Exists"}}});
  if (pods.workload != Workload::daemon_set) tolerations[0]["key"] = "assay.dev/drift";
  if (pods.gpus > 0) tolerations.push_back({{"key", pods.gpu_resource}, {"operator", "Exists"}});
  ordered_json container = {
      {"name", "assay"},
      {"image", pods.image},
      {"command", {"/bin/sh", "-c", "trap \"exit 0\" TERM; while :; do sleep 3600 & wait $!; done"}},
      {"securityContext", {{"privileged", true}}},
      {"volumeMounts", ordered_json::array({{{"name", "work"}, {"mountPath", pods.directory}}})}};
  if (pods.gpus > 0) container["resources"] = {{"limits", {{pods.gpu_resource, pods.gpus}}}};
  return {
      {"hostNetwork", true},  // measures the node's own links; the host name identifies the node
      {"hostPID", false},
      {"dnsPolicy", "ClusterFirstWithHostNet"},
      {"tolerations", tolerations},
      {"containers", ordered_json::array({container})},
      {"volumes", ordered_json::array(
                      {{{"name", "work"}, {"hostPath", {{"path", pods.directory}, {"type", "DirectoryOrCreate"}}}}})}};
}

/// The spec of an Indexed Job: a pod for each node, no two on one, none begun again.
ordered_json agent_job(const AgentPods& pods, const ordered_json& labels, ordered_json pod) {
  const ordered_json others = {{"labelSelector", {{"matchLabels", labels}}}, {"topologyKey", "kubernetes.io/hostname"}};
  pod["affinity"] = {
      {"podAntiAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", ordered_json::array({others})}}}};
  pod["restartPolicy"] = "Never";
  return {{"completions", pods.nodes},
          {"parallelism", pods.nodes},
          {"completionMode", "Indexed"},
          {"backoffLimit", 0},
          {"activeDeadlineSeconds", kLongestJob_s},
          {"template", {{"metadata", {{"labels", labels}}}, {"spec", std::move(pod)}}}};
}

}  // namespace

std::expected<std::vector<std::string>, std::string> kubectl_arguments(const site::Node& node,
                                                                       const std::string& kubectl,
                                                                       const std::string& script) {
  if (!is_name(node.pod, ".-"))
    return std::unexpected(fmt::format("pod '{}' is not a valid pod name", printable(node.pod)));
  std::vector<std::string> argv = {kubectl};
  if (!node.context.empty()) {
    if (!is_context(node.context))
      return std::unexpected(fmt::format("context '{}' has a character that is not allowed", printable(node.context)));
    argv.push_back("--context=" + node.context);
  }
  if (!node.kube_namespace.empty()) {
    if (!is_name(node.kube_namespace, "-"))
      return std::unexpected(
          fmt::format("namespace '{}' is not a valid namespace name", printable(node.kube_namespace)));
    argv.push_back("--namespace=" + node.kube_namespace);
  }
  argv.insert(argv.end(), {"exec", "-i", node.pod});
  if (!node.container.empty()) {
    if (!is_name(node.container, "-"))
      return std::unexpected(fmt::format("container '{}' is not a valid container name", printable(node.container)));
    argv.push_back("--container=" + node.container);
  }
  argv.insert(argv.end(), {"--", "/bin/sh", "-c", script});
  return argv;
}

LaunchError kubectl_failure(std::string_view log, std::optional<int> exit_code) {
  const std::string line = last_line(log);
  for (const char* words : {"(NotFound)", "not found in pod", "is not valid for pod"}) {
    if (log.contains(words)) return {LaunchFailure::unreachable, line};
  }
  if (log.contains("(Forbidden)") || log.contains("Unauthorized") || log.contains("(Unauthorized)"))
    return {LaunchFailure::refused, "login refused: " + line};
  for (const char* words : {"Unable to connect to the server", "connection refused", "The connection to the server",
                            "i/o timeout", "error dialing backend", "in a completed pod"}) {
    if (log.contains(words)) return {LaunchFailure::unreachable, line};
  }
  if (!exit_code) return {LaunchFailure::unreachable, line.empty() ? "no answer" : line};
  return {LaunchFailure::refused,
          line.empty() ? fmt::format("kubectl, or the agent in the pod, ended with exit code {}", *exit_code) : line};
}

std::expected<std::string, std::string> kubernetes_manifest(const AgentPods& pods) {
  if (auto reason = reason_against(pods)) return std::unexpected(*reason);
  const ordered_json labels = {{"app", "assay"}};
  ordered_json meta = {{"name", "assay"}, {"namespace", pods.kube_namespace}, {"labels", labels}};
  ordered_json pod = agent_pod(pods);
  const auto manifest = [&](const char* version, const char* kind, ordered_json spec) {
    const ordered_json document = {
        {"apiVersion", version}, {"kind", kind}, {"metadata", meta}, {"spec", std::move(spec)}};
    return document.dump(2) + "\n";
  };
  if (pods.workload == Workload::daemon_set) {
    const ordered_json of_pods = {{"metadata", {{"labels", labels}}}, {"spec", std::move(pod)}};
    return manifest("apps/v1", "DaemonSet", {{"selector", {{"matchLabels", labels}}}, {"template", of_pods}});
  }
  ordered_json job = agent_job(pods, labels, std::move(pod));
  if (!pods.queue.empty()) meta["labels"]["kueue.x-k8s.io/queue-name"] = pods.queue;
  if (pods.workload == Workload::job) {
    if (!pods.queue.empty()) job["suspend"] = true;  // Kueue resumes it when it is admitted
    return manifest("batch/v1", "Job", std::move(job));
  }
  const ordered_json agents = {{"name", "agents"}, {"replicas", 1}, {"template", {{"spec", std::move(job)}}}};
  ordered_json set = {{"replicatedJobs", ordered_json::array({agents})}};
  if (!pods.queue.empty()) set["suspend"] = true;
  return manifest("jobset.x-k8s.io/v1alpha2", "JobSet", std::move(set));
}

}  // namespace assay::launch
