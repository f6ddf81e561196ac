// connection_path: which address a rank takes part with, and whether the ranks that met are on the network that was
// asked for.
#pragma once

#include <string>
#include <vector>

namespace assay::gloo {

/// The first address of the network port `name`, one that holds beyond its link; IPv4 comes first. Throws
/// std::runtime_error with the names of the ports there are.
std::string address_of_port(const std::string& name);

/// How one rank is connected.
struct Presence {
  std::string boot;  ///< the boot id of its kernel, empty if the kernel reports none
  int within = 0;    ///< connections to its own machine
  int beyond = 0;    ///< connections to other machines
};

/// Why ranks with these presences, `ranks_per_node` on each node, are not on what `wanted` (fabric or loopback) names;
/// empty if they are. In order of ranks; ranks count node by node.
std::string path_problem(const std::string& wanted, const std::vector<Presence>& ranks, int ranks_per_node);

}  // namespace assay::gloo
