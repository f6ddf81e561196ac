// progress: how far a device is, asked from a thread that does not wait for it. No CUDA header is needed to include
// this.
#pragma once

#include "probes/cuda/device.h"

namespace assay::cuda {

/// Whether the device is past `event`, or has failed; also where the event was never marked. From any thread.
bool has_passed(const Event& event);

}  // namespace assay::cuda
