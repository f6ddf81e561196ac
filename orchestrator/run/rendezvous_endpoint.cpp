// rendezvous_endpoint: address and token of one attempt.
#include "orchestrator/run/rendezvous_endpoint.h"

#include <array>
#include <cstdlib>
#include <stdexcept>

#include <openssl/rand.h>

#include <fmt/format.h>

namespace assay {

std::string meeting_place(const Plan& plan, const Step& step) {
  const Node& first = *plan.site.node(step.nodes.front());
  const Port* const lane = step.plane.empty() ? nullptr : port_of(first, step.plane, step.rail);
  const std::string& host = lane == nullptr || lane->address.empty() ? first.rendezvous : lane->address;
  const auto ordinal = std::strtoul(step.id.c_str(), nullptr, 10);  // "0012-…": reads up to the hyphen
  const auto port = static_cast<unsigned long>(kFirstMeetingPort) + ordinal % kMeetingPorts;
  return fmt::format("{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

std::string meeting_token() {
  std::array<unsigned char, 32> bytes = {};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw std::runtime_error("the system has no randomness for a token");
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace assay
