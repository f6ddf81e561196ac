// sizes: fitting.
#include "probes/nccl/sizes.h"

namespace assay {

FittingSizes fit_sizes(const std::vector<Bytes>& sizes, Operation operation, Element element, int ranks, Bytes memory) {
  FittingSizes fitting;
  for (const Bytes size : sizes) {
    const Shape shape = shape_of(operation, size.count, size_of(element), ranks);
    if (shape.chunk == 0) fitting.too_small.push_back(size);
    else if ((shape.sent + shape.received) * size_of(element) > memory.count) fitting.too_large.push_back(size);
    else fitting.kept.push_back(size);
  }
  return fitting;
}

Bytes memory_for_buffers(Bytes free) {
  // Inferred, generous: 32 channels with 16 MiB for each of 7 peers are 3.5 GiB; a small GPU gives half of what it has.
  constexpr std::uint64_t kReserve = std::uint64_t{4} << 30;
  return {free.count > 2 * kReserve ? free.count - kReserve : free.count / 2};
}

}  // namespace assay
