// node_places: rows and columns of a matrix, several nodes per place if there are too many.
#include "reports/figures/node_places.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace assay::figures {
namespace {

constexpr const char* kNoBand = "not given";

using Members = std::vector<const site::Node*>;

/// Nodes by band, in the order in which the site names them.
std::vector<std::pair<std::string, Members>> bands_of(const site::Site& site, std::string_view kind) {
  std::vector<std::pair<std::string, Members>> bands;
  std::unordered_map<std::string, std::size_t> index;
  for (const auto& node : site.nodes) {
    const std::string name = band_of(node, kind);
    const auto [found, is_new] = index.emplace(name, bands.size());
    if (is_new) bands.emplace_back(name, Members{});
    bands[found->second].second.push_back(&node);
  }
  return bands;
}

std::size_t places_for(const std::vector<std::pair<std::string, Members>>& bands, std::size_t each) {
  std::size_t places = 0;
  for (const auto& band : bands) places += (band.second.size() + each - 1) / each;
  return places;
}

}  // namespace

std::string_view band_kind(const site::Site& site) {
  if (std::ranges::any_of(site.nodes, [](const site::Node& node) { return !node.leaf.empty(); })) return "leaf";
  if (std::ranges::any_of(site.nodes, [](const site::Node& node) { return !node.rack.empty(); })) return "rack";
  return "";
}

std::string band_of(const site::Node& node, std::string_view kind) {
  const std::string& name = kind == "leaf" ? node.leaf : node.rack;
  return kind.empty() || name.empty() ? kNoBand : name;
}

NodePlaces node_places(const site::Site& site, std::size_t most) {
  NodePlaces places;
  auto bands = bands_of(site, band_kind(site));
  const bool banded = bands.size() > 1 && bands.size() <= most;
  if (bands.size() > most) {
    // One band of all, in the order of the bands.
    Members all;
    for (const auto& band : bands) std::ranges::copy(band.second, std::back_inserter(all));
    bands = {{kNoBand, std::move(all)}};
  }
  std::size_t each = 1;
  while (places_for(bands, each) > most) ++each;
  for (const auto& [name, members] : bands) {
    for (std::size_t from = 0; from < members.size(); from += each) {
      const std::size_t to = std::min(from + each, members.size());
      for (std::size_t i = from; i < to; ++i) places.of_node.emplace(members[i]->name, places.axis.labels.size());
      places.axis.labels.push_back(to - from == 1 ? members[from]->name
                                                  : fmt::format("{} – {}", members[from]->name, members[to - 1]->name));
      places.largest = std::max(places.largest, to - from);
    }
    if (banded) places.axis.bands.push_back({.name = name, .count = (members.size() + each - 1) / each});
  }
  return places;
}

}  // namespace assay::figures
