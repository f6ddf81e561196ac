// Functions without libm: against libm's, at their edges, and that nothing which judges or reports calls libm's
// instead.
#include "probes/core/portable_math.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "probes/core/statistics.h"
#include "tests/unit/paths.h"

namespace assay {
namespace {

double relative_error(double value, double expected) { return value == expected ? 0 : std::abs(value / expected - 1); }

TEST(PortableMath, functions_agree_with_libm_to_15_digits) {
  for (double x = -700; x <= 700; x += 0.0937) {
    EXPECT_LT(relative_error(portable_exp(x), std::exp(x)), 1e-15) << x;
    const double y = std::exp(x);
    EXPECT_LT(relative_error(portable_log(y), std::log(y)), 1e-15) << y;
    EXPECT_LT(relative_error(portable_hypot(x, 3), std::hypot(x, 3)), 1e-15) << x;
  }
  for (double y = 0.9; y < 1.1; y += 0.00037) EXPECT_NEAR(portable_log(y), std::log(y), 1e-15) << y;
}

TEST(PortableMath, edges_are_those_of_the_functions) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(-800), 0);
  EXPECT_EQ(portable_exp(-kInfinity), 0);
  EXPECT_EQ(portable_exp(800), kInfinity);
  EXPECT_TRUE(std::isnan(portable_exp(std::nan(""))));
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_log(0), -kInfinity);
  EXPECT_EQ(portable_log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(portable_log(-1)));
  EXPECT_NEAR(portable_log(5e-324), -744.4400719213812, 1e-12);
  EXPECT_EQ(portable_hypot(0, 0), 0);
  EXPECT_DOUBLE_EQ(portable_hypot(3e200, 4e200), 5e200);
  EXPECT_EQ(portable_hypot(-3, 4), 5);
}

TEST(PortableMath, powers_and_exponents_of_ten_are_exact) {
  EXPECT_EQ(power_of_ten(-3), 0.001);
  EXPECT_EQ(power_of_ten(22), 1e22);
  EXPECT_EQ(power_of_ten(300), 1e300);
  EXPECT_EQ(decimal_exponent(1000), 3);
  EXPECT_EQ(decimal_exponent(std::nextafter(1000.0, 0.0)), 2);  // floor(log10()) says 3
  EXPECT_EQ(decimal_exponent(-0.1), -1);
  EXPECT_EQ(decimal_exponent(5e-324), -324);
  for (int i = -300; i <= 300; ++i) EXPECT_EQ(decimal_exponent(power_of_ten(i)), i);
}

TEST(PortableMath, twelve_digits_hide_the_last_bits) {
  EXPECT_EQ(to_12_digits(0.97851562500000333), 0.978515625);
  EXPECT_EQ(to_12_digits(std::nextafter(0.1, 1.0)), 0.1);
  EXPECT_EQ(to_12_digits(-1.234567890123456e-7), -1.23456789012e-7);
  EXPECT_EQ(to_12_digits(0), 0);
  EXPECT_TRUE(std::isinf(to_12_digits(std::numeric_limits<double>::infinity())));
}

TEST(PortableMath, the_normal_distribution_agrees_with_erfc_to_12_digits) {
  for (double z = -37; z <= 8; z += 0.0117)
    EXPECT_LT(relative_error(normal_cdf(z), std::erfc(-z / std::sqrt(2.0)) / 2), 5e-13) << z;
}

TEST(PortableMath, a_normal_quantile_leads_back_to_its_probability) {
  for (double p = 1e-12; p < 1; p += 0.00137) {
    EXPECT_LT(relative_error(normal_cdf(normal_quantile(p)), p), 1e-12) << p;
    EXPECT_NEAR(normal_quantile(p), -normal_quantile(1 - p), p < 1e-6 ? 1e-3 : 1e-10)
        << p;  // 1 - p has few digits of a small p
  }
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-15);
  EXPECT_NEAR(normal_quantile(1e-300), -37.0471, 1e-3);
  EXPECT_EQ(normal_quantile(0), normal_quantile(1e-300));
}

TEST(PortableMath, coverage_is_the_exact_binomial_sum) {
  const auto level = [](std::size_t n) {
    std::vector<double> samples(n);
    for (std::size_t i = 0; i < n; ++i) samples[i] = static_cast<double>(i);
    return order_statistic_interval(samples, 0.5, 0.95)->level;
  };
  EXPECT_EQ(level(6), 0.96875);           // 1 - 2 / 2^6
  EXPECT_EQ(level(10), 0.978515625);      // 1 - 2 * 11 / 2^10
  EXPECT_EQ(level(15), 0.96484375);       // 1 - 2 * 576 / 2^15
  EXPECT_EQ(level(1000), 0.95370880264);  // from exact fractions
  EXPECT_EQ(level(100'000), 0.95044428533);
}

TEST(PortableMath, nothing_that_judges_or_reports_calls_libm) {
  const std::regex call(
      R"(\b(std::)?(exp2?|expm1|log(2|10|1p)?|pow|cbrt|hypot|[lt]gamma|erfc?|sinh?|cosh?|tanh?|a(sin|cos|tan)h?|atan2|fma|lerp)f?\()");
  std::vector<std::string> found;
  std::size_t files = 0;
  for (const char* folder : {"probes/core", "orchestrator", "reports"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_file(folder))) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h") continue;
      ++files;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        const std::string code = line.substr(0, line.find("//"));
        if (std::regex_search(code, call)) found.push_back(entry.path().filename().string() + ": " + line);
      }
    }
  }
  EXPECT_GT(files, 200U);
  EXPECT_EQ(found, std::vector<std::string>{});
}

}  // namespace
}  // namespace assay
