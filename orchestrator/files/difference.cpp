// difference: a JSON patch, read as sentences.
#include "orchestrator/files/difference.h"

#include <fmt/format.h>

namespace assay::files {

using nlohmann::json;

std::vector<std::string> differences(const json& found, const json& expected, std::size_t limit) {
  constexpr std::size_t kLongest = 80;
  const json patch = json::diff(found, expected);
  std::vector<std::string> all;
  for (const auto& change : patch) {
    if (all.size() == limit) {
      all.push_back(fmt::format("and {} more", patch.size() - limit));
      break;
    }
    const json::json_pointer path(change.at("path").get<std::string>());
    const auto shown = [&](const json& tree) {
      const std::string text =
          tree.contains(path) ? tree.at(path).dump(-1, ' ', false, json::error_handler_t::replace) : "nothing";
      return text.size() > kLongest ? text.substr(0, kLongest) + "…" : text;
    };
    all.push_back(fmt::format("{} is {}, should be {}", path.to_string(), shown(found), shown(expected)));
  }
  return all;
}

std::string first_difference(const json& found, const json& expected) {
  const auto all = differences(found, expected, 1);
  return all.empty() ? "its spelling differs" : all.front();
}

}  // namespace assay::files
