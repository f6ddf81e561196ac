// site: the inventory of nodes and how to reach them.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"

namespace assay {

/// How a node is reached; spelled in the site file as it is here.
enum class Launcher { local, ssh };

/// One machine under test. Names and paths are of a closed alphabet, so that they can stand in commands and file names.
struct Node {
  std::string name;                ///< [A-Za-z0-9][A-Za-z0-9._-]*, at most 63 characters, unique in the site
  Launcher launcher = Launcher::local;
  std::string address;             ///< ssh: host name or address; the node's name when not given
  int port = 22;                   ///< ssh
  std::string user;                ///< ssh; empty: whoever runs assay
  std::string identity_file;       ///< ssh; empty: the ssh client's defaults
  std::string host_key;            ///< ssh: "ssh-ed25519 AAAA…", pinned; empty: known_hosts of the site decides
  std::string directory;           ///< where the agent and its scratch live on the node; absolute
  std::string rack;                ///< empty when not told
  std::string leaf;                ///< the leaf switch it hangs on; empty when not told
  std::string rendezvous;          ///< address where other nodes reach it when ranks meet; `address` when not given
};

/// All nodes, in the order of the file.
struct Site {
  std::string name;
  std::string known_hosts;  ///< file with pinned host keys for nodes without host_key; empty: none
  std::vector<Node> nodes;
  std::optional<double> power_cap_w;  ///< the design power of all steps that run at a time stays at or below it; nothing: no cap

  /// The node of this name, or nullptr.
  [[nodiscard]] const Node* node(std::string_view node_name) const;
};

/// Where agents work on a node whose site entry names no directory: on a disk, not in memory, and kept over reboots.
inline constexpr const char* kDefaultDirectory = "/var/tmp/assay";

/// The site of this one machine, named after its host name.
Site this_machine();

/// Reads and checks a site document; `where` names it in errors. Refused: what schema site.json refuses, two nodes of
/// one name, a relative directory.
std::expected<Site, InputError> read_site(std::string_view text, const std::string& where);

/// The document of `site`, every field present; read_site takes it back unchanged.
nlohmann::json to_json(const Site& site);

}  // namespace assay
