// difference: where two JSON documents part, in words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::files {

/// Every place in which `found` is not `expected`, at most `limit`: "/limit/at_least is 0.01, should be 0.9", and last
/// how many more there are. Empty if the documents are equal.
std::vector<std::string> differences(const nlohmann::json& found, const nlohmann::json& expected, std::size_t limit);

/// The first of them; "its spelling differs" when the documents are equal.
std::string first_difference(const nlohmann::json& found, const nlohmann::json& expected);

}  // namespace assay::files
