// outcome: a leader's arguments for its ranks at their start, and the record from their answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/collective/conductor.h"
#include "probes/core/probe.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::gloo {

/// Arguments of a rank at its start.
struct RankPlace {
  int rank = 0;  ///< among the ranks of all nodes
  int ranks = 1;
  std::string operation;  ///< one of kOperations
  std::string type;       ///< fp32 or fp64
  std::string address;    ///< numeric, of this machine
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

/// The arguments of the ranks' program, its name first, then this process' id.
std::vector<std::string> rank_arguments(const RankPlace& place);

/// The content of rank_arguments(); nothing for other arguments.
std::optional<RankPlace> rank_place(const std::vector<std::string>& arguments);

/// Conditions that record_facts() writes.
inline constexpr ConditionSpec kFactConditions[] = {
    {.name = "transport", .meaning = "what carries the payload: tcp"},
    {.name = "algorithm",
     .meaning = "gloo_ring, gloo_direct, gloo_binomial_tree, gloo_root_to_each are Gloo's own; own_ring and "
                "own_point_to_point are made of Gloo's messages by this probe"},
    {.name = "gloo_library", .meaning = "file that Gloo was loaded from"},
    {.name = "address",
     .meaning = "addresses of this node's ranks on their connections to other machines (all connections on loopback)"},
    {.name = "interface", .meaning = "network ports of this node that have these addresses"},
    {.name = "mtu", .meaning = "largest packet of those ports, in B; the smallest of them"},
    if_reported("link_speed", "rate of those ports in B/s, the smallest of them, where their drivers report it"),
    {.name = "mss", .meaning = "largest segment of these connections, in B; the smallest of them"},
    {.name = "congestion_control", .meaning = "algorithms by which this node's ranks decide how much may be under way"},
    {.name = "segments_retransmitted",
     .meaning = "segments that the ranks of this node sent again, from connecting to the end"},
};

/// Records kFactConditions from the answers to "facts" of this node's ranks.
void record_facts(Recorder& record, const std::vector<nlohmann::json>& facts);

/// The rate of the slowest network port, in B/s, from the answers of all ranks to "enter"; nothing if one reports none.
std::optional<double> slowest_port(const std::vector<nlohmann::json>& entered);

/// Segments sent again over segments sent, of all ranks that answered `facts`. Throws std::runtime_error when none was
/// sent.
double retransmitted_share(const std::vector<nlohmann::json>& facts);

}  // namespace assay::gloo
