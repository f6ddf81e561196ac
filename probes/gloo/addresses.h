// addresses: the many ends that one rank listens on, in a few bytes each, so that the words of a large group fit into
// one message.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::gloo {

/// Byte strings of one length, nearly alike: the first one, where any other differs, and each one's bytes there.
nlohmann::json pack_addresses(const std::vector<std::string>& addresses);

/// The string at `index` of pack_addresses()'s output. Throws std::runtime_error for anything else, or an index out of
/// range.
std::string unpack_address(const nlohmann::json& packed, std::size_t index);

/// Where rank `of` has its end towards rank `to`: ranks have none towards themselves.
constexpr std::size_t end_towards(int of, int to) { return static_cast<std::size_t>(to < of ? to : to - 1); }
static_assert(end_towards(0, 1) == 0 && end_towards(2, 1) == 1 && end_towards(2, 3) == 2);

}  // namespace assay::gloo
