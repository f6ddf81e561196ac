// kubernetes: command line of kubectl, its error messages, the manifest.
#include "orchestrator/launch/kubernetes.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/ssh.h"
#include "orchestrator/wire/protocol.h"
#include "probes/core/text.h"

namespace assay::launch {
namespace {

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
  for (const char* words :
       {"Unable to connect to the server", "connection refused", "The connection to the server", "i/o timeout"}) {
    if (log.contains(words)) return {LaunchFailure::unreachable, line};
  }
  if (!exit_code) return {LaunchFailure::unreachable, line.empty() ? "no answer" : line};
  return {LaunchFailure::refused,
          line.empty() ? fmt::format("kubectl, or the agent in the pod, ended with exit code {}", *exit_code) : line};
}

std::expected<std::string, std::string> kubernetes_manifest(const std::string& image, const std::string& kube_namespace,
                                                            const std::string& directory) {
  using nlohmann::ordered_json;
  const auto is_image = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
      return is_lower_alphanumeric(c) || (c >= 'A' && c <= 'Z') || std::string_view(".:/@_-").contains(c);
    });
  };
  if (!is_image(image)) return std::unexpected(fmt::format("image '{}' is not a valid image name", printable(image)));
  if (!is_name(kube_namespace, "-"))
    return std::unexpected(fmt::format("namespace '{}' is not a valid namespace name", printable(kube_namespace)));
  const ordered_json labels = {{"app", "assay"}};
  const ordered_json container = {
      {"name", "assay"},
      {"image", image},
      {"command", {"/bin/sh", "-c", "trap \"exit 0\" TERM; while :; do sleep 3600 & wait $!; done"}},
      {"securityContext", {{"privileged", true}}},
      {"volumeMounts", ordered_json::array({{{"name", "work"}, {"mountPath", directory}}})}};
  const ordered_json pod = {
      {"hostNetwork", true},  // measures the node's own links; the host name identifies the node
      {"hostPID", false},
      {"dnsPolicy", "ClusterFirstWithHostNet"},
      {"tolerations", ordered_json::array({{{"operator", "Exists"}}})},
      {"containers", ordered_json::array({container})},
      {"volumes",
       ordered_json::array({{{"name", "work"}, {"hostPath", {{"path", directory}, {"type", "DirectoryOrCreate"}}}}})}};
  const ordered_json manifest = {
      {"apiVersion", "apps/v1"},
      {"kind", "DaemonSet"},
      {"metadata", {{"name", "assay"}, {"namespace", kube_namespace}, {"labels", labels}}},
      {"spec",
       {{"selector", {{"matchLabels", labels}}}, {"template", {{"metadata", {{"labels", labels}}}, {"spec", pod}}}}}};
  return manifest.dump(2) + "\n";
}

}  // namespace assay::launch
