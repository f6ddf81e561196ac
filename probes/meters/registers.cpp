// registers: reads numbers in the byte orders of devices, and recognises the patterns that mean "no value".
#include "probes/meters/registers.h"

#include <bit>
#include <cmath>
#include <limits>

namespace assay::meters {

std::optional<double> number_of(std::span<const std::uint16_t> words, const MeterRegister& one) {
  if (words.size() != static_cast<std::size_t>(registers_of(one.type))) return std::nullopt;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < words.size(); ++i)
    bits = bits << 16 | words[one.low_word_first ? words.size() - 1 - i : i];
  const auto unless = [](auto value, auto none) {
    return value == none ? std::nullopt : std::optional(static_cast<double>(value));
  };
  switch (one.type) {
    case RegisterType::int16:
      return unless(static_cast<std::int16_t>(bits), std::numeric_limits<std::int16_t>::min());
    case RegisterType::uint16:
      return unless(static_cast<std::uint16_t>(bits), std::numeric_limits<std::uint16_t>::max());
    case RegisterType::int32:
      return unless(static_cast<std::int32_t>(bits), std::numeric_limits<std::int32_t>::min());
    case RegisterType::uint32:
      return unless(static_cast<std::uint32_t>(bits), std::numeric_limits<std::uint32_t>::max());
    case RegisterType::uint64:
      return unless(bits, std::numeric_limits<std::uint64_t>::max());
    case RegisterType::float32: {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<DcmiPower> dcmi_power_of(std::span<const std::uint8_t> answer) {
  constexpr std::size_t kLength = 19;
  constexpr std::uint8_t kGroup = 0xdc, kMeasuring = 0x40;
  constexpr double kMilliseconds = 1e-3;
  if (answer.size() != kLength || answer[0] != 0 || answer[1] != kGroup) return std::nullopt;
  const auto at = [&](std::size_t offset, std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = count; i > 0; --i) value = value << 8 | answer[offset + i - 1];
    return value;
  };
  return DcmiPower{.current_w = static_cast<double>(at(2, 2)),
                   .least_w = static_cast<double>(at(4, 2)),
                   .most_w = static_cast<double>(at(6, 2)),
                   .mean_w = static_cast<double>(at(8, 2)),
                   .stated_s = at(10, 4),
                   .period_s = static_cast<double>(at(14, 4)) * kMilliseconds,
                   .measuring = (answer[18] & kMeasuring) != 0};
}

std::optional<DcmiLimit> dcmi_limit_of(std::span<const std::uint8_t> answer) {
  constexpr std::size_t kLength = 15, kLimit = 5, kCorrection = 7;
  constexpr std::uint8_t kGroup = 0xdc;
  constexpr double kMilliseconds = 1e-3;
  if (answer.size() != kLength || answer[0] != 0 || answer[1] != kGroup) return std::nullopt;
  std::uint32_t correction_ms = 0;
  for (std::size_t i = 4; i > 0; --i) correction_ms = correction_ms << 8 | answer[kCorrection + i - 1];
  return DcmiLimit{.limit_w = static_cast<double>(answer[kLimit] | answer[kLimit + 1] << 8),
                   .correction_s = correction_ms * kMilliseconds};
}

}  // namespace assay::meters
