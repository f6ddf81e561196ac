// sizes: reads a list of sizes.
#include "probes/core/sizes.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "probes/core/parameters.h"

namespace assay {
namespace {

Bytes size_of_part(std::string_view part, std::string_view name) {
  const auto size = parse_bytes(part);
  if (!size || size->count == 0) {
    throw BadParameter(
        fmt::format("{}: '{}' is not a size such as 8, 64KiB or 1GiB, nor a range such as 1MiB..16GiB", name, part));
  }
  return *size;
}

}  // namespace

std::vector<Bytes> parse_sizes(std::string_view text, std::string_view name) {
  std::vector<Bytes> sizes;
  for (const auto piece : text | std::views::split(',')) {
    const std::string_view part(piece.begin(), piece.end());
    const auto dots = part.find("..");
    const Bytes first = size_of_part(part.substr(0, dots), name);
    const Bytes last = dots == std::string_view::npos ? first : size_of_part(part.substr(dots + 2), name);
    if (last < first) throw BadParameter(fmt::format("{}: the range '{}' runs backwards", name, part));
    for (Bytes size = first; size <= last; size.count *= 2) {
      sizes.push_back(size);
      if (size.count > last.count / 2) break;  // the next would be beyond, or beyond 64 bits
    }
  }
  std::ranges::sort(sizes);
  const auto surplus = std::ranges::unique(sizes);
  sizes.erase(surplus.begin(), surplus.end());
  if (sizes.size() > kMaxSizes)
    throw BadParameter(fmt::format("{}: {} are over the limit of {}", name, sizes.size(), kMaxSizes));
  return sizes;
}

}  // namespace assay
