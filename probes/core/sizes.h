// sizes: a list of message sizes as people write it.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "probes/core/units.h"

namespace assay {

/// Most sizes in one run; 8 B to 16 GiB by doubling are 32.
inline constexpr std::size_t kMaxSizes = 64;

/// Reads "8,64KiB,1MiB..16GiB": sizes and ranges, separated by commas; a range doubles from its first size up to its
/// last. Ascending, each once, never empty. Throws BadParameter with `name` of the parameter and the part that cannot
/// be read.
std::vector<Bytes> parse_sizes(std::string_view text, std::string_view name = "sizes");

}  // namespace assay
