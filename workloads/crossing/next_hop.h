// next_hop: the way that the kernel takes to an address, and whether it is alive.
#pragma once

#include <optional>
#include <string>

namespace assay::crossing {

/// The next machine on the way to an address.
struct NextHop {
  bool local = false;       ///< the address is this node's own
  bool is_gateway = false;  ///< else the address itself is on the link
  std::string address;      ///< of the gateway, or the address itself
  std::string interface;
};

/// The route to a numeric address; nothing if there is none.
std::optional<NextHop> next_hop_to(const std::string& address);

/// Why nothing can have left this node on its way `hop`, after a packet was sent without an answer: no carrier, or a
/// gateway that answers neither ARP nor neighbour discovery. Empty if it can have. The kernel takes up to eight seconds
/// to find out about a gateway that it knew; they are waited for, and a stop ends the wait.
std::string why_cut_off(const NextHop& hop);

/// The same of an interface on its own: whether it has a carrier.
std::string why_cut_off(const std::string& interface);

}  // namespace assay::crossing
