// ssh: command line of OpenSSH, bootstrap script, error messages.
#include "orchestrator/launch/ssh.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "probes/core/text.h"

namespace assay::launch {
namespace {

/// Something that is no option and has nothing else than letters, digits and `punctuation`.
bool is_word(std::string_view text, std::string_view punctuation) {
  return !text.empty() && text.front() != '-' && has_only(text, punctuation);
}

/// The same characters as in the site's schema, checked again at their use.
bool is_address(std::string_view text) { return is_word(text, ".:_-"); }
bool is_user(std::string_view text) { return is_word(text, "._-"); }
bool is_directory(std::string_view text) { return is_plain_absolute_path(text) && has_only(text, "/._-"); }
/// A path on this machine: ssh expands %, ~ and $ in it, and splits it at blanks and quotes.
bool is_plain_path(std::string_view text) { return is_word(text, "/._-+@:,="); }

}  // namespace

std::expected<std::string, std::string> bootstrap_command(const std::string& directory,
                                                          const std::vector<AgentFile>& agents) {
  const auto script = bootstrap_script(directory, agents);
  if (!script) return script;
  return "exec /bin/sh -c '" + *script + "'";
}

namespace {

/// The part of the script that sets m to the machine, s to the SHA-256 and z to the size of its agent.
std::expected<std::string, std::string> choice_of(const std::vector<AgentFile>& agents) {
  std::string cases, machines;
  for (const auto& agent : agents) {
    if (!files::is_sha256(agent.sha256)) return std::unexpected("the agent's SHA-256 is malformed");
    if (!is_word(agent.machine, "_")) return std::unexpected("the agent's machine is malformed");
    cases += fmt::format("{}) s={}; z={};; ", agent.machine, agent.sha256, agent.size);
    machines += " " + agent.machine;
  }
  if (agents.empty()) return std::unexpected("there is no agent for this node");
  return fmt::format(
      "m=$(uname -m); case $m in {}*) echo assay: this machine is $m, and the agents that can be sent are for{} >&2; "
      "exit 75;; esac; ",
      cases, machines);
}

}  // namespace

std::expected<std::string, std::string> bootstrap_script(const std::string& directory,
                                                         const std::vector<AgentFile>& agents) {
  if (!is_directory(directory))
    return std::unexpected(fmt::format("directory '{}' is not of the form /[A-Za-z0-9/._-]*", printable(directory)));
  const auto choice = choice_of(agents);
  if (!choice) return choice;
  std::string plain = directory;
  while (plain.ends_with('/')) plain.pop_back();
  const auto slash = plain.rfind('/');
  if (plain.empty() || plain.ends_with("/."))
    return std::unexpected(fmt::format("directory '{}' is not a directory of its own", printable(directory)));
  const std::string parent = slash == 0 ? "/" : plain.substr(0, slash), name = plain.substr(slash + 1);
  // No single quote and no exclamation mark inside: csh as a login shell reads both even in quotes.
  //
  // Into the directory: a link at its name would lead the `cd`, and then the `chmod`, to a folder of another user
  // choice. Where the shell is after `cd` cannot be changed any more, so it is compared with the name then, and the
  // owner is asked of `.`; `test -O .` would pass for every folder of the same user.
  //
  // The agent: the executed file is a copy in a new folder of this user, 0700, on the node itself if there is one. It
  // is hashed there and executed by its descriptor, so that no one who can write to the directory, as root of another
  // node can if it is shared, puts another program in its place. /tmp and the others may be mounted noexec: hence
  // the try.
  return fmt::format(
      R"sh(read -r start || exit 74; {1}umask 077; mkdir -p {0}; cd -P {2} && p=$(pwd -P) && cd -P ./{3} && test "$(pwd -P)" = "${{p%/}}/{3}" && )sh"
      R"sh(test -O . && chmod 700 . && mkdir -p agents || )sh"
      R"sh({{ echo assay: directory {0} cannot be used, is a link or belongs to another user >&2; exit 73; }}; )sh"
      R"sh(have() {{ test "$(sha256sum < $1 2>/dev/null | cut -c 1-64)" = $s; }}; )sh"
      R"sh(place() {{ t=$(mktemp -d $1/assay.XXXXXXXX 2>/dev/null) && test -O $t; }}; )sh"
      R"sh(place /tmp || place /dev/shm || place . || {{ echo assay: no folder for the agent can be made >&2; exit 74; }}; )sh"
      R"sh(if test -f agents/$s && head -c $z < agents/$s > $t/agent && have $t/agent; )sh"
      R"sh(then echo assay-bootstrap/1 have $m; else echo assay-bootstrap/1 need $m; )sh"
      R"sh(head -c $z > $t/agent && have $t/agent || )sh"
      R"sh({{ rm -rf $t; echo assay: the agent was not received completely >&2; exit 74; }}; )sh"
      R"sh(n=$(mktemp agents/.new.XXXXXXXX) && cp $t/agent $n && mv -f $n agents/$s || rm -f $n; )sh"
      R"sh(echo assay-bootstrap/1 stored; fi; )sh"
      R"sh(chmod 500 $t/agent; for o in /dev/shm .; do $t/agent --version > /dev/null 2>&1 && break; f=$t; )sh"
      R"sh(if place $o; then cp $f/agent $t/agent; chmod 500 $t/agent; rm -rf $f; else t=$f; fi; done; )sh"
      R"sh(exec 9< $t/agent; rm -rf $t; )sh"
      R"sh(have /proc/self/fd/9 || {{ echo assay: the agent was changed while it was copied >&2; exit 74; }}; )sh"
      R"sh(exec /proc/self/fd/9 --directory {0})sh",
      plain, *choice, parent, name);
}

std::expected<std::string, std::string> known_hosts_lines(const site::Node& node) {
  const auto line = [](const char* alias, const std::string& key) -> std::expected<std::string, std::string> {
    if (key.empty()) return std::string();
    const auto blank = key.find(' ');
    if (blank == std::string::npos || !is_word(key.substr(0, blank), "@.-") || !is_word(key.substr(blank + 1), "+/=")) {
      return std::unexpected("host_key is not of the form 'ssh-ed25519 AAAA...'");
    }
    return fmt::format("{} {}\n", alias, key);
  };
  auto lines = line(kHostKeyAlias, node.host_key);
  if (!lines || !node.jump) return lines;
  const auto of_jump = line(kJumpKeyAlias, node.jump->host_key);
  if (!of_jump) return std::unexpected("the jump host's " + of_jump.error());
  return *lines + *of_jump;
}

namespace {

/// One host on the way to the node, or the node itself.
struct Hop {
  std::string address;
  int port;
  std::string user, identity_file;
  std::string known_hosts;
  std::string alias;  // of its pinned key; empty: the file has it by its address
};

/// The arguments of ssh for `hop` without its address: argv[0], options, port and login.
std::expected<std::vector<std::string>, std::string> hop_arguments(const Hop& hop, const LaunchOptions& options) {
  if (!is_address(hop.address))
    return std::unexpected(fmt::format("address '{}' is not a host name or address", printable(hop.address)));
  if (!hop.user.empty() && !is_user(hop.user))
    return std::unexpected(fmt::format("user '{}' is not a valid user name", printable(hop.user)));
  if (!is_plain_path(hop.known_hosts))
    return std::unexpected(
        fmt::format("known_hosts '{}' has a character that ssh would expand", printable(hop.known_hosts)));
  constexpr int kMaxPort = 65535;
  if (hop.port < 1 || hop.port > kMaxPort)
    return std::unexpected(fmt::format("port {} is not between 1 and 65535", hop.port));

  std::vector<std::string> argv = {options.ssh, "-F", "none", "-T", "-a", "-x"};
  const auto option = [&argv](std::string text) {
    argv.emplace_back("-o");
    argv.push_back(std::move(text));
  };
  for (const char* text :
       {"BatchMode=yes", "StrictHostKeyChecking=yes", "GlobalKnownHostsFile=/dev/null", "UpdateHostKeys=no",
        "VerifyHostKeyDNS=no", "PasswordAuthentication=no", "KbdInteractiveAuthentication=no", "ForwardAgent=no",
        "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no", "ControlMaster=no", "ControlPath=none",
        "EscapeChar=none", "LogLevel=ERROR", "ConnectionAttempts=1"}) {
    option(text);
  }
  option("UserKnownHostsFile=" + hop.known_hosts);
  option(fmt::format("ConnectTimeout={}",
                     static_cast<int>(std::clamp(std::ceil(options.connect_timeout.count), 1.0, 3600.0))));
  option("ServerAliveInterval=15");  // times four: a cut network is detected after a minute, as by the agent
  option("ServerAliveCountMax=4");
  if (!hop.alias.empty()) option("HostKeyAlias=" + hop.alias);
  if (!hop.identity_file.empty()) {
    if (!is_plain_path(hop.identity_file)) {
      return std::unexpected(
          fmt::format("identity_file '{}' has a character that ssh would expand", printable(hop.identity_file)));
    }
    option("IdentitiesOnly=yes");
    argv.insert(argv.end(), {"-i", hop.identity_file});
  }
  argv.insert(argv.end(), {"-p", std::to_string(hop.port)});
  if (!hop.user.empty()) argv.insert(argv.end(), {"-l", hop.user});
  return argv;
}

/// The line of `log` that has `words`, which names the address that was looked up; the last line if none has.
std::string line_with(std::string_view log, std::string_view words) {
  const auto at = log.find(words);
  return last_line(at == std::string_view::npos ? log : log.substr(0, log.find('\n', at)));
}

}  // namespace

std::expected<std::vector<std::string>, std::string> ssh_arguments(const site::Node& node, const LaunchOptions& options,
                                                                   const KnownHosts& known_hosts,
                                                                   const std::string& command) {
  auto argv = hop_arguments({.address = node.address,
                             .port = node.port,
                             .user = node.user,
                             .identity_file = node.identity_file,
                             .known_hosts = known_hosts.node,
                             .alias = node.host_key.empty() ? "" : kHostKeyAlias},
                            options);
  if (!argv) return argv;
  if (node.jump) {
    // -J would start a second ssh without these options. A ProxyCommand goes through a shell, so each of its words, and
    // options.ssh too, has only the characters above.
    const auto words = hop_arguments({.address = node.jump->address,
                                      .port = node.jump->port,
                                      .user = node.jump->user,
                                      .identity_file = node.jump->identity_file,
                                      .known_hosts = known_hosts.jump,
                                      .alias = node.jump->host_key.empty() ? "" : kJumpKeyAlias},
                                     options);
    if (!words) return std::unexpected("jump: " + words.error());
    if (!is_plain_path(options.ssh))
      return std::unexpected("the path of ssh has a character that a shell would expand");
    std::string proxy = "ProxyCommand=";  // ssh puts exec before it
    for (const auto& word : *words) proxy += (proxy.ends_with('=') ? "" : " ") + word;
    proxy += node.address.find(':') == std::string::npos ? fmt::format(" -W {}:{}", node.address, node.port)
                                                         : fmt::format(" -W [{}]:{}", node.address, node.port);
    argv->insert(argv->end(), {"-o", proxy + " -- " + node.jump->address});
  }
  argv->insert(argv->end(), {"--", node.address, command});
  return argv;
}

LaunchError ssh_failure(std::string_view log, std::optional<int> exit_code) {
  constexpr int kSshOwnFailure = 255;  // ssh(1), EXIT STATUS
  constexpr int kNotExecutable = 126;
  const std::string line = last_line(log);
  if (log.contains("REMOTE HOST IDENTIFICATION HAS CHANGED")) {
    return {LaunchFailure::host_key,
            "the host key is not the one that the site pins: another host may answer at this address"};
  }
  if (log.contains("Host key verification failed") || log.contains("host key is known for")) {
    return {LaunchFailure::host_key,
            "the host key is not pinned in the site: " + line_with(log, "host key is known for")};
  }
  if (log.contains("Permission denied (")) return {LaunchFailure::refused, "login refused: " + line};
  if (!exit_code) return {LaunchFailure::unreachable, line.empty() ? "no answer" : line};
  if (*exit_code == kSshOwnFailure)
    return {LaunchFailure::unreachable, line.empty() ? "ssh failed without a message" : line};
  if (*exit_code == kNotExecutable) return {LaunchFailure::refused, line + " (a directory mounted noexec?)"};
  return {LaunchFailure::refused, line.empty() ? fmt::format("the agent ended with exit code {}", *exit_code) : line};
}

std::string last_line(std::string_view log) {
  while (!log.empty()) {
    const auto end = log.find_last_not_of("\r\n \t");
    if (end == std::string_view::npos) return {};
    log = log.substr(0, end + 1);
    const auto begin = log.rfind('\n');
    return printable(begin == std::string_view::npos ? log : log.substr(begin + 1));
  }
  return {};
}

}  // namespace assay::launch
