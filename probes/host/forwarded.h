// forwarded: how much of the traffic of a node the hardware of its adapter forwarded, and how much software did.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/parameters.h"

namespace assay::host {

/// The parameter of probes that record `offloaded_share`.
inline constexpr Parameter kOffloadCounters = choice(
    "offload_counters", "auto", "auto ports ovs tc none",
    "counters of packets forwarded by hardware: of ports whose driver counts packets that passed the processors, "
    "of flows of Open vSwitch, of flower filters of tc, or none; auto: the first of these that exist");

/// Packets and their bytes.
struct Load {
  std::uint64_t bytes = 0, packets = 0;
};

/// Those of one port or flow.
struct Forwarded {
  Load hardware, software;
};

/// All counters of a node at one time. `source`: ports, ovs, tc, or empty if nothing counts.
struct ForwardCounters {
  std::string source;
  std::map<std::string, Forwarded> parts;  ///< by number of a port, or by datapath or place and flow
};

/// The counters of this node; `wanted` as of kOffloadCounters. Ports: those whose driver counts packets that hit the
/// processors (IFLA_OFFLOAD_XSTATS_CPU_HIT), such as the representors of a switch in an adapter; their other counters
/// are of all packets. Flows: of `ovs-appctl dpctl/dump-flows -m`, and of `tc -j -s filter show` at the ends of all
/// interfaces and at their blocks, where the program is on PATH and answers within 20 s.
ForwardCounters read_forwarding(std::string_view wanted);

/// Counters of ports in the bodies of RTM_NEWSTATS; a port whose driver counts no such packets is left out, and one
/// whose counters contradict each other has been read while they moved: all of it counts as forwarded by software.
std::map<std::string, Forwarded> port_counters(std::span<const std::string> bodies);

/// Counters of the flows in the output of `dpctl/dump-flows -m`, by `prefix` and flow. A flow that is `offloaded:yes`
/// is the hardware's; one that is partially so is software's. Empty if a line with counters is not readable.
std::optional<std::map<std::string, Forwarded>> flow_counters(std::string_view text, std::string_view prefix);

/// Counters of the flower filters in the output of `tc -j -s filter show`, by `prefix`, priority and handle, of the
/// first action of each. Packets are the hardware's by `hw_packets`, or all where the filter is `skip_sw`. Empty if it
/// is not readable, or a filter that is `in_hw` has packets and does not say whose.
std::optional<std::map<std::string, Forwarded>> filter_counters(std::string_view text, std::string_view prefix);

/// The words after "tc -j -s" for every place of filters in the output of `tc -j qdisc show`.
std::vector<std::vector<std::string>> filter_places(std::string_view qdiscs);

/// Share of the traffic between two times that the hardware forwarded: of packets or of bytes, whichever is smaller,
/// since software counts the packets that it has joined as one. Empty if nothing counted, or fewer bytes than the
/// `payload` that is known to have passed: then it went by another way than the counted one.
std::optional<double> offloaded_share(const ForwardCounters& before, const ForwardCounters& after,
                                      std::uint64_t payload);

}  // namespace assay::host
