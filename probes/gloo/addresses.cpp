// addresses: packs addresses by difference. Their bytes are Gloo's and opaque here.
#include "probes/gloo/addresses.h"

#include <set>
#include <stdexcept>

#include "probes/core/text.h"

namespace assay::gloo {

using nlohmann::json;

namespace {

std::string bytes_of(const json& packed, const char* name) {
  const auto found = packed.find(name);
  if (found == packed.end() || !found->is_string())
    throw std::runtime_error(std::string("a rank's addresses lack ") + name);
  auto bytes = from_hexadecimal(found->get<std::string>());
  if (!bytes) throw std::runtime_error(std::string("a rank's addresses have no hexadecimal digits in ") + name);
  return std::move(*bytes);
}

}  // namespace

json pack_addresses(const std::vector<std::string>& addresses) {
  if (addresses.empty()) return {{"first", ""}, {"places", json::array()}, {"bytes", ""}};
  std::set<std::size_t> places;
  for (const auto& address : addresses) {
    if (address.size() != addresses.front().size()) throw std::runtime_error("addresses of one rank differ in length");
    for (std::size_t i = 0; i < address.size(); ++i) {
      if (address[i] != addresses.front()[i]) places.insert(i);
    }
  }
  std::string bytes;
  for (const auto& address : addresses) {
    for (const std::size_t place : places) bytes += address[place];
  }
  return {{"first", to_hexadecimal(addresses.front())}, {"places", places}, {"bytes", to_hexadecimal(bytes)}};
}

std::string unpack_address(const json& packed, std::size_t index) {
  std::string address = bytes_of(packed, "first");
  const std::string bytes = bytes_of(packed, "bytes");
  const auto places = packed.at("places").get<std::vector<std::size_t>>();
  if (!places.empty() && bytes.size() < (index + 1) * places.size())
    throw std::runtime_error("a rank has no address for every other");
  for (std::size_t i = 0; i < places.size(); ++i) address.at(places[i]) = bytes[index * places.size() + i];
  return address;
}

}  // namespace assay::gloo
