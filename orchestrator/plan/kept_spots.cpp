// kept_spots: removes nodes from the placements of a requirement; one without nodes becomes a cell without a step.
#include "orchestrator/plan/kept_spots.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace assay::plan {

void keep_built(const Program& program, const site::Site& site, std::vector<Spot>& spots) {
  std::map<std::string_view, std::string_view> unbuilt;  // machine by node
  for (const auto& node : site.nodes) {
    if (!node.machine.empty() && !program.builds.contains(node.machine)) unbuilt.emplace(node.name, node.machine);
  }
  if (unbuilt.empty()) return;
  for (auto& spot : spots) {
    for (const auto& name : spot.nodes) {
      const auto found = unbuilt.find(name);
      if (found == unbuilt.end()) continue;
      spot.reason = fmt::format("the probe {} is not part of this build for {}", program.name, found->second);
      spot.nodes.clear();
      break;
    }
  }
}

std::size_t keep_drawn(const Requirement& requirement, const std::vector<DrawnCell>& drawn, std::vector<Spot>& spots) {
  std::size_t found = 0;
  for (auto& spot : spots) {
    if (spot.nodes.empty()) continue;
    if (std::ranges::find(drawn, DrawnCell{requirement.id, spot.subject}) != drawn.end()) {
      ++found;
    } else if (!(spot.smallest && is_of_smallest(requirement.limit.reference))) {
      spot.nodes.clear();
      spot.reason = "not drawn";
    }
  }
  return found;
}

}  // namespace assay::plan
