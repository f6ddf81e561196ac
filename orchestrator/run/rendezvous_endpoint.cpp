// rendezvous_endpoint: address and token of one attempt.
#include "orchestrator/run/rendezvous_endpoint.h"

#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

#include "orchestrator/wire/tls.h"

namespace assay::run {

std::string rendezvous_endpoint(const plan::Plan& plan, const plan::Step& step) {
  const site::Node& first = *plan.site.node(step.nodes.front());
  const site::Port* const port_in_plane = step.plane.empty() ? nullptr : site::port_of(first, step.plane, step.rail);
  const std::string& host =
      port_in_plane == nullptr || port_in_plane->address.empty() ? first.rendezvous : port_in_plane->address;
  const auto ordinal = std::strtoul(step.id.c_str(), nullptr, 10);  // "0012-…": reads up to the hyphen
  const auto port = static_cast<unsigned long>(kFirstRendezvousPort) + ordinal % kRendezvousPorts;
  return fmt::format("{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

std::string rendezvous_token() {
  constexpr std::size_t kTokenBytes = 32;
  auto token = wire::random_hexadecimal(kTokenBytes);
  if (token.empty()) throw std::runtime_error("no random numbers from the system for a token");
  return token;
}

}  // namespace assay::run
