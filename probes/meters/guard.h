// guard: whether a load may go on, by the newest readings of the site's meters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "probes/meters/watched.h"

namespace assay::meters {

/// The meters of a site, each read by a thread of its own.
using Watched = std::vector<std::shared_ptr<WatchedMeter>>;

/// Why a load may not go on; empty when it may. First what is seen to be too much: a meter over its rating, or all
/// racks together over `limit_w`, unless that is 0. Then what is no longer seen since `oldest_s` (s since 1970; the
/// words end with "unseen"): a meter with a rating, or one that answered before and whose power is counted towards
/// `limit_w`. A meter that hides is no reason to overlook another one that is over its rating.
std::string over_limit(const Watched& watched, double limit_w, double oldest_s);

}  // namespace assay::meters
