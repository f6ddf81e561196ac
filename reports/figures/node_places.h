// node_places: the nodes of a site as rows and columns of a matrix, however many they are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "orchestrator/site/site.h"
#include "reports/figures/heat.h"

namespace assay::figures {

/// The place of each node in a matrix.
struct NodePlaces {
  HeatAxis axis;  ///< labels: the node, or the first and the last of a place; bands: leaves or racks
  std::unordered_map<std::string_view, std::size_t> of_node;  ///< by the node's name, which stays the site's
  std::size_t largest = 1;                                    ///< most nodes of one place
};

/// Grouping of the nodes of `site`: "leaf"; "rack" when no node has a leaf; "" when none has either.
std::string_view band_kind(const site::Site& site);

/// The leaf, or else rack, of `node` as band_kind says; "not given" when it has none.
std::string band_of(const site::Node& node, std::string_view kind);

/// Every node of `site`, those of one leaf (or rack) side by side and else in the site's order, in at most `most`
/// places. One place holds equally many nodes and never those of two leaves, unless there are more leaves than places:
/// then there are no bands. `site` must outlive the answer.
NodePlaces node_places(const site::Site& site, std::size_t most = kMostHeatPlaces);

}  // namespace assay::figures
