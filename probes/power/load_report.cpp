// load_report: writes and reads numbers separated by spaces; nan means not counted.
#include "probes/power/load_report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

namespace assay::power {
namespace {

constexpr std::size_t kMostRates = 20'000, kBeforeRates = 4;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::optional<double> told(double number) { return std::isnan(number) ? std::nullopt : std::optional(number); }

}  // namespace

std::string text_of(const LoadReport& told) {
  std::string text = fmt::format("{:.17g} {:.17g} {:.17g} {:.17g}", told.level_error, told.late_s,
                                 told.throttled_s.value_or(kNone), told.brake_s.value_or(kNone));
  const std::size_t count = std::min(told.rates.size(), kMostRates);
  for (std::size_t i = 0; i < count; ++i) text += fmt::format(" {:.17g}", told.rates[i]);
  return text;
}

LoadReport load_told_in(const std::string& text) {
  std::vector<double> all;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    all.push_back(std::strtod(at, &end));
    if (end == at) throw std::runtime_error("a rank sent fewer numbers than due");
    at = *end == ' ' ? end + 1 : end;
  }
  if (all.size() < kBeforeRates) throw std::runtime_error("a rank said too few numbers");
  return {.level_error = all[0],
          .late_s = all[1],
          .throttled_s = told(all[2]),
          .brake_s = told(all[3]),
          .rates = {all.begin() + kBeforeRates, all.end()}};
}

}  // namespace assay::power
