// ssh: the command line of ssh, the bootstrap script on the node, and the meaning of ssh's failures. Pure.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launch/agent.h"
#include "orchestrator/site/site.h"

namespace assay::launch {

/// The head's first line, for which the script waits: kubectl from 1.31 on discards the output of a pod until kubectl
/// has set up its streams, and it passes stdin on only after that.
inline constexpr std::string_view kBootstrapStart = "assay-bootstrap/1 start\n";
/// The node's report on stdout before the agent runs: it has the agent, needs its bytes, or has stored them. The first
/// two have the node's machine behind them; everything before them (output of login scripts) is ignored.
inline constexpr std::string_view kBootstrapHave = "assay-bootstrap/1 have ";
inline constexpr std::string_view kBootstrapNeed = "assay-bootstrap/1 need ";
inline constexpr std::string_view kBootstrapStored = "assay-bootstrap/1 stored\n";

/// An agent for one kind of machine.
struct AgentFile {
  std::string machine;  ///< as uname -m writes it
  std::string sha256;
  std::uint64_t size = 0;  ///< B
};

/// The one command that runs on the node. It waits for kBootstrapStart on stdin; chooses the agent of the node's
/// machine (uname -m) among `agents`; enters DIRECTORY, refusing a link and another user's folder; takes the agent from
/// DIRECTORY/agents/SHA256 or, when no file of that hash is there, exactly `size` bytes from stdin, which it also
/// stores there; and executes a private copy by its descriptor after hashing that very copy. Safe in any login shell:
/// no single quote, no exclamation mark. The error is a reason: the directory has another character, or is "/"; no
/// agent, or one with a word that is none.
std::expected<std::string, std::string> bootstrap_command(const std::string& directory,
                                                          const std::vector<AgentFile>& agents);
/// The script in it, for `sh -c`.
std::expected<std::string, std::string> bootstrap_script(const std::string& directory,
                                                         const std::vector<AgentFile>& agents);

/// The content of a known_hosts file that holds the pinned keys of `node` under the alias kHostKeyAlias and of its jump
/// host under kJumpKeyAlias, as far as the site has them. The error is a
/// reason.
std::expected<std::string, std::string> known_hosts_lines(const site::Node& node);
inline constexpr const char* kHostKeyAlias = "assay-pinned-node";
inline constexpr const char* kJumpKeyAlias = "assay-pinned-jump";

/// The files with host keys for the two hops.
struct KnownHosts {
  std::string node;
  std::string jump = {};  ///< read only when the node has a jump host
};

/// The arguments of ssh: argv[0] = options.ssh, no configuration file, no forwarding, no prompts, only pinned host
/// keys, `command` on the node; through the jump host when it has one, by the same rules. The error is a reason: a
/// field of the site has a character that is not allowed.
std::expected<std::vector<std::string>, std::string> ssh_arguments(const site::Node& node, const LaunchOptions& options,
                                                                   const KnownHosts& known_hosts,
                                                                   const std::string& command);

/// Why ssh, or the command on the node, ended with `exit_code` before the agent's hello; `log` is its stderr. No
/// exit_code: it was killed.
LaunchError ssh_failure(std::string_view log, std::optional<int> exit_code);

/// The last non-blank line of `log`, made printable; empty if there is none.
std::string last_line(std::string_view log);

}  // namespace assay::launch
