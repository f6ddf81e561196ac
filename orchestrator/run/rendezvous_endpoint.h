// rendezvous_endpoint: where the ranks of a step find each other, and the secret by which they know each other.
#pragma once

#include <string>

#include "orchestrator/plan/plan.h"

namespace assay::run {

/// Ports that rank 0 listens on, of which a firewall between the nodes must know: below the kernel's own range, and
/// many enough that steps which run side by side on one machine do not meet.
inline constexpr int kFirstRendezvousPort = 28700, kRendezvousPorts = 256;

/// "host:port" where rank 0 of `step` listens: the rendezvous address of its first node, or that node's address in the
/// step's plane where the site tells one, and a port that follows from the step's place in the plan.
std::string rendezvous_endpoint(const plan::Plan& plan, const plan::Step& step);

/// 64 hexadecimal digits from the system's random source, for one attempt. Throws std::runtime_error when it has none.
std::string rendezvous_token();

}  // namespace assay::run
