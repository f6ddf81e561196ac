// sizes: reading and fitting.
#include "probes/nccl/sizes.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "probes/core/parameters.h"

namespace assay {
namespace {

Bytes size_of_part(std::string_view part) {
  const auto size = parse_bytes(part);
  if (!size || size->count == 0) {
    throw BadParameter(fmt::format("sizes: '{}' is not a size such as 8, 64KiB or 1GiB, nor a range such as 1MiB..16GiB", part));
  }
  return *size;
}

}  // namespace

std::vector<Bytes> parse_sizes(std::string_view text) {
  std::vector<Bytes> sizes;
  for (const auto piece : text | std::views::split(',')) {
    const std::string_view part(piece.begin(), piece.end());
    const auto dots = part.find("..");
    const Bytes first = size_of_part(part.substr(0, dots));
    const Bytes last = dots == std::string_view::npos ? first : size_of_part(part.substr(dots + 2));
    if (last < first) throw BadParameter(fmt::format("sizes: the range '{}' runs backwards", part));
    for (Bytes size = first; size <= last; size.count *= 2) {
      sizes.push_back(size);
      if (size.count > last.count / 2) break;  // the next would be beyond, or beyond 64 bits
    }
  }
  std::ranges::sort(sizes);
  const auto surplus = std::ranges::unique(sizes);
  sizes.erase(surplus.begin(), surplus.end());
  if (sizes.size() > kMaxSizes) throw BadParameter(fmt::format("sizes: {} are over the limit of {}", sizes.size(), kMaxSizes));
  return sizes;
}

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
