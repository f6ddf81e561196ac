// planes: the networks that a node hangs on, kept apart: which port of it belongs to which, and where that port's cable
// ends.
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

/// One port of a node in one plane. What is not told is empty; it has an interface, a device or both.
struct Port {
  std::string interface;    ///< network interface: "ens1f0np0"
  std::string device;       ///< RDMA device or port: "mlx5_0", "mlx5_0/2"
  std::string address;      ///< where the other nodes reach it
  std::string rail;         ///< ports of one rail talk to each other; once in a node's plane
  std::string leaf;         ///< the leaf switch that its cable ends at; the node's when not told
  std::string switch_port;  ///< the port of that switch
};

/// The ports of a node by plane.
using Planes = std::map<std::string, std::vector<Port>>;

/// Reads `planes` of a node, which its schema has taken; `here` names the node in errors. Refused: a port with neither
/// interface nor device, two ports of one rail in a plane, an interface or device that stands in a plane twice.
std::expected<Planes, InputError> planes_from(const nlohmann::json& object, const std::string& here);

/// The same as a document.
nlohmann::json to_json(const Planes& planes);

/// The rails of `plane`, in the order in which the site first names them; one without a name where ports have none.
/// Empty when no node has a port in the plane.
std::vector<std::string> rails_of(const Site& site, std::string_view plane);

/// The port of `node` on this rail of this plane, or nullptr.
const Port* port_of(const Node& node, std::string_view plane, std::string_view rail);

/// The leaf that `node` hangs on there: the port's, else the node's own; empty when neither is told. Without a plane
/// the node's own.
std::string leaf_of(const Node& node, std::string_view plane, std::string_view rail);

/// The text of `field` of `port` (interface, device, address, leaf or switch_port); of `leaf` the node's where the port
/// tells none. Empty: not told.
std::string port_text(const Node& node, const Port& port, std::string_view field);

}  // namespace assay::site
