// rank_start: tasks of a node's leader before and while its ranks find each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/units.h"

namespace assay::gloo {

/// The environment of the ranks: this one, with the folder of `library` first where the loader looks. A library that
/// Gloo lacks shows at the start of a rank, not in the middle of a measurement.
std::vector<std::string> rank_environment(const Library& library);

/// The address that this node's ranks use: of the port `interface`, or of the way to the rendezvous; of loopback where
/// there is one node. Throws BadParameter for a port that is not there.
std::string own_address(const std::string& interface, const Placement& placement);

/// Memory limit of one rank, from the answers of all ranks to "hello" and the ranks of a node. Half of what is
/// available stays: Gloo's own buffers and other processes need memory, too.
Bytes admitted(const std::vector<nlohmann::json>& hellos, std::int64_t ranks_per_node);

/// Throws std::runtime_error when the answers of all ranks to "enter" show another path than `path`.
void demand_path(const std::string& path, const std::vector<nlohmann::json>& entered, std::int64_t ranks_per_node);

}  // namespace assay::gloo
