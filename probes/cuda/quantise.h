// quantise: the number formats of matrix products, to bits and back. Plain constexpr C++: the kernels that make
// operands and the host that checks results run the same lines.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace assay::cuda {

/// A binary floating-point format with a sign bit on top and fewer mantissa bits than binary32.
struct MiniFloat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  std::uint32_t largest = 0;   ///< code of the largest finite number
  bool unsigned_zero = false;  ///< whether the code of -0 is not a number (FNUZ)

  /// All bits of a code.
  [[nodiscard]] constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
};

/// FP8 formats of Micikevicius et al. 2022 (arXiv 2209.05433): E4M3 has no infinity and reaches 448.
inline constexpr MiniFloat kE4m3{4, 3, 7, 0x7e}, kE5m2{5, 2, 15, 0x7b};
/// FP8 formats FNUZ of Noune et al. 2022 (arXiv 2206.02915), which gfx942 multiplies: biases one higher, no infinity,
/// no -0, whose code is the only one that is not a number; they reach 240 and 57344.
inline constexpr MiniFloat kE4m3Fnuz{4, 3, 8, 0x7f, true}, kE5m2Fnuz{5, 2, 16, 0x7f, true};
/// FP4 of the OCP Microscaling specification 1.0: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
inline constexpr MiniFloat kE2m1{2, 1, 1, 0x7};
/// IEEE 754 binary16, bfloat16, and TF32 (19 bits, here in the upper ones of a binary32, see encode_tf32).
inline constexpr MiniFloat kFp16{5, 10, 15, 0x7bff}, kBf16{8, 7, 127, 0x7f7f}, kTf32{8, 10, 127, 0x3fbff};

/// The code of the number of `format` nearest to finite `value`, ties to even; beyond the largest finite number the
/// largest.
constexpr std::uint32_t encode(MiniFloat format, float value) {
  constexpr int kSingleMantissa = 23, kSingleBias = 127;
  constexpr std::uint32_t kMantissaMask = 0x7fffff, kSign = 0x80000000U;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits & kSign) != 0 ? 1U << (format.bits() - 1) : 0U;
  const int biased = static_cast<int>((bits & ~kSign) >> kSingleMantissa);
  const std::uint32_t significand = biased == 0 ? bits & kMantissaMask : (bits & kMantissaMask) | (kMantissaMask + 1);
  const int exponent = (biased == 0 ? 1 : biased) - kSingleBias;
  const int target = exponent + format.bias;  // below 1 the number is subnormal there
  const int shift = kSingleMantissa - format.mantissa_bits + (target < 1 ? 1 - target : 0);
  const std::uint32_t zero = format.unsigned_zero ? 0U : sign;
  if (shift > kSingleMantissa + 2) return zero;  // less than half of the smallest number
  const std::uint32_t kept = significand >> shift, rest = significand & ((1U << shift) - 1), half = 1U << (shift - 1);
  const std::uint32_t rounded = kept + (rest > half || (rest == half && (kept & 1U) != 0) ? 1U : 0U);
  // The hidden bit adds one to the exponent field; so does a carry out of the mantissa, as it should.
  const std::uint32_t code =
      rounded + (target > 1 ? static_cast<std::uint32_t>(target - 1) << format.mantissa_bits : 0U);
  return code == 0 ? zero : sign | (code < format.largest ? code : format.largest);
}

/// 2^exponent for -126 <= exponent <= 127.
constexpr float power_of_two(int exponent) {
  constexpr int kSingleMantissa = 23, kSingleBias = 127;
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + kSingleBias) << kSingleMantissa);
}

/// The number that `code` encodes; codes beyond the largest finite number are undefined. Exact for every format
/// here: binary32 holds them all.
constexpr float decode(MiniFloat format, std::uint32_t code) {
  const std::uint32_t magnitude = code & ((1U << (format.bits() - 1)) - 1);
  const int field = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  const float significand = static_cast<float>(field == 0 ? mantissa : mantissa + (1U << format.mantissa_bits));
  // Two exact steps, since 2^(1 - bias - mantissa_bits) of the wide formats is below the smallest normal number.
  const float value =
      significand * power_of_two(-format.mantissa_bits) * power_of_two((field == 0 ? 1 : field) - format.bias);
  return code != magnitude ? -value : value;
}
static_assert(decode(kE4m3, encode(kE4m3, 1000.0F)) == 448.0F);
static_assert(decode(kE5m2, encode(kE5m2, -3.3F)) == -3.5F);
static_assert(decode(kE4m3Fnuz, encode(kE4m3Fnuz, -1000.0F)) == -240.0F);
static_assert(decode(kE5m2Fnuz, kE5m2Fnuz.largest) == 57344.0F && encode(kE5m2Fnuz, -0x1p-20F) == 0);
static_assert(decode(kE2m1, encode(kE2m1, 2.5F)) == 2.0F);  // a tie, to even
static_assert(decode(kFp16, encode(kFp16, 1.0009765625F)) == 1.0009765625F);
static_assert(decode(kBf16, encode(kBf16, 1.00390625F)) == 1.0F);

