// patience: waiting for a GPU that may never be done. Needs no CUDA.
#pragma once

#include <functional>
#include <string_view>

#include "probes/core/units.h"

namespace assay::cuda {

/// Asks `done` again and again until it says yes. Polls instead of blocking, because a device that hangs never comes
/// back from a blocking call; times are taken on the device, so the poll's coarseness is in no number. When `limit` is
/// over the GPU hangs: the process leaves (leave_stuck) with `what` was waited for, since to free memory of a GPU that
/// hangs, as an exception on its way would, is to wait for it.
void poll_or_leave(const std::function<bool()>& done, Seconds limit, std::string_view what);

}  // namespace assay::cuda
