// Distributions for a handful of runs, against the published tables.
#include "probes/core/small_samples.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace assay {

TEST(small_samples, student_quantiles_are_those_of_the_tables) {
  // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, and their digits beyond it.
  EXPECT_NEAR(student_quantile(0.95, 1), 6.313751515, 1e-8);
  EXPECT_NEAR(student_quantile(0.975, 1), 12.70620474, 1e-7);
  EXPECT_NEAR(student_quantile(0.95, 2), 2.919985580, 1e-9);
  EXPECT_NEAR(student_quantile(0.975, 2), 4.302652730, 1e-9);
  EXPECT_NEAR(student_quantile(0.995, 3), 5.840909310, 1e-9);
  EXPECT_NEAR(student_quantile(0.975, 6), 2.446911851, 1e-9);
  EXPECT_NEAR(student_quantile(0.95, 10), 1.812461123, 1e-9);
  EXPECT_NEAR(student_quantile(0.975, 30), 2.042272456, 1e-9);
  EXPECT_NEAR(student_quantile(0.999, 100), 3.173739493, 1e-8);
  EXPECT_EQ(student_quantile(0.05, 7), -student_quantile(0.95, 7));
  EXPECT_EQ(student_quantile(0.5, 3), 0);
}

TEST(small_samples, student_becomes_normal) {
  EXPECT_NEAR(student_quantile(0.975, std::numeric_limits<double>::infinity()), 1.959963985, 1e-9);
  EXPECT_NEAR(student_quantile(0.975, 1e6), 1.959966357, 1e-8);
  EXPECT_NEAR(student_quantile(0.975, 2e7), student_quantile(0.975, 9e6), 1e-6);
}

TEST(small_samples, a_quantile_is_where_its_distribution_function_says) {
  for (const double degrees : {0.5, 1.0, 2.5, 7.3, 42.0, 1234.5}) {
    for (const double p : {0.6, 0.95, 0.975, 0.9999}) {
      const double t = student_quantile(p, degrees);
      EXPECT_NEAR(student_cdf(t, degrees), p, 1e-11) << degrees << " " << p;
      EXPECT_NEAR(student_cdf(-t, degrees), 1 - p, 1e-11) << degrees << " " << p;
    }
  }
}

TEST(small_samples, f_tails_are_those_of_the_tables) {
  EXPECT_NEAR(f_upper_tail(3.708265, 3, 10), 0.05, 1e-6);
  EXPECT_NEAR(f_upper_tail(11.7789, 2, 14), 0.001, 1e-7);
  EXPECT_NEAR(f_upper_tail(7.7678, 2, 60), 0.001, 1e-6);
  EXPECT_EQ(f_upper_tail(0, 2, 60), 1);
}

TEST(small_samples, binomial_tails_are_sums_of_their_terms) {
  EXPECT_NEAR(binomial_at_least(30, 0.01, 2), 1 - std::pow(0.99, 30) - 30 * 0.01 * std::pow(0.99, 29), 1e-13);
  EXPECT_NEAR(binomial_at_least(10, 0.5, 9), 11.0 / 1024, 1e-13);
  EXPECT_EQ(binomial_at_least(10, 0.5, 0), 1);
  EXPECT_EQ(binomial_at_least(10, 0.5, 11), 0);
}

TEST(share_at_most, is_the_bound_of_clopper_and_pearson) {
  EXPECT_NEAR(share_at_most(200, 0, 0.95), 1 - std::pow(0.05, 1.0 / 200), 1e-9);
  EXPECT_NEAR(share_at_most(10, 1, 0.95), 0.394163, 1e-6);
  EXPECT_NEAR(share_at_most(20, 5, 0.975), 0.491046, 1e-6);  // of the two-sided interval 0.086571 to 0.491046
  EXPECT_NEAR(1 - share_at_most(20, 15, 0.975), 0.086571, 1e-6);
  EXPECT_EQ(share_at_most(5, 5, 0.95), 1);
}

TEST(small_samples, log_gamma_agrees_with_its_known_values) {
  EXPECT_NEAR(portable_log_gamma(0.5), 0.57236494292470008, 1e-14);
  EXPECT_NEAR(portable_log_gamma(1), 0, 1e-14);
  EXPECT_NEAR(portable_log_gamma(10), std::log(362880.0), 1e-13);
  EXPECT_NEAR(portable_log_gamma(1e6), 12815504.569147611, 1e-6);
}

}  // namespace assay
