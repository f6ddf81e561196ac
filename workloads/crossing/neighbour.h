// neighbour: whether an address answers on the link itself.
#pragma once

#include <string>

#include "workloads/crossing/tried.h"

namespace assay::crossing {

/// One question for `target` on `interface` (empty: the one that the route takes): an ARP request (RFC 826), or of
/// IPv6 a neighbour solicitation (RFC 4861, 7.2.2). Nothing refuses either. Throws Skip without the right to send it.
Tried try_neighbour(const Target& target, const std::string& interface);

}  // namespace assay::crossing
