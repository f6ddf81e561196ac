// portable_math: elementary functions only out of + - * /, sqrt and exact scaling, for numbers that are compared byte
// for byte.
//
// IEEE 754 defines those operations to the last bit and leaves exp, log, pow and their like to each library, whose
// results differ between processors (glibc has variants with and without FMA), versions and architectures. A verdict or
// a report that one machine signs is computed again on another, so nothing that reaches them may call libm for more
// than sqrt, floor, abs and ldexp. The build sets -ffp-contract=off, so that no multiplication and addition are fused
// either.
#pragma once

namespace assay {

/// e to the power of `x`, relative error below 1e-15. 0 below -745, infinity above 709.78.
double portable_exp(double x);

/// Natural logarithm of `x` > 0, absolute error below 1e-15 for `x` near 1, relative error below 1e-15 elsewhere.
double portable_log(double x);

/// sqrt(a * a + b * b) without overflow of the squares, relative error below 1e-15.
double portable_hypot(double a, double b);

/// The exponent of the shortest decimal that reads back as `value`, finite and not 0: 2 for 999.9, 3 for 1000, -1 for
/// 0.1.
int decimal_exponent(double value);

/// The double nearest to 10 to the power of `exponent`, -307 to 308.
double power_of_ten(int exponent);

/// The double nearest to the decimal number of 12 significant digits nearest to `value`: for results of a series, which
/// has no more correct digits than that to show. Values that are not finite stay unchanged.
double to_12_digits(double value);

}  // namespace assay
