// Our number formats against those of NVIDIA's headers, code by code and at every tie. No GPU is needed.
#include <bit>
#include <cmath>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include "probes/cuda/quantise.h"
#include "probes/host/gaussian.h"

namespace assay::cuda {
namespace {

std::uint32_t theirs_e4m3(float value) { return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3); }
std::uint32_t theirs_e5m2(float value) { return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2); }
std::uint32_t theirs_e2m1(float value) { return __nv_cvt_float_to_fp4(value, __NV_E2M1, cudaRoundNearest); }
std::uint32_t theirs_fp16(float value) { return static_cast<__half_raw>(__float2half_rn(value)).x; }
std::uint32_t theirs_bf16(float value) { return static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x; }

/// Compares at every number of `format`, half-way between neighbours, and just beside half-way; both signs.
void compare(MiniFloat format, std::uint32_t (*theirs)(float)) {
  for (std::uint32_t code = 0; code < format.largest; ++code) {
    const float here = decode(format, code), next = decode(format, code + 1), middle = here + (next - here) / 2;
    for (const float value : {here, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, next), next}) {
      ASSERT_EQ(encode(format, value), theirs(value)) << value;
      ASSERT_EQ(encode(format, -value), theirs(-value)) << -value;
    }
  }
}

void compare_random(MiniFloat format, std::uint32_t (*theirs)(float), float scale) {
  host::Random random(11);
  for (int i = 0; i < 100'000; ++i) {
    const float value = static_cast<float>(random.unit() - 0.5) * scale;
    ASSERT_EQ(encode(format, value), theirs(value)) << value;
  }
}

}  // namespace

TEST(quantise, fp8_is_encoded_as_nvidia_does) {
  compare(kE4m3, theirs_e4m3);
  compare(kE5m2, theirs_e5m2);
  compare_random(kE4m3, theirs_e4m3, 2000);
  compare_random(kE5m2, theirs_e5m2, 0x1p-12F);
}

TEST(quantise, fp8_saturates_as_nvidia_does) {
  for (const float value : {449.0F, 1e6F, 3e38F}) {
    EXPECT_EQ(encode(kE4m3, value), theirs_e4m3(value));
    EXPECT_EQ(encode(kE5m2, -value), theirs_e5m2(-value));
  }
}

TEST(quantise, fp4_is_encoded_as_nvidia_does) {
  compare(kE2m1, theirs_e2m1);
  compare_random(kE2m1, theirs_e2m1, 20);
}

TEST(quantise, fp16_and_bf16_are_encoded_as_nvidia_does) {
  compare(kFp16, theirs_fp16);
  compare(kBf16, theirs_bf16);
  compare_random(kFp16, theirs_fp16, 8);
  compare_random(kBf16, theirs_bf16, 8);
}

TEST(quantise, fp8_and_fp4_are_decoded_as_nvidia_does) {
  for (std::uint32_t code = 0; code <= kE4m3.largest; ++code) {
    const __half_raw raw = __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), __NV_E4M3);
    EXPECT_EQ(decode(kE4m3, code), __half2float(__half(raw)));
  }
  for (std::uint32_t code = 0; code <= kE5m2.largest; ++code) {
    const __half_raw raw = __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), __NV_E5M2);
    EXPECT_EQ(decode(kE5m2, code), __half2float(__half(raw)));
  }
  for (std::uint32_t code = 0; code < 16; ++code) {
    const __half_raw raw = __nv_cvt_fp4_to_halfraw(static_cast<__nv_fp4_storage_t>(code), __NV_E2M1);
    EXPECT_EQ(decode(kE2m1, code), __half2float(__half(raw)));
  }
}

TEST(quantise, the_scales_of_mxfp8_are_decoded_as_nvidia_does) {
  for (int code = 0; code < 255; ++code) {
    const __nv_bfloat16_raw raw = __nv_cvt_e8m0_to_bf16raw(static_cast<__nv_fp8_storage_t>(code));
    EXPECT_EQ(decode_ue8m0(static_cast<std::uint8_t>(code)), __bfloat162float(__nv_bfloat16(raw))) << code;
  }
}

TEST(quantise, tf32_keeps_ten_bits_and_rounds_to_nearest) {
  host::Random random(12);
  for (int i = 0; i < 100'000; ++i) {
    const float value = static_cast<float>(random.unit() - 0.5) * 8;
    const float rounded = round_tf32(value);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(rounded) & 0x1fffU, 0U);
    ASSERT_LE(std::abs(rounded - value), std::abs(value) * 0x1p-11F);
  }
}

}  // namespace assay::cuda
