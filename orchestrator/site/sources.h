// sources: makes a site document from a host file, Slurm, ssh's configuration or Kubernetes. Pure.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"
#include "probes/core/json_io.h"

namespace assay::site {

/// Options of the command that no source contains.
struct SourceOptions {
  std::string name = "site";  ///< of the site
  std::string known_hosts;    ///< file with host keys, for nodes over ssh; empty: none
  std::string partition;      ///< of Slurm: only its nodes; empty: all
};

/// "n[01-03,7],gpu1" as n01 n02 n03 n7 gpu1, as Slurm, pdsh and clush write it; at most 100,000 names. The error is a
/// reason.
std::expected<std::vector<std::string>, std::string> expand_host_list(std::string_view list);

/// A host file: one host a line, also as user@host, host:slots, with MPI's slots=N and max_slots=N, with address=A or
/// Ansible's ansible_host=A, or as a list n[01-64]; `#` begins a comment. Errors name `where` and the line, as below.
std::expected<nlohmann::ordered_json, InputError> site_from_hostfile(std::string_view text, const std::string& where,
                                                                     const SourceOptions& options);

/// An ssh_config(5): its Hosts without wildcards are the nodes, with HostName, User, Port, IdentityFile and ProxyJump
/// (one hop), the first value found for each, as in ssh. Refused: Match, Include, ProxyCommand, HostKeyAlias, and
/// %-tokens except %h, which assay cannot evaluate. Every other keyword has no influence on the host's address and is
/// ignored.
std::expected<nlohmann::ordered_json, InputError> site_from_ssh_config(std::string_view text, const std::string& where,
                                                                       const SourceOptions& options);

/// What `scontrol --oneliner show nodes` prints. GPUs become slurm.gres when all nodes have the same.
std::expected<nlohmann::ordered_json, InputError> site_from_scontrol(std::string_view text, const std::string& where,
                                                                     const SourceOptions& options);

/// What `kubectl get pods --output=json` prints: running pods, named in the site after the nodes that they run on.
std::expected<nlohmann::ordered_json, InputError> site_from_pods(std::string_view text, const std::string& where,
                                                                 const SourceOptions& options);

}  // namespace assay::site
