// packed_figures: variable-length whole numbers (LEB128) and the bits of doubles.
#include "orchestrator/history/packed_figures.h"

#include <bit>
#include <limits>
#include <optional>

namespace assay::history {
namespace {

constexpr unsigned kBits = 7, kMore = 0x80, kByte = 8, kLastShift = 63;

void put_whole(std::string& bytes, std::uint64_t value) {
  for (; value >= kMore; value >>= kBits) bytes += static_cast<char>(value | kMore);
  bytes += static_cast<char>(value);
}

std::optional<std::uint64_t> take_whole(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift <= kLastShift && !bytes.empty(); shift += kBits) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & (kMore - 1)) << shift;
    if (byte < kMore) return value;
  }
  return std::nullopt;
}

std::uint64_t zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1U ^ static_cast<std::uint64_t>(value >> kLastShift);
}
std::int64_t unzigzag(std::uint64_t value) { return static_cast<std::int64_t>(value >> 1U ^ (~(value & 1U) + 1U)); }

}  // namespace

std::string packed(const std::vector<PackedFigure>& figures) {
  std::string bytes;
  std::int64_t before = 0;
  for (const PackedFigure& figure : figures) {
    put_whole(bytes, zigzag(figure.series - before));
    put_whole(bytes, figure.samples);
    const auto bits = std::bit_cast<std::uint64_t>(figure.value);
    for (unsigned i = 0; i < sizeof bits; ++i) bytes += static_cast<char>(bits >> (kByte * i) & 0xffU);
    before = figure.series;
  }
  return bytes;
}

bool unpack(std::string_view bytes, std::vector<PackedFigure>& figures) {
  figures.clear();
  std::uint64_t before = 0;  // unsigned: a sum of damaged bytes has no meaning, but is defined
  while (!bytes.empty()) {
    const auto step = take_whole(bytes);
    const auto samples = take_whole(bytes);
    std::uint64_t bits = 0;
    if (!step || !samples || *samples > std::numeric_limits<std::uint32_t>::max() || bytes.size() < sizeof bits)
      return false;
    for (unsigned i = 0; i < sizeof bits; ++i)
      bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (kByte * i);
    bytes.remove_prefix(sizeof bits);
    before += static_cast<std::uint64_t>(unzigzag(*step));
    figures.push_back({.series = static_cast<std::int64_t>(before),
                       .value = std::bit_cast<double>(bits),
                       .samples = static_cast<std::uint32_t>(*samples)});
  }
  return true;
}

}  // namespace assay::history
