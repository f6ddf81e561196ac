// watch: the target's side of a path: whether packets of an attempt arrived, answered or not.
#pragma once

#include <string>
#include <string_view>

#include "workloads/crossing/tried.h"

namespace assay::crossing {

/// Arrivals of the two at a target, and the evidence of the crossing.
struct Arrivals {
  bool control = false, crossing = false;
  std::string evidence = "nothing of the other tenant arrived";
};

/// The port above those that the kernel gives out (ip_local_port_range: 32768 to 60999 by default) that rank 0 or 1 of
/// the step with this token sends from.
int port_of_rank(std::string_view token, int rank);

/// Receives, until `until` or both have arrived, packets that reach the sockets of this node for `at`: datagrams with
/// `payload`, or TCP connections (`payload` null). A packet that a filter of the node drops does not arrive. Throws
/// Skip without the right to see packets.
Arrivals watch_packets(const Target& at, const std::string* payload, std::string_view token, Clock::time_point until);

}  // namespace assay::crossing
