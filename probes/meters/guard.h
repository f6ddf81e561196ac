// guard: whether a load may go on, by the newest readings of the site's meters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "probes/meters/watched.h"

namespace assay {

/// The meters of a site, each read by a thread of its own.
using Watched = std::vector<std::shared_ptr<WatchedMeter>>;

/// Why a load may not go on: the first meter that is over its rating, or has one and has given nothing since `oldest_s`
/// (s since 1970; the words end with "unseen" then); or all racks together over `limit_w`, unless that is 0. Empty when
/// it may.
std::string over_limit(const Watched& watched, double limit_w, double oldest_s);

}  // namespace assay
