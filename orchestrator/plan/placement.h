// placement: places and subjects of the steps of a requirement.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "orchestrator/plan/pairing.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/profile.h"
#include "orchestrator/site/site.h"
#include "probes/core/description.h"

namespace assay::plan {

/// One placement of a requirement's probe. Without nodes nothing can be measured there, and `reason` says why.
struct Spot {
  Subject subject;  ///< of the cell: node, pair ("n1+n2"), group (the rack's or leaf's name), cluster (the site's); "@"
                    ///< and the rail behind it where the plane has several
  std::string label;               ///< the same for a step's id: letters, digits, dots, hyphens, underscores
  std::vector<std::string> nodes;  ///< one rank on each, rank 0 first
  std::string reason;
  std::string rail = {};  ///< of the requirement's plane
  bool smallest = false;  ///< of growing groups: reference of the others
  std::string path = {};  ///< between tenants
};

/// More spots than that are too long for an acceptance test: 1,000 nodes have 499,500 pairs.
inline constexpr std::size_t kMostSpots = 1'000'000;

/// Least number of spots_of(), only from counts: called before any is made.
std::size_t least_spots(const Requirement& requirement, const Description& probe, const site::Site& site);

/// Every placement of `requirement`, whose probe is `probe`, on `site`, in the order in which they run: rail by rail of
/// its plane, pairs round by round, everything else in the site's order. A node that has no port there, or no partner,
/// has a spot without nodes. Never empty. Errors, with the field they are about in `where`: the scope does not go with
/// the probe; the probe has no parameter that chooses a port; more than kMostSpots. `growing` is
/// the rule of its growing groups.
std::expected<std::vector<Spot>, InputError> spots_of(const Requirement& requirement, const Description& probe,
                                                      const site::Site& site, const Growing& growing);

/// The placements of a requirement that cannot be measured for `reason`: a cell for each node, or one for the whole
/// site where several nodes belong to one cell.
std::vector<Spot> spots_without_steps(const Requirement& requirement, const site::Site& site,
                                      const std::string& reason);

/// Takes the nodes from spots that have a machine for which there is no build of `program`.
void keep_built(const Program& program, const site::Site& site, std::vector<Spot>& spots);

/// Takes the nodes from all spots of `requirement` that are not among `drawn`; the reference of growing groups stays.
/// Returns how many drawn ones can be measured.
std::size_t keep_drawn(const Requirement& requirement, const std::vector<DrawnCell>& drawn, std::vector<Spot>& spots);

}  // namespace assay::plan
