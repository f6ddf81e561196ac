// sizes: the message sizes of a run that fit.
#pragma once

#include <string>
#include <vector>

#include "probes/collective/operation.h"
#include "probes/core/sizes.h"
#include "probes/core/units.h"

namespace assay::collective {

/// Which sizes can be measured.
struct FittingSizes {
  std::vector<Bytes> kept;
  std::vector<Bytes> too_large;  ///< send and receive buffer together need more than a rank has to give
  std::vector<Bytes> too_small;  ///< less than one element for each rank
};

/// Divides `sizes` for `ranks` ranks, the least of which has `memory` to give for both buffers together.
FittingSizes fit_sizes(const std::vector<Bytes>& sizes, Operation operation, Element element, int ranks, Bytes memory);

/// The sizes left out and why, in B: "too_large=17179869184 too_small=8", or "none".
std::string left_out(const FittingSizes& sizes);

}  // namespace assay::collective
