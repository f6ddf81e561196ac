// sizes: which message sizes of a run fit.
#pragma once

#include <vector>

#include "probes/core/sizes.h"
#include "probes/core/units.h"
#include "probes/nccl/operation.h"

namespace assay {

/// Which sizes can be measured.
struct FittingSizes {
  std::vector<Bytes> kept;
  std::vector<Bytes> too_large;  ///< send and receive buffer together need more than a GPU has to give
  std::vector<Bytes> too_small;  ///< less than one element for each rank
};

/// Divides `sizes` for `ranks` ranks, the least of which has `memory` to give for both buffers together.
FittingSizes fit_sizes(const std::vector<Bytes>& sizes, Operation operation, Element element, int ranks, Bytes memory);

/// What is left of `free` device memory for buffers: NCCL's channels, its NVLS buffers and the kernels need the rest.
Bytes memory_for_buffers(Bytes free);

}  // namespace assay
