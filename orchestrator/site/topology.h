// topology: cabling of a site as its fabric reports it: LLDP of the nodes, or ibnetdiscover of an InfiniBand subnet.
// Pure.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/site/site.h"

namespace assay::site {

/// One cable from a node to a switch.
struct Cable {
  std::string node;  ///< as the site names it
  std::string port;  ///< of the node: its network interface (LLDP), its RDMA device or device and port (ibnetdiscover);
                     ///< empty: the only adapter of a host whose description names no device
  std::string leaf;  ///< the switch; empty: `problem` says why it is not known
  std::string switch_port;  ///< of the switch; empty: unknown
  std::string other_name;   ///< another name of that port; empty: none
  std::string where;        ///< place in the input
  std::string problem;      ///< "its neighbour reports no name"
};

/// The cabling that a fabric reports.
struct Topology {
  bool by_device = false;     ///< whether ports are RDMA devices
  std::vector<Cable> cables;  ///< in the input's order
  std::map<std::string, std::vector<std::string>>
      spines;                      ///< of each leaf, sorted; none from LLDP, where nodes see only their leaf
  std::vector<std::string> notes;  ///< a sentence each: hosts that are not in the site, omissions
};

/// The neighbours of the nodes: `texts` has what `lldpctl -f json` printed on each node, by node's name. Errors name
/// `where`/NODE.json and the member: a name that is not a node of the site, a node without a text, what read_lldp
/// refuses. The leaf of a port is not known where no neighbour has a name or several have.
std::expected<Topology, InputError> topology_from_lldp(const std::map<std::string, std::string>& texts,
                                                       const std::string& where, const Site& site);

/// The topology file that ibnetdiscover prints (infiniband-diags), all of it. Hosts are identified by the node
/// description that rdma-ndd sets, "HOST DEVICE", or, with a single adapter, by the driver's own ("HOST HCA-1");
/// switches by theirs, without the frame of a managed switch ("MF0;leaf1:MQM9700/U1" is leaf1), or by their GUID where
/// two have the same. A switch with a host is a leaf; the switches that it is connected to are its spines. Warnings
/// that the tool prints to the terminal are noted. Errors name the line: one that cannot be read, a link to an element
/// that is not in the file, a host of the site with several adapters whose descriptions name no device.
std::expected<Topology, InputError> topology_from_ibnetdiscover(std::string_view text, const std::string& where,
                                                                const Site& site);

/// How the site contradicts `cable`, as a sentence: its port is on another leaf or switch port there. Empty if it does
/// not, or has no such port.
std::string contradiction(const Site& site, const Cable& cable, bool by_device);

/// A site with its topology filled in, and the contradictions to it.
struct Cabled {
  Site site;
  std::vector<std::string> findings;  ///< a sentence each: a port on another leaf or switch port than the site says, a
                                      ///< port of the site that the fabric does not show
};

/// Fills in leaf and switch port of the ports of `site` that `topology` shows, and the spines of its leaves; values
/// that the site has already are compared and kept. A port that the site does not have is added to `plane`, with its
/// index among the new ports of its node as rail; with an empty `plane` it is left out. The leaf of an adapter without
/// a name is that of the node where the site lists no device of it.
Cabled with_cables(Site site, const Topology& topology, const std::string& plane);

}  // namespace assay::site
