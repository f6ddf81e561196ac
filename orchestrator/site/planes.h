// planes: the network planes of a site: which port of a node (interface, RDMA device) is on which network, and which
// switch port it is cabled to.
#pragma once

#include <array>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"
#include "probes/core/json_io.h"

namespace assay::site {

struct Node;
struct Site;

/// The planes of an AI cluster: parameter (between GPUs), data (storage), business (users and services), management
/// (BMCs, ssh).
inline constexpr std::array<const char*, 4> kPlanes = {"parameter", "data", "business", "management"};

/// One port of a node in one plane. A field that is not known is empty; at least one of interface and device is known.
struct Port {
  std::string interface;    ///< network interface: "ens1f0np0"
  std::string device;       ///< RDMA device or port: "mlx5_0", "mlx5_0/2"
  std::string address;      ///< address for the other nodes
  std::string rail;         ///< ports of one rail communicate with each other; unique among a node's ports of a plane
  std::string leaf;         ///< the leaf switch that it is cabled to; empty: the node's
  std::string switch_port;  ///< the port of that switch
};

/// The ports of a node by plane.
using Planes = std::map<std::string, std::vector<Port>>;

/// Reads `planes` of a node, which conforms to its schema; `here` names the node in errors. Refused: a port with
/// neither interface nor device, two ports of one rail in a plane, an interface or device twice in a plane.
std::expected<Planes, InputError> planes_from(const nlohmann::json& object, const std::string& here);

/// The same as a document.
nlohmann::json to_json(const Planes& planes);

/// The rails of `plane`, in the order of the site; a rail without a name where ports have none.
/// Empty when no node has a port in the plane.
std::vector<std::string> rails_of(const Site& site, std::string_view plane);

/// The port of `node` on this rail of this plane, or nullptr.
const Port* port_of(const Node& node, std::string_view plane, std::string_view rail);

/// The leaf that this port of `node` is cabled to: the port's, else the node's; empty when neither is known. Without a
/// plane the node's.
std::string leaf_of(const Node& node, std::string_view plane, std::string_view rail);

/// The text of `field` of `port` (interface, device, address, leaf or switch_port); of `leaf` the node's when the port
/// has none. Empty: unknown.
std::string port_text(const Node& node, const Port& port, std::string_view field);

}  // namespace assay::site
