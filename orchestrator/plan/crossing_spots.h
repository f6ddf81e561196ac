// crossing_spots: which node tries which path between tenants, and which one is the positive control.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/plan/placement.h"
#include "orchestrator/plan/profile.h"
#include "orchestrator/site/site.h"

namespace assay::plan {

/// The paths of `site` of the class that `requirement` names in its parameters, in the order of the site.
std::vector<const site::CrossingPath*> paths_of(const site::Site& site, const Requirement& requirement);

/// A placement for each of those paths and each node of another tenant, as rank 0, with a node of the path's own tenant
/// as rank 1, which makes the same attempt at the same time: the positive control; a path's target is rank 2. Controls
/// take turns; one that holds the path's address itself is taken only where the tenant has no other. A path whose
/// tenant has no node, or that no other tenant could cross, has a spot without nodes. The subject is group "NODE>PATH".
std::vector<Spot> crossing_spots(const Requirement& requirement, const site::Site& site);

/// Writes the site's fields of the path `name` into `parameters` of a rank; `node` is the one that must not reach it.
void add_path(const site::Site& site, const std::string& name, const std::string& node, Values& parameters);

/// The tenant of a node; empty if it has none.
std::string tenant_of(const site::Site& site, const std::string& node);

/// Why no path may be tried on `site`: there is no consent. Nothing if there is.
std::optional<InputError> check_crossings(const site::Site& site, const Profile& profile);

/// Why `requirement` has no place: "the site declares no path of class nfs".
std::string no_path_words(const Requirement& requirement);

/// A line for each path of `plan` and each tenant that tries it: nodes, packets, address, how often at most.
/// Empty if it tries none.
std::string crossing_words(const Plan& plan);

}  // namespace assay::plan
