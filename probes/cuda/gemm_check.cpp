// gemm_check: sampling, decoding and the reference.
#include "probes/cuda/gemm_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "probes/cuda/mixed.h"
#include "probes/cuda/quantise.h"

namespace assay::cuda {
namespace {

template <class Stored>
Stored stored_at(std::span<const std::byte> bytes, std::size_t index) {
  Stored value;
  std::memcpy(&value, bytes.data() + index * sizeof(Stored), sizeof(Stored));
  return value;
}

/// An infinity or not-a-number of the 16-bit formats, which decode() does not know.
double decode_16(MiniFloat format, std::uint16_t code) {
  const std::uint32_t magnitude = code & 0x7fffU;
  return magnitude > format.largest ? std::nan("") : decode(format, code);
}

/// The same of the formats of 8 bits without -0.
double decode_fnuz(MiniFloat format, std::uint8_t code) {
  constexpr std::uint8_t kNotANumber = 0x80;
  return code == kNotANumber ? std::nan("") : decode(format, code);
}

double decode_one(Format format, std::span<const std::byte> bytes, std::size_t index) {
  switch (format) {
    case Format::fp64:
      return stored_at<double>(bytes, index);
    case Format::fp32:
    case Format::tf32:
      return stored_at<float>(bytes, index);
    case Format::fp16:
      return decode_16(kFp16, stored_at<std::uint16_t>(bytes, index));
    case Format::bf16:
      return decode_16(kBf16, stored_at<std::uint16_t>(bytes, index));
    case Format::e4m3:
      return decode(kE4m3, stored_at<std::uint8_t>(bytes, index));
    case Format::e5m2:
      return decode(kE5m2, stored_at<std::uint8_t>(bytes, index));
    case Format::e4m3_fnuz:
      return decode_fnuz(kE4m3Fnuz, stored_at<std::uint8_t>(bytes, index));
    case Format::e5m2_fnuz:
      return decode_fnuz(kE5m2Fnuz, stored_at<std::uint8_t>(bytes, index));
    case Format::e2m1:
      return decode(kE2m1, (stored_at<std::uint8_t>(bytes, index / 2) >> (index % 2 * 4)) & 0xfU);
    case Format::int8:
      return stored_at<std::int8_t>(bytes, index);
    case Format::int32:
      return stored_at<std::int32_t>(bytes, index);
  }
  throw std::logic_error("a format without a decoder");
}

}  // namespace

std::vector<std::size_t> sampled_indices(std::size_t size, std::size_t count, std::uint64_t seed) {
  count = std::min(count, size);
  std::vector<std::size_t> indices(count);
  for (std::size_t strip = 0; strip < count; ++strip) {
    const std::size_t begin = size * strip / count, end = size * (strip + 1) / count;
    indices[strip] = begin + mixed(seed * count + strip, 0) % (end - begin);
  }
  // Edges are where tilings go wrong.
  if (count > 0) indices.front() = 0;
  if (count > 1) indices.back() = size - 1;
  return indices;
}

std::vector<double> decode_elements(Format format, std::span<const std::byte> bytes, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = decode_one(format, bytes, i);
  return values;
}

void apply_block_scales(std::span<double> values, std::span<const std::size_t> lines, std::size_t k, Scaling scaling,
                        std::span<const std::byte> scales) {
  const std::size_t block = block_of(scaling);
  if (block == 0) throw std::logic_error("a type without block scales");
  for (std::size_t at = 0; at < lines.size(); ++at) {
    for (std::size_t i = 0; i < k; ++i) {
      const auto code = stored_at<std::uint8_t>(scales, scale_index(lines[at], i / block, k / block));
      values[at * k + i] *= scaling == Scaling::mx ? decode_ue8m0(code) : decode(kE4m3, code);
    }
  }
}

double largest_error(const Exactness& exactness, std::size_t k, double sum, double sum_of_squares, std::size_t parts) {
  constexpr double kDeviations = 4;
  constexpr double kFewestSteps = 8;  // in short sums single products are as large as the partial sums
  const double steps = static_cast<double>(k) / static_cast<double>(exactness.per_step) + kFewestSteps;
  const double largest_partial = kDeviations * std::sqrt(sum_of_squares) + std::abs(sum);
  const double accumulated = steps * exactness.accumulator * largest_partial;
  const double split = parts > 1 ? static_cast<double>(parts) * exactness.output * largest_partial : 0;
  return accumulated + exactness.output * (std::abs(sum) + accumulated) + split;
}

ElementErrors check_elements(const SampledProduct& product, const Exactness& exactness, std::size_t parts) {
  const std::size_t k = product.k, lines = product.a.size() / k, columns = product.b.size() / k;
  ElementErrors errors;
  for (std::size_t i = 0; i < lines; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const double* a = product.a.data() + i * k;
      const double* b = product.b.data() + j * k;
      long double sum = 0;
      double squares = 0;
      for (std::size_t t = 0; t < k; ++t) {
        const long double term = static_cast<long double>(a[t]) * b[t];
        sum += term;
        squares += static_cast<double>(term * term);
      }
      const auto error = static_cast<double>(std::abs(product.d[i * columns + j] - sum));
      const double allowed = largest_error(exactness, k, static_cast<double>(sum), squares, parts);
      // Written so that a result that is not a number is wrong.
      if (!(error <= allowed)) ++errors.wrong;
      if (allowed > 0 && std::isfinite(error)) errors.largest_share = std::max(errors.largest_share, error / allowed);
    }
  }
  return errors;
}

}  // namespace assay::cuda
