// site: the inventory of nodes and how to reach them.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/site/crossings.h"
#include "orchestrator/site/planes.h"
#include "probes/core/error.h"
#include "probes/core/json_io.h"
#include "probes/core/meter_list.h"
#include "probes/core/switch_list.h"
#include "probes/core/units.h"
#include "probes/core/words.h"

namespace assay::site {

/// How a node is reached; spelled in the site file as it is here.
enum class Launcher { local, ssh, slurm, kubernetes };
constexpr auto words_of(Launcher) { return names_as_words<Launcher>(); }

/// A host that ssh goes through to reach a node.
struct JumpHost {
  std::string address;
  int port = 22;
  std::string user;           ///< empty: the user who runs assay
  std::string identity_file;  ///< empty: the ssh client's defaults
  std::string host_key;       ///< pinned, as a node's; empty: known_hosts of the site decides
};

/// Options of srun for the nodes of launcher slurm; one that is empty or 0 is not passed. Inside an allocation
/// (SLURM_JOB_ID) the first six are the allocation's and are not passed either.
struct SlurmOptions {
  std::string partition, account, qos, reservation, constraint;
  std::string time;             ///< limit as sbatch takes it: "90", "2:00:00", "1-12:00:00"
  std::string gres;             ///< "gpu:8": a step gets no GPU that it does not name
  int gpus_per_node = 0;        ///< as gres, by --gpus-per-node
  std::string agent;            ///< assay-node on a file system that the nodes share; empty: srun copies it (--bcast)
  std::string bcast_directory;  ///< directory for the copy on the nodes: "/tmp" when not given
  std::string address;  ///< numeric address or name of this machine for agents to connect to; empty: all addresses
  int port = 0;         ///< port for agents to connect to; 0: any free one
  Seconds wait{120};    ///< until the agents have connected back, including the time in Slurm's queue
};

/// One machine under test. Names and paths have a restricted set of characters, safe in commands and file names.
struct Node {
  std::string name;  ///< [A-Za-z0-9][A-Za-z0-9._-]*, at most 63 characters, unique in the site
  Launcher launcher = Launcher::local;
  std::string address;           ///< ssh: host name or address; the node's name when not given
  int port = 22;                 ///< ssh
  std::string user;              ///< ssh; empty: the user who runs assay
  std::string identity_file;     ///< ssh; empty: the ssh client's defaults
  std::string host_key;          ///< ssh: "ssh-ed25519 AAAA…", pinned; empty: known_hosts of the site decides
  std::string directory;         ///< for the agent and its scratch directories on the node; absolute
  std::string machine = {};      ///< as uname -m writes it, x86_64 or aarch64; empty: found when it is reached
  std::string rack;              ///< empty: unknown
  std::string leaf;              ///< the leaf switch it is connected to; empty: unknown
  std::string rendezvous;        ///< address for the rendezvous of ranks; `address` when not given
  std::optional<JumpHost> jump;  ///< ssh: through this machine
  std::string pod;               ///< kubernetes: the pod; the node's name when not given
  std::string kube_namespace;    ///< kubernetes; empty: that of the context
  std::string container;         ///< kubernetes; empty: the pod's default
  std::string context;           ///< kubernetes: of kubectl's configuration; empty: its current one
  Planes planes = {};            ///< its ports, by plane; empty: unknown
  /// How many it has of gpu, gpu_instance, nic, drive; a kind that is not there: unknown.
  std::map<std::string, int> parts = {};
  std::map<std::string, std::vector<std::string>> part_names = {};  ///< of the kinds whose parts the site names
};

/// The owner's word that nodes may be loaded together, and how far.
struct LoadTest {
  std::string consent;  ///< who allowed it, when and for how long: "A. Muster, facility, 2026-11-23, racks r01-r04"
  double limit_w = 0;   ///< of the power of all racks together, by the site's meters
};

/// All nodes, in the order of the file.
struct Site {
  std::string name;
  std::string known_hosts;  ///< file with pinned host keys for nodes without host_key; empty: none
  std::vector<Node> nodes;
  SlurmOptions slurm = {};  ///< for nodes of launcher slurm
  std::map<std::string, std::vector<std::string>> spines =
      {};  ///< of a leaf: the spine switches that it is connected to; empty: unknown
  /// Limit on the summed design power of all steps that run at the same time; nothing: no limit.
  std::optional<double> power_cap_w;
  std::optional<LoadTest> load_test = {};   ///< nothing: no load of all nodes together
  std::vector<Meter> meters = {};           ///< instruments that are read from the head, in the order of the file
  std::vector<Switch> switches = {};        ///< switches whose counters are read from the head, likewise
  std::optional<Crossings> crossings = {};  ///< tenants and paths between them; nothing: none is tried

  /// The node of this name, or nullptr.
  [[nodiscard]] const Node* node(std::string_view node_name) const;
};

/// The beginning of the directory of agents on a node whose site entry names none (site_file.h), and the whole of it in
/// pods: on a disk, and kept over reboots.
inline constexpr const char* kDefaultDirectory = "/var/tmp/assay";

/// What uname -m writes on this machine.
std::string own_machine();

/// The site of this one machine, named after its host name.
Site this_machine();

/// Reads and checks a site document; `where` names it in errors. Refused: what schema site.json refuses, nodes of
/// launcher slurm of two machines, two nodes of
/// one name, one machine or pod under two names, one address of a plane on two ports, what planes_from,
/// meters_from, switches_from and crossings_from refuse, a relative directory, a field of a launcher that the node does
/// not have.
std::expected<Site, InputError> read_site(std::string_view text, const std::string& where);

/// The document of `site` with every default filled in, the fields of other launchers left out; read_site reads it back
/// unchanged.
nlohmann::json to_json(const Site& site);

}  // namespace assay::site
