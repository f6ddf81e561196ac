// kubernetes: the words of the kubernetes launcher. Pure: what kubectl is called with, and what its silence means.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launch/agent.h"
#include "orchestrator/site/site.h"

namespace assay::launch {

/// The words of kubectl: argv[0] = `kubectl`, exec -i into the node's pod, `sh -c script` there. Or a reason: a name of
/// another alphabet than Kubernetes has.
std::expected<std::vector<std::string>, std::string> kubectl_arguments(const site::Node& node,
                                                                       const std::string& kubectl,
                                                                       const std::string& script);

/// What it means that kubectl, or the script in the pod, ended with `exit_code` before the agent said hello; `log` is
/// its stderr. Nothing for exit_code: it had to be killed.
LaunchError kubectl_failure(std::string_view log, std::optional<int> exit_code);

/// A DaemonSet that holds one agent pod on every node: `image` needs sh, sha256sum, head and cut. It shares the node's
/// network and host name, mounts `directory` of the node, and sleeps until kubectl execs into it. A JSON document,
/// which kubectl takes as it takes YAML. Or a reason: a name of another alphabet.
std::expected<std::string, std::string> kubernetes_manifest(const std::string& image, const std::string& kube_namespace,
                                                            const std::string& directory);

}  // namespace assay::launch
