// gemm_format: how the elements of a matrix product are stored, for the host and for kernels.
#pragma once

#include <cstddef>

namespace assay::cuda {

/// Values of the operands: standard normal numbers, or ones, which overstate the rate.
enum class Pattern { gaussian, constant };

/// How one element is stored.
enum class Format { fp64, fp32, tf32, fp16, bf16, e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, e2m1, int8, int32 };

/// Bits of one element in memory.
constexpr std::size_t bits_of(Format format) {
  switch (format) {
    case Format::fp64:
      return 64;
    case Format::fp32:
    case Format::tf32:
    case Format::int32:
      return 32;
    case Format::fp16:
    case Format::bf16:
      return 16;
    case Format::e2m1:
      return 4;
    default:
      return 8;
  }
}

/// Bits of the whole numbers that a format holds, all of them below 2^bits.
constexpr unsigned whole_bits_of(Format format) {
  switch (format) {
    case Format::fp64:
      return 53;
    case Format::fp32:
      return 24;
    case Format::tf32:
    case Format::fp16:
      return 11;
    case Format::bf16:
      return 8;
    case Format::e4m3:
    case Format::e4m3_fnuz:
      return 4;
    case Format::e5m2:
    case Format::e5m2_fnuz:
      return 3;
    case Format::e2m1:
      return 2;
    case Format::int8:
      return 7;
    case Format::int32:
      return 31;
  }
  return 1;
}

/// Which scales go with the operands: none, one number for each matrix, or one for each block along k.
enum class Scaling { none, tensor, mx, nv };

/// Elements along k that share one scale; 0 where scales do not belong to blocks.
constexpr std::size_t block_of(Scaling scaling) {
  return scaling == Scaling::mx ? 32 : scaling == Scaling::nv ? 16 : 0;
}

}  // namespace assay::cuda
