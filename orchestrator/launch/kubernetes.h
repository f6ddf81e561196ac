// kubernetes: the command line of kubectl, the meaning of its failures, and the DaemonSet's manifest. Pure.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launch/agent.h"
#include "orchestrator/site/site.h"

namespace assay::launch {

/// The arguments of kubectl: argv[0] = `kubectl`, exec -i into the node's pod, `sh -c script` there. The error is a
/// reason: a name with a character that Kubernetes does not allow.
std::expected<std::vector<std::string>, std::string> kubectl_arguments(const site::Node& node,
                                                                       const std::string& kubectl,
                                                                       const std::string& script);

/// Why kubectl, or the script in the pod, ended with `exit_code` before the agent's hello; `log` is its stderr. No
/// exit_code: it was killed.
LaunchError kubectl_failure(std::string_view log, std::optional<int> exit_code);

/// A DaemonSet that holds one agent pod on every node: `image` needs sh, sha256sum, head and cut. It shares the node's
/// network and host name, mounts `directory` of the node, and sleeps until kubectl execs into it. A JSON document,
/// which kubectl reads as it reads YAML. The error is a reason: a name with a character that is not allowed.
std::expected<std::string, std::string> kubernetes_manifest(const std::string& image, const std::string& kube_namespace,
                                                            const std::string& directory);

}  // namespace assay::launch
