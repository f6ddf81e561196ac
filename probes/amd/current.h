// current: the device that this thread has chosen, by the runtime's number.
#pragma once

namespace assay::amd {

/// The last that cuda::use() chose in this thread; 0 before.
int current_device();

}  // namespace assay::amd