/// `value` rounded to TF32, as the binary32 number the hardware reads: the lower 13 bits are zero.
constexpr float round_tf32(float value) {
  constexpr int kLowerBits = 13;
  const std::uint32_t code = encode(kTf32, value);
  return std::bit_cast<float>(code << kLowerBits);
}
static_assert(round_tf32(1.0F + 0x1p-11F) == 1.0F);
static_assert(round_tf32(-1.0F - 0x1p-10F) == -1.0F - 0x1p-10F);

/// `value` times 32, rounded to the nearest whole number and held within -127..127: a standard normal number uses the
/// range up to four standard deviations.
constexpr std::int8_t encode_int8(float value) {
  constexpr float kScale = 32, kLargest = 127;
  const float scaled = value * kScale;
  const float held = scaled > kLargest ? kLargest : scaled < -kLargest ? -kLargest : scaled;
  return static_cast<std::int8_t>(static_cast<int>(held < 0 ? held - 0.5F : held + 0.5F));
}
static_assert(encode_int8(1) == 32 && encode_int8(-9) == -127);

/// Code of the power-of-two scale (UE8M0: value 2^(code - 127)) of an MXFP8 block of E4M3 elements whose largest
/// magnitude is `largest`: the exponent of `largest` less 8, the largest exponent of E4M3 (OCP Microscaling 1.0,
/// section 6.3). Elements above 448 scales saturate, as the specification has it.
constexpr std::uint8_t mx_scale(float largest) {
  constexpr int kSingleMantissa = 23, kLargestExponent = 8;
  const int biased = static_cast<int>(std::bit_cast<std::uint32_t>(largest) >> kSingleMantissa);
  return static_cast<std::uint8_t>(biased <= kLargestExponent ? 0 : biased - kLargestExponent);
}
/// The value of a UE8M0 code; 0 means 2^-127.
constexpr float decode_ue8m0(std::uint8_t code) {
  return code == 0 ? 0x1p-127F : power_of_two(static_cast<int>(code) - 127);
}
static_assert(decode_ue8m0(mx_scale(448.0F)) == 1.0F);
static_assert(decode_ue8m0(mx_scale(3.5F)) == 0x1p-7F);

/// Code of the scale (UE4M3: E4M3 without a sign) of an NVFP4 block whose largest magnitude is `largest`: the nearest
/// to largest / 6, 6 being the largest number of E2M1. Never zero, so that a block can be divided by it.
constexpr std::uint8_t nv_scale(float largest) {
  constexpr float kLargestE2m1 = 6;
  const std::uint32_t code = encode(kE4m3, largest / kLargestE2m1);
  return static_cast<std::uint8_t>(code == 0 ? 1 : code);
}
static_assert(decode(kE4m3, nv_scale(6.0F)) == 1.0F);

/// Where the scale of block `block` of line `line` is in the tensor of scales that cuBLASLt reads, when each line
/// has `blocks` of them: tiles of 128 lines and 4 blocks follow each other along the blocks first; inside one, lines 32
/// apart are neighbours (cuBLAS manual, "1D Block Scaling Factors Layout").
constexpr std::size_t scale_index(std::size_t line, std::size_t block, std::size_t blocks) {
  constexpr std::size_t kTileLines = 128, kTileBlocks = 4, kGroup = 32;
  const std::size_t tiles_along = (blocks + kTileBlocks - 1) / kTileBlocks;
  const std::size_t tile = line / kTileLines * tiles_along + block / kTileBlocks;
  return tile * kTileLines * kTileBlocks + line % kGroup * (kTileLines / kGroup * kTileBlocks) +
         line % kTileLines / kGroup * kTileBlocks + block % kTileBlocks;
}
/// Scales to allocate for `lines` lines of `blocks` blocks: whole tiles.
constexpr std::size_t scale_count(std::size_t lines, std::size_t blocks) {
  constexpr std::size_t kTileLines = 128, kTileBlocks = 4;
  return (lines + kTileLines - 1) / kTileLines * kTileLines * ((blocks + kTileBlocks - 1) / kTileBlocks * kTileBlocks);
}
static_assert(scale_index(0, 3, 8) == 3 && scale_index(1, 0, 8) == 16 && scale_index(32, 0, 8) == 4);
static_assert(scale_index(0, 4, 8) == 512 && scale_index(128, 0, 8) == 1024 &&
              scale_count(129, 5) == std::size_t{256} * 8);

}  // namespace assay::cuda
