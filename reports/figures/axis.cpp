// axis: ranges without overflow, and round marks by number, so that no step is too small to move on; exact numbers and
// shares.
#include "reports/figures/axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "probes/core/es6_number.h"
#include "probes/core/portable_math.h"

namespace assay::figures {
namespace {

// Sums, differences and products with the lengths of a figure stay finite, and differences above the denormals.
constexpr double kFarthest = 1e290;
constexpr double kNearest = 1 / kFarthest;
// A part of its numbers. Below it marks would need more digits than a double has.
constexpr double kLeastSpread = 1e-9;

}  // namespace

double drawable(double value) {
  if (std::isnan(value) || std::abs(value) < kNearest) return 0;
  return std::clamp(value, -kFarthest, kFarthest);
}

Axis::Axis(double low, double high) : low_(drawable(low)), high_(drawable(high)) {
  const double least = kLeastSpread * std::max(std::abs(low_), std::abs(high_));
  if (high_ - low_ > least) return;
  const double middle = low_ / 2 + high_ / 2;
  low_ = middle - (least > 0 ? least : 1);
  high_ = middle + (least > 0 ? least : 1);
}

Axis Axis::around(std::span<const double> values, double margin, double single) {
  std::vector<double> finite;
  for (const double value : values) {
    if (std::isfinite(value)) finite.push_back(drawable(value));
  }
  if (finite.empty()) return {};
  const auto [low, high] = std::ranges::minmax(finite);
  const double beyond = high > low ? margin * (high - low) : high != 0 ? single * std::abs(high) : 1;
  return {low - beyond, high + beyond};
}

double Axis::share(double value) const { return std::clamp((drawable(value) - low_) / (high_ - low_), 0.0, 1.0); }

std::vector<double> Axis::marks() const {
  constexpr double kWanted = 5;
  constexpr int kMost = 12;
  const double raw = (high_ - low_) / kWanted;
  const double power = power_of_ten(decimal_exponent(raw));
  const double share = raw / power;
  const double step = power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
  const double first = std::ceil(low_ / step);
  std::vector<double> marks;
  for (int i = 0; i < kMost; ++i) {
    const double mark = (first + i) * step;
    if (mark >= low_ && mark <= high_) marks.push_back(mark);
  }
  return marks;
}

std::string exact_text(double value, std::string_view unit) {
  return unit == "1" ? es6_number(value) : fmt::format("{} {}", es6_number(value), unit);
}

Scale scale_for_marks(std::span<const double> marks, std::string_view unit) {
  Scale scale = scale_for(marks, unit);
  const auto same_with_fewer = [&](int decimals) {
    Scale fewer = scale;
    fewer.decimals = decimals;
    return std::ranges::all_of(marks, [&](double mark) {
      constexpr double kSame = 1e-9;  // relative; a mark is a multiple of a step that has no exact double
      constexpr double kZero = 1e-15;
      const double shown = mark / scale.factor;
      const std::string text = fewer.number(mark);
      double read = 0;
      (void)std::from_chars(text.data(), text.data() + text.size(), read);  // written by fmt
      return std::abs(read - shown) < kSame * std::abs(shown) + kZero;
    });
  };
  while (scale.decimals > 0 && same_with_fewer(scale.decimals - 1)) --scale.decimals;
  return scale;
}

std::string size_words(double bytes) {
  constexpr double kStep = 1024;
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= kStep && std::fmod(bytes, kStep) == 0) {
    bytes /= kStep;
    ++unit;
  }
  return fmt::format("{:.0f} {}", bytes, kUnits[unit]);
}

std::string percent(double share) {
  constexpr double kSmallest = 1e-5;  // a smaller risk is not known to that precision
  if (share == 0) return "0 %";
  if (std::abs(share) < kSmallest) return share > 0 ? "< 0.001 %" : "> -0.001 %";
  return fmt::format("{:.3g} %", share * 100);
}

}  // namespace assay::figures
