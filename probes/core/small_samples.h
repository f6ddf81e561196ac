// small_samples: the distributions that decide with a handful of runs: Student's t, Fisher's F and the tails of the
// binomial. Only out of portable_math.h, so that they are the same on every processor.
#pragma once

#include <cstddef>

namespace assay {

/// Natural logarithm of the gamma function for `x` > 0, absolute error below 1e-13 times the larger of 1 and the
/// result: Stirling's series (Abramowitz & Stegun 6.1.41) from 16 upwards, the recurrence below.
double portable_log_gamma(double x);

/// The regularised incomplete beta function I_x(a, b) for `a`, `b` > 0 and `x` in 0..1, by its continued fraction
/// (Abramowitz & Stegun 26.5.8) with Lentz's method. Relative error below 1e-11 for parameters up to 1e4.
double incomplete_beta(double a, double b, double x);

/// Distribution function of Student's t with `degrees` > 0 of freedom, which need not be whole; infinity gives the
/// normal distribution, and so does anything beyond 1e7.
double student_cdf(double t, double degrees);

/// Its inverse for 0 < p < 1, relative error below 1e-11: 2.919985580 for 0.95 and 2 degrees.
double student_quantile(double p, double degrees);

/// P(F > `f`) of Fisher's F with these degrees of freedom.
double f_upper_tail(double f, double degrees_above, double degrees_below);

/// P(X >= `least`) for X ~ Binomial(`n`, `p`), 0 < p < 1.
double binomial_at_least(std::size_t n, double p, std::size_t least);

/// Upper bound of the probability of an event that was seen `seen` times in `n`, one-sided with this confidence:
/// Clopper and Pearson 1934. 200 without one bound it by 1.5 % with 0.95. A lower bound is 1 less that of the opposite
/// event.
double share_at_most(std::size_t n, std::size_t seen, double confidence);

}  // namespace assay
