// scale: exact numbers and shares.
#include "reports/figures/scale.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "probes/core/es6_number.h"

namespace assay::figures {

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
