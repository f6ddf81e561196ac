// portable_math: series after a reduction of the argument by exact steps.
#include "probes/core/portable_math.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

#if defined(__FAST_MATH__)
#error "-ffast-math lets the compiler reorder arithmetic, and a dossier from another build would then be refused"
#endif

namespace assay {
namespace {

static_assert(FLT_EVAL_METHOD == 0, "double must be computed as double, or results differ from other machines");
static_assert(std::numeric_limits<double>::is_iec559);

// ln 2 in two parts: the first has 21 trailing zero bits, so that its product with an exponent is exact (fdlibm,
// e_exp.c).
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kLog2OfE = 1.44269504088896338700;

constexpr std::size_t kExpTerms = 16;  // 0.3466^16 / 16! is 2e-21
constexpr std::size_t kLogTerms = 12;  // 0.1716^(2 * 12) / 25 is 2e-20

constexpr std::array<double, kExpTerms> inverse_factorials() {
  std::array<double, kExpTerms> terms = {};
  double factorial = 1;
  for (std::size_t i = 0; i < kExpTerms; ++i) {
    if (i > 0) factorial *= static_cast<double>(i);
    terms[i] = 1 / factorial;
  }
  return terms;
}

using Text = std::array<char, 32>;

std::string_view up_to(const Text& text, const char* end) {
  return {text.data(), static_cast<std::size_t>(end - text.data())};
}

double parsed(std::string_view text) {
  double value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);  // written by to_chars, or by hand below
  return value;
}

}  // namespace

double portable_exp(double x) {
  constexpr double kLeast = -745.14;  // below it the nearest double is 0
  constexpr double kMost = 709.79;
  if (std::isnan(x)) return x;
  if (x < kLeast) return 0;
  if (x > kMost) return std::numeric_limits<double>::infinity();
  const double exponent = std::floor(x * kLog2OfE + 0.5);
  const double rest = (x - exponent * kLn2High) - exponent * kLn2Low;
  static constexpr auto kTerms = inverse_factorials();
  double sum = 0;
  for (std::size_t i = kExpTerms; i > 0; --i) sum = sum * rest + kTerms[i - 1];
  return std::ldexp(sum, static_cast<int>(exponent));
}

double portable_log(double x) {
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (!(x > 0) || std::isinf(x)) return x > 0 ? x : std::numeric_limits<double>::quiet_NaN();
  constexpr double kRootOfHalf = 0.70710678118654752440;
  int exponent = 0;
  double fraction = std::frexp(x, &exponent);
  if (fraction < kRootOfHalf) {
    fraction *= 2;
    --exponent;
  }
  // ln f = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 + ...) with |s| at most 0.1716.
  const double s = (fraction - 1) / (fraction + 1);
  const double square = s * s;
  double sum = 0;
  for (std::size_t i = kLogTerms; i > 0; --i) sum = sum * square + 1 / static_cast<double>(2 * i - 1);
  return exponent * kLn2High + (2 * s * sum + exponent * kLn2Low);
}

double portable_hypot(double a, double b) {
  const double larger = std::max(std::abs(a), std::abs(b));
  const double smaller = std::min(std::abs(a), std::abs(b));
  if (smaller == 0 || std::isinf(larger)) return larger;
  const double ratio = smaller / larger;
  return larger * std::sqrt(1 + ratio * ratio);
}

int decimal_exponent(double value) {
  Text text;
  const auto words =
      up_to(text, std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr);
  const auto digits = words.substr(words.find('e') + 1);
  int exponent = 0;
  const std::size_t sign = digits.front() == '+' ? 1 : 0;                                // from_chars takes no plus
  (void)std::from_chars(digits.data() + sign, digits.data() + digits.size(), exponent);  // written by to_chars
  return exponent;
}

double power_of_ten(int exponent) {
  Text text = {'1', 'e'};
  return parsed(up_to(text, std::to_chars(text.data() + 2, text.data() + text.size(), exponent).ptr));
}

double to_12_digits(double value) {
  if (!std::isfinite(value)) return value;
  Text text;
  constexpr int kDecimals = 11;
  return parsed(up_to(
      text,
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, kDecimals).ptr));
}

}  // namespace assay
