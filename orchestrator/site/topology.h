// topology: where the cables of a site end, as its fabric tells it: LLDP of the nodes, or ibnetdiscover of an
// InfiniBand subnet. Pure.
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
  std::string port;  ///< of the node: its network interface (LLDP), its RDMA device or device and port (ibnetdiscover)
  std::string leaf;  ///< the switch
  std::string switch_port;  ///< of that; empty where it does not say
  std::string where;        ///< in the input
};

/// What a fabric tells of itself.
struct Topology {
  bool by_device = false;     ///< whether ports are RDMA devices
  std::vector<Cable> cables;  ///< in the input's order
  std::map<std::string, std::vector<std::string>>
      spines;                          ///< of a leaf, sorted; of LLDP none, as nodes hear their leaf alone
  std::vector<std::string> strangers;  ///< hosts that the site does not name
};

/// The neighbours of the nodes: `texts` has what `lldpctl -f json` printed on each node, by node's name. Errors name
/// `where`/NODE.json and the member: a name that is no node of the site, a node without a text, what read_lldp refuses,
/// a neighbour without a name, a port that hears two.
std::expected<Topology, InputError> topology_from_lldp(const std::map<std::string, std::string>& texts,
                                                       const std::string& where, const Site& site);

/// The topology file that ibnetdiscover prints (infiniband-diags), all of it. Hosts are known by the node description
/// that rdma-ndd sets, "HOST DEVICE"; switches by theirs, without a managed one's frame ("MF0;leaf1:MQM9700/U1" is
/// leaf1), or by their GUID where two have the same. A switch with a host on it is a leaf, the switches that it is
/// joined to are its spines. Errors name the line: one that is not understood, a link to what is not in the file, a
/// host of the site whose description tells no device.
std::expected<Topology, InputError> topology_from_ibnetdiscover(std::string_view text, const std::string& where,
                                                                const Site& site);

/// A site with its topology filled in, and what contradicts it.
struct Cabled {
  Site site;
  std::vector<std::string> findings;  ///< a sentence each: a port on another leaf or switch port than the site says, a
                                      ///< port of the site that the fabric does not show
};

/// Fills in leaf and switch port of the ports of `site` that `topology` shows, and the spines of its leaves; what the
/// site says already is compared and stays. A port that the site does not have is added to `plane`, its rail the number
/// of its place among those of its node, by name; with an empty `plane` it is left out.
Cabled with_cables(Site site, const Topology& topology, const std::string& plane);

}  // namespace assay::site
