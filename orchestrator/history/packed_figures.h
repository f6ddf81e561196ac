// packed_figures: the figures of one visit as the database keeps them, some 11 bytes each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::history {

/// A figure by the number of its series.
struct PackedFigure {
  std::int64_t series = 0;
  double value = 0;
  std::uint32_t samples = 0;
  bool operator==(const PackedFigure&) const = default;
};

/// For each figure the number of its series less the one before it (zigzag) and its samples as LEB128, and the eight
/// bytes of its value, least significant first: the same bytes on every machine.
std::string packed(const std::vector<PackedFigure>& figures);
/// The input of packed(); nothing if the bytes are not of its form.
bool unpack(std::string_view bytes, std::vector<PackedFigure>& figures);

}  // namespace assay::history
