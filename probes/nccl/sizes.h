// sizes: the message sizes of a run, and which of them fit.
#pragma once

#include <string_view>
#include <vector>

#include "probes/core/units.h"
#include "probes/nccl/operation.h"

namespace assay {

/// Most sizes in one run; 8 B to 16 GiB by doubling are 32.
inline constexpr std::size_t kMaxSizes = 64;

/// Reads "8,64KiB,1MiB..16GiB": sizes and ranges, separated by commas; a range doubles from its first size up to its
/// last. Ascending, each once. Throws BadParameter with the part that cannot be read.
std::vector<Bytes> parse_sizes(std::string_view text);

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
