// scale: exact numbers and shares.
#include "reports/scale.h"

#include <cmath>

#include <fmt/format.h>

#include "reports/canonical_json.h"

namespace assay {

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
