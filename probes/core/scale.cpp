// scale: chooses the prefix and the number of decimals.
#include "probes/core/scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "probes/core/portable_math.h"

namespace assay {
namespace {

constexpr int kSignificant = 4;

constexpr std::array<std::pair<double, std::string_view>, 10> kPrefixes = {{
    {1e18, "E"},
    {1e15, "P"},
    {1e12, "T"},
    {1e9, "G"},
    {1e6, "M"},
    {1e3, "k"},
    {1, ""},
    {1e-3, "m"},
    {1e-6, "µ"},
    {1e-9, "n"},
}};

/// Seconds, joules and electric units go below 1, and seconds not above it; counts and rates of whole things not below
/// it. A temperature has no prefix.
bool allowed(double factor, std::string_view unit) {
  if (unit == "1") return factor == 1;
  if (unit == "s") return factor <= 1;
  if (unit == "degC" || unit == "K") return factor == 1;
  return factor >= 1 || unit == "J" || unit == "W" || unit == "V" || unit == "A" || unit == "m3/s";
}

}  // namespace

std::string Scale::number(double value) const {
  const double shown = value / factor;
  // Beyond the prefixes: as many digits as `decimals` would show, four at least, and a power of ten.
  constexpr double kMostWhole = 1e16;  // 2^53 has 16 digits
  constexpr double kLeastPlain = 1e-9;
  if (!std::isfinite(shown)) return std::isnan(shown) ? "no number" : shown > 0 ? "∞" : "-∞";
  if (!(std::abs(shown) < kMostWhole)) return fmt::format("{:.{}e}", shown, std::max(decimals, kSignificant - 1));
  if (std::abs(shown) > 0 && std::abs(shown) < kLeastPlain && decimals == kMostDecimals)
    return fmt::format("{:.{}e}", shown, std::max(decimals + decimal_exponent(shown), kSignificant - 1));
  std::string text = fmt::format("{:.{}f}", shown, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos && text.front() == '-') text.erase(0, 1);  // "-0.000"
  return text;
}

std::string Scale::text(double value) const { return unit.empty() ? number(value) : number(value) + " " + unit; }

Scale scale_for(std::span<const double> values, std::string_view unit) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  Scale scale{.factor = 1, .unit = unit == "1" ? "" : std::string(unit), .decimals = kSignificant - 1};
  const auto whole = [](double value) { return value == std::floor(value); };
  if (largest == 0 || !std::isfinite(largest) || (unit == "1" && std::ranges::all_of(values, whole))) {
    scale.decimals = 0;
    return scale;
  }
  for (const auto& [factor, prefix] : kPrefixes) {
    if (!allowed(factor, unit)) continue;
    scale.factor = factor;
    if (unit != "1") scale.unit = std::string(prefix) + std::string(unit == "1/s" && factor > 1 ? "/s" : unit);
    if (largest >= factor) break;
  }
  scale.decimals = std::clamp(kSignificant - 1 - decimal_exponent(largest / scale.factor), 0, kMostDecimals);
  const std::set<double> distinct(values.begin(), values.end());
  while (scale.decimals < kMostDecimals) {
    std::set<std::string> shown;
    for (const double value : distinct) shown.insert(scale.number(value));
    if (shown.size() == distinct.size()) break;
    ++scale.decimals;
  }
  return scale;
}

std::string for_people(double value, std::string_view unit) {
  const Scale scale = scale_for({&value, 1}, unit);
  std::string number = scale.number(value);
  if (number.find('.') != std::string::npos && number.find('e') == std::string::npos) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.ends_with('.')) number.pop_back();
  }
  return scale.unit.empty() ? number : number + " " + scale.unit;
}

std::string duration_words(double seconds) {
  constexpr long kMinute = 60, kHour = 3600;
  const long whole = std::lround(std::max(0.0, seconds));
  if (whole < kMinute) return fmt::format("{} s", whole);
  if (whole < kHour) return fmt::format("{} min {} s", whole / kMinute, whole % kMinute);
  return fmt::format("{} h {} min", whole / kHour, whole % kHour / kMinute);
}

}  // namespace assay
