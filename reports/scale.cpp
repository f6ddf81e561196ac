// scale: prefixes and decimals.
#include "reports/scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "reports/canonical_json.h"

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

/// Seconds, joules and watts go below 1, and seconds not above it; counts and rates of whole things not below it.
bool allowed(double factor, std::string_view unit) {
  if (unit == "1") return factor == 1;
  if (unit == "s") return factor <= 1;
  return factor >= 1 || unit == "J" || unit == "W";
}

}  // namespace

std::string Scale::number(double value) const {
  std::string text = fmt::format("{:.{}f}", value / factor, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos && text.front() == '-') text.erase(0, 1);  // "-0.000"
  return text;
}

std::string Scale::text(double value) const { return unit.empty() ? number(value) : number(value) + " " + unit; }

Scale scale_for(std::span<const double> values, std::string_view unit) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  Scale scale{.factor = 1, .unit = unit == "1" ? "" : std::string(unit), .decimals = kSignificant - 1};
  if (largest == 0) return scale;
  for (const auto& [factor, prefix] : kPrefixes) {
    if (!allowed(factor, unit)) continue;
    scale.factor = factor;
    if (unit != "1") scale.unit = std::string(prefix) + std::string(unit);
    if (largest >= factor) break;
  }
  scale.decimals =
      std::clamp(kSignificant - 1 - static_cast<int>(std::floor(std::log10(largest / scale.factor))), 0, kMostDecimals);
  const std::set<double> distinct(values.begin(), values.end());
  while (scale.decimals < kMostDecimals) {
    std::set<std::string> shown;
    for (const double value : distinct) shown.insert(scale.number(value));
    if (shown.size() == distinct.size()) break;
    ++scale.decimals;
  }
  return scale;
}

std::string exact_text(double value, std::string_view unit) {
  return unit == "1" ? es6_number(value) : fmt::format("{} {}", es6_number(value), unit);
}

std::string percent(double share) {
  constexpr double kSmallest = 1e-5;  // a smaller risk is not known to that precision
  if (share == 0) return "0 %";
  if (std::abs(share) < kSmallest) return share > 0 ? "< 0.001 %" : "> -0.001 %";
  return fmt::format("{:.3g} %", share * 100);
}

}  // namespace assay
