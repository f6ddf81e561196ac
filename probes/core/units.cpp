// units: parsing and printing of sizes, durations and measured values.
#include "probes/core/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr std::array<std::string_view, 18> kUnits = {"s", "B",  "B/s",  "FLOP/s", "FLOP/J", "W",    "W/s", "J",   "V",
                                                     "A", "VA", "degC", "K",      "Pa",     "m3/s", "Hz",  "1/s", "1"};

struct Suffix {
  std::string_view text;
  double factor;
};

constexpr Suffix kByteSuffixes[] = {
    {"", 1},
    {"B", 1},
    {"kB", 1e3},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
    {"K", 1024},
    {"M", 1024.0 * 1024},
    {"KiB", 1024},
    {"MiB", 1024.0 * 1024},
    {"G", 1073741824.0},
    {"GiB", 1073741824.0},
    {"TiB", 1099511627776.0},
};
constexpr Suffix kSecondSuffixes[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"min", 60}};

template <std::size_t N>
std::optional<double> parse_scaled(std::string_view text, const Suffix (&suffixes)[N]) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view suffix(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (suffix.starts_with(' ')) suffix.remove_prefix(1);
  const auto* found = std::ranges::find(suffixes, suffix, &Suffix::text);
  if (found == std::end(suffixes)) return std::nullopt;
  return number * found->factor;
}

}  // namespace

bool is_base_unit(std::string_view unit) { return std::ranges::find(kUnits, unit) != kUnits.end(); }

std::optional<Bytes> parse_bytes(std::string_view text) {
  const auto bytes = parse_scaled(text, kByteSuffixes);
  if (!bytes || *bytes >= static_cast<double>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  if (*bytes != std::floor(*bytes)) return std::nullopt;
  return Bytes{static_cast<std::uint64_t>(*bytes)};
}

std::optional<Seconds> parse_seconds(std::string_view text) {
  const auto seconds = parse_scaled(text, kSecondSuffixes);
  if (!seconds) return std::nullopt;
  return Seconds{*seconds};
}

}  // namespace assay
