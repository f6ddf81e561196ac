// units: the base units of every recorded number, and the sizes and durations that people write.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

/// A number of bytes; GiB and friends exist only in texts for people.
struct Bytes {
  std::uint64_t count = 0;
  friend constexpr auto operator<=>(const Bytes&, const Bytes&) = default;
};

/// A duration in seconds of wall time.
struct Seconds {
  double count = 0;
  friend constexpr auto operator<=>(const Seconds&, const Seconds&) = default;
};

/// A rate in bytes a second.
struct BytesPerSecond {
  double count = 0;
  friend constexpr auto operator<=>(const BytesPerSecond&, const BytesPerSecond&) = default;
};

/// The mean rate of `size` over `time`; `time` must be positive.
constexpr BytesPerSecond operator/(Bytes size, Seconds time) { return {static_cast<double>(size.count) / time.count}; }
static_assert((Bytes{1'000'000} / Seconds{0.5}).count == 2e6);

/// Every unit a record may carry, as one line for error messages.
inline constexpr std::string_view kBaseUnits =
    "s, B, B/s, FLOP/s, FLOP/J, W, W/s, J, V, A, VA, degC, K, Pa, m3/s, Hz, 1/s, 1";

/// True when `unit` is one of kBaseUnits, spelled exactly.
bool is_base_unit(std::string_view unit);

/// Reads "4096", "64KiB", "512 MB" or "1GiB" (K/M/G/T, binary with an i, decimal without) as bytes. Nothing if the text
/// is anything else, negative, or does not fit 64 bits.
std::optional<Bytes> parse_bytes(std::string_view text);

/// Reads "10", "10s", "250ms", "40us" or "2min" as seconds. Nothing if the text is anything else or negative.
std::optional<Seconds> parse_seconds(std::string_view text);

}  // namespace assay
