// sources: makes a site document from a host file, Slurm, ssh's configuration or Kubernetes. Pure, but for the files
// that ssh's configuration names.
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
  std::string name = "site";                  ///< of the site
  std::string known_hosts;                    ///< file with host keys, for nodes over ssh; empty: none
  std::string partition;                      ///< of Slurm: only its nodes; empty: all
  std::string home;                           ///< of the user, for ssh's paths with ~
  std::vector<std::string>* notes = nullptr;  ///< takes a sentence for each omission
};

/// "n[01-03,7],gpu1" as n01 n02 n03 n7 gpu1, also with several brackets in a name, as Slurm, pdsh and clush write it;
/// at most 100,000 names. The error is a reason.
std::expected<std::vector<std::string>, std::string> expand_host_list(std::string_view list);

/// The text without a byte order mark. UTF-16 is an error.
std::expected<std::string_view, InputError> plain_text(std::string_view text, const std::string& where);

/// A host file: hosts as a list n[01-64],m1, also user@host and host:slots, with MPI's slots=N, with address=A, with
/// Ansible's host, user and port, or as the Grid Engine's four columns. `#` begins a comment, headings like [gpu] are
/// passed over, and a host that is named again in the same way is taken once. Errors name `where` and the line, as
/// below.
std::expected<nlohmann::ordered_json, InputError> site_from_hostfile(std::string_view text, const std::string& where,
                                                                     const SourceOptions& options);

/// An ssh_config(5): its Hosts without wildcards are the nodes, with HostName, User, Port, IdentityFile and ProxyJump
/// (one hop), as ssh reads them: the first value found for each, and the first IdentityFile that exists; missing files
/// and further ones are notes. Include is read outside of Host and Match, and Match with a list of hosts. Refused:
/// other criteria of Match; if they apply to a node, ProxyCommand, HostKeyAlias, variables, and %-tokens of a
/// connection. Every other keyword has no influence on the host's address and is ignored.
std::expected<nlohmann::ordered_json, InputError> site_from_ssh_config(std::string_view text, const std::string& where,
                                                                       const SourceOptions& options);

/// What `scontrol show nodes` prints, with --oneliner or without. All GPUs of a node, of any types, become
/// slurm.gres when all nodes have the same; else a note says so.
std::expected<nlohmann::ordered_json, InputError> site_from_scontrol(std::string_view text, const std::string& where,
                                                                     const SourceOptions& options);

/// What `kubectl get pods --output=json` prints: running pods, named in the site after the nodes that they run on.
std::expected<nlohmann::ordered_json, InputError> site_from_pods(std::string_view text, const std::string& where,
                                                                 const SourceOptions& options);

}  // namespace assay::site
