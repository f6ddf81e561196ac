// plant_site: the meters of a simulated site, and the power of its racks.
#pragma once

#include <cstddef>

#include "orchestrator/plan/profile.h"
#include "orchestrator/site/site.h"

namespace assay::simulate {

/// Whether `profile` judges by meters of the site.
bool judges_by_meters(const plan::Profile& profile);

/// Power of a healthy rack of `nodes` nodes at full load, in W: between the limits that `profile` has on the power of a
/// rack, else 6.1 kW a node.
double full_rack_w(const plan::Profile& profile, std::size_t nodes);

/// Gives `site`, whose nodes have racks, its meters: of each rack two feeds with a plug of every node, a cooling unit,
/// and of each node its BMC; of the site the intake. As many racks as a site may have meters. Also the consent to load
/// all nodes together, without which nothing may be planned. Their addresses lead nowhere.
void add_meters(const plan::Profile& profile, site::Site& site);

}  // namespace assay::simulate
