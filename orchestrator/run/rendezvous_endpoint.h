// rendezvous_endpoint: address and secret token by which the ranks of a step connect to each other.
#pragma once

#include <string>

#include "orchestrator/plan/plan.h"

namespace assay::run {

/// Ports that rank 0 listens on, which a firewall between the nodes must allow: below the kernel's ephemeral range, and
/// enough of them that concurrent steps on one machine do not collide.
inline constexpr int kFirstRendezvousPort = 28700, kRendezvousPorts = 256;

/// "host:port" where rank 0 of `step` listens: the rendezvous address of its first node, or that node's address in the
/// step's plane where the site has one, and a port from the step's ordinal in the plan.
std::string rendezvous_endpoint(const plan::Plan& plan, const plan::Step& step);

/// 64 hexadecimal digits from the system's random source, for one attempt. Throws std::runtime_error when it fails.
std::string rendezvous_token();

}  // namespace assay::run
