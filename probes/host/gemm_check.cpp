// gemm_check: sampled elements in long double, and Freivalds' check of the whole.
#include "probes/host/gemm_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "probes/host/gaussian.h"

namespace assay::host {
namespace {

constexpr std::size_t kSampledLines = 64;  // 64 rows x 64 columns are 4096 elements
constexpr double kLambda = 8;              // false alarm under 1e-9 for each element at 100,000 terms

/// Written so that a result that is not a number is beyond.
bool beyond(long double error, long double bound) { return !(std::abs(error) <= bound); }

/// Distinct indices below n, ascending, with the first and the last among them: edges are where tilings go wrong.
std::vector<std::size_t> sampled_lines(std::size_t n, Random& random) {
  std::vector<std::size_t> lines(n);
  std::iota(lines.begin(), lines.end(), std::size_t{0});
  if (n <= kSampledLines) return lines;
  std::swap(lines[1], lines[n - 1]);
  for (std::size_t i = 2; i < kSampledLines; ++i) std::swap(lines[i], lines[i + random.below(n - i)]);
  lines.resize(kSampledLines);
  std::ranges::sort(lines);
  return lines;
}

}  // namespace

template <class Real>
double rounding_bound(std::size_t terms) {
  const double k = static_cast<double>(terms);
  return std::min(k, kLambda * std::sqrt(k)) * std::numeric_limits<Real>::epsilon() / 2;
}

template <class Real>
std::uint64_t wrong_samples(const Product<Real>& product, std::uint64_t seed) {
  const auto& [n, a, b, c] = product;
  Random random(seed);
  const auto rows = sampled_lines(n, random);
  const auto columns = sampled_lines(n, random);
  const long double share = rounding_bound<Real>(n);
  std::vector<Real> row(n);
  std::uint64_t wrong = 0;
  for (const std::size_t i : rows) {
    for (std::size_t k = 0; k < n; ++k) row[k] = a[i + k * n];
    for (const std::size_t j : columns) {
      const auto column = b.subspan(j * n, n);
      long double sum = 0, size = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const long double term = static_cast<long double>(row[k]) * column[k];
        sum += term;
        size += std::abs(term);
      }
      if (beyond(static_cast<long double>(c[i + j * n]) - sum, share * size)) ++wrong;
    }
  }
  return wrong;
}

template <class Real>
std::uint64_t wrong_rows(const Product<Real>& product, std::uint64_t seed) {
  const auto& [n, a, b, c] = product;
  Random random(seed);
  std::vector<long double> sign(n), once(n), once_size(n), twice(n), twice_size(n), direct(n);
  for (auto& x : sign) x = (random.bits() >> 63) != 0 ? 1 : -1;
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < n; ++i) {
      const long double element = b[i + j * n];
      once[i] += element * sign[j];
      once_size[i] += std::abs(element);
      direct[i] += c[i + j * n] * sign[j];
    }
  }
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      const long double element = a[i + k * n];
      twice[i] += element * once[k];
      twice_size[i] += std::abs(element) * once_size[k];
    }
  }
  // Each element of row i is off by at most share * sum_k |a_ik||b_kj|; summed over j this is share * (|A| |B| 1)_i.
  const long double share = rounding_bound<Real>(n);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (beyond(direct[i] - twice[i], share * twice_size[i])) ++wrong;
  }
  return wrong;
}

template double rounding_bound<float>(std::size_t);
template double rounding_bound<double>(std::size_t);
template std::uint64_t wrong_samples(const Product<float>&, std::uint64_t);
template std::uint64_t wrong_samples(const Product<double>&, std::uint64_t);
template std::uint64_t wrong_rows(const Product<float>&, std::uint64_t);
template std::uint64_t wrong_rows(const Product<double>&, std::uint64_t);

}  // namespace assay::host
