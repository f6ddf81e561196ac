// The host arithmetic of cuda_gemm: types, shapes, samples, decoding, the reference and what it refuses.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "probes/cuda/gemm_check.h"
#include "probes/cuda/gemm_type.h"
#include "probes/cuda/quantise.h"
#include "probes/host/gaussian.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kLines = 8, kTerms = 2048;

/// Standard normal operands as `format` stores them.
std::vector<double> operands(MiniFloat format, std::uint64_t seed) {
  std::vector<float> numbers(kLines * kTerms);
  host::fill_gaussian(std::span(numbers), seed);
  std::vector<double> stored;
  for (const float number : numbers) stored.push_back(decode(format, encode(format, number)));
  return stored;
}

/// Cuts off all bits of `value` below the first `bits`, as an accumulator does that has no more.
double cut(double value, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::trunc(std::ldexp(fraction, bits)), exponent - bits);
}

/// A product whose accumulator takes in `step` products at a time and keeps `bits` bits.
SampledProduct computed(MiniFloat format, std::size_t step, int bits) {
  SampledProduct product{.k = kTerms, .a = operands(format, 1), .b = operands(format, 2), .d = {}};
  for (std::size_t i = 0; i < kLines; ++i) {
    for (std::size_t j = 0; j < kLines; ++j) {
      double sum = 0;
      for (std::size_t t = 0; t < kTerms; t += step) {
        for (std::size_t u = t; u < t + step; ++u) sum += product.a[i * kTerms + u] * product.b[j * kTerms + u];
        sum = cut(sum, bits);
      }
      product.d.push_back(sum);
    }
  }
  return product;
}

std::vector<std::byte> bytes_from(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::string problem(std::string_view type, GemmShape shape) {
  return shape_problem(gemm_type(type), shape).value_or("");
}

}  // namespace

TEST(gemm_type, every_choice_of_the_parameter_is_a_type) {
  std::string names(kGemmTypeNames);
  for (std::size_t begin = 0; begin < names.size();) {
    const auto end = std::min(names.find(' ', begin), names.size());
    EXPECT_EQ(gemm_type(names.substr(begin, end - begin)).name, names.substr(begin, end - begin));
    begin = end + 1;
  }
  EXPECT_EQ(gemm_type("fp8_e5m2").b, Format::e4m3);
}

TEST(gemm_type, eight_bit_types_need_hopper_or_ada_and_block_scales_blackwell) {
  EXPECT_EQ(gemm_type("bf16").compute, 80);
  EXPECT_EQ(gemm_type("fp8_e4m3").compute, 89);
  EXPECT_EQ(gemm_type("mxfp8").compute, 100);
  EXPECT_EQ(gemm_type("nvfp4").compute, 100);
}

TEST(gemm_type, a_shape_that_does_not_fit_is_refused_with_one_that_does) {
  EXPECT_EQ(problem("bf16", {8192, 8192, 8192}), "");
  EXPECT_EQ(problem("bf16", {8192, 8192, 100}), "k: 100 is no multiple of 8, which bf16 needs; hint: 104 is");
  EXPECT_EQ(problem("mxfp8", {8192, 8176, 8192}), "n: 8176 is no multiple of 32, which mxfp8 needs; hint: 8192 is");
  EXPECT_EQ(problem("fp64", {0, 2, 2}), "m: 0 is not between 1 and 1048576");
  EXPECT_EQ(problem("int8", {16, 16, 262144}),
            "k: the result of int8 may overflow beyond 133144; hint: choose a smaller k");
  EXPECT_EQ(problem("fp16", {8, 8, 65536}),
            "k: the result of fp16 may overflow beyond 65504; hint: choose a smaller k");
}

TEST(gemm_type, a_set_is_the_bytes_of_three_matrices) {
  EXPECT_EQ(set_bytes(gemm_type("bf16"), {2, 3, 4}).count, 2U * (8 + 12 + 6));
  EXPECT_EQ(set_bytes(gemm_type("nvfp4"), {32, 32, 32}).count, 512U + 512 + 2048);
  EXPECT_EQ(set_bytes(gemm_type("int8"), {16, 16, 16}).count, 256U + 256 + 1024);
}

TEST(gemm_type, a_sample_is_long_enough_and_whole_turns_through_all_sets) {
  const SamplePlan usual = plan_sample({0.7e-3}, 2, {0.1});
  EXPECT_EQ(usual.products, 144U);
  EXPECT_EQ(usual.launches, 1U);
  const SamplePlan slow = plan_sample({0.5}, 3, {0.1});
  EXPECT_EQ(slow.products, 3U);
  EXPECT_EQ(slow.launches, 1U);
  const SamplePlan tiny = plan_sample({0x1p-19}, 128, {0x1p-3});
  EXPECT_EQ(tiny.products, 2048U);
  EXPECT_EQ(tiny.launches, 32U);
  const SamplePlan many = plan_sample({0x1p-20}, 5000, {0x1p-3});
  EXPECT_EQ(many.products, 5000U);
  EXPECT_EQ(many.launches, 27U);
}

TEST(quantise, the_block_scale_of_mxfp8_puts_the_largest_element_in_the_top_binade) {
  for (const float largest : {0.01F, 1.0F, 3.7F, 200.0F}) {
    const float scaled = largest / decode_ue8m0(mx_scale(largest));
    EXPECT_GE(scaled, 256.0F) << largest;
    EXPECT_LT(scaled, 512.0F) << largest;
  }
}

TEST(quantise, the_block_scale_of_nvfp4_puts_the_largest_element_near_six) {
  for (const float largest : {0.5F, 1.0F, 3.7F}) {
    EXPECT_NEAR(largest / decode(kE4m3, nv_scale(largest)), 6, 6 * 0x1p-4) << largest;
  }
  EXPECT_GT(decode(kE4m3, nv_scale(0)), 0);
}

TEST(quantise, every_scale_of_a_padded_tensor_has_a_place_of_its_own) {
  constexpr std::size_t kBlocks = 6;
  for (const std::size_t lines : {1U, 127U, 128U, 300U}) {
    std::set<std::size_t> places;
    for (std::size_t line = 0; line < lines; ++line) {
      for (std::size_t block = 0; block < kBlocks; ++block) places.insert(scale_index(line, block, kBlocks));
    }
    EXPECT_EQ(places.size(), lines * kBlocks);
    EXPECT_LT(*places.rbegin(), scale_count(lines, kBlocks));
  }
}

TEST(quantise, numbers_without_minus_zero_are_half_of_the_ocp_ones_and_one_code_is_none) {
  const std::pair<MiniFloat, MiniFloat> formats[] = {{kE4m3Fnuz, kE4m3}, {kE5m2Fnuz, kE5m2}};
  for (const auto& [fnuz, ocp] : formats) {
    for (std::uint32_t code = 0; code <= fnuz.largest; ++code) {
      const float value = decode(fnuz, code);
      if (code <= ocp.largest) {
        EXPECT_EQ(value, decode(ocp, code) / 2) << code;
      }
      EXPECT_EQ(encode(fnuz, value), code);
      EXPECT_EQ(encode(fnuz, -value), code == 0 ? 0 : code | 0x80U);
    }
    EXPECT_EQ(encode(fnuz, -power_of_two(-40)), 0U);
    EXPECT_EQ(encode(fnuz, -1e9F), fnuz.largest | 0x80U);
  }
  const auto none = decode_elements(Format::e4m3_fnuz, bytes_from({0x80}), 1);
  EXPECT_TRUE(std::isnan(none.at(0)));
}

TEST(gemm_type, fp8_is_stored_as_fnuz_where_that_is_asked_and_nothing_else_is) {
  EXPECT_EQ(fnuz_type(gemm_type("fp8_e5m2")).a, Format::e5m2_fnuz);
  EXPECT_EQ(fnuz_type(gemm_type("fp8_e5m2")).b, Format::e4m3_fnuz);
  EXPECT_EQ(&fnuz_type(gemm_type("bf16")), &gemm_type("bf16"));
}

TEST(gemm_check, every_strip_is_sampled_and_so_are_both_edges) {
  const auto indices = sampled_indices(8192, 64, 5);
  ASSERT_EQ(indices.size(), 64U);
  EXPECT_EQ(indices.front(), 0U);
  EXPECT_EQ(indices.back(), 8191U);
  for (std::size_t strip = 0; strip < 64; ++strip) EXPECT_EQ(indices[strip] / 128, strip);
  EXPECT_NE(sampled_indices(8192, 64, 6), indices);
  EXPECT_EQ(sampled_indices(3, 64, 5), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(sampled_indices(1, 64, 5), (std::vector<std::size_t>{0}));
}

TEST(gemm_check, elements_are_read_as_they_are_stored) {
  EXPECT_EQ(decode_elements(Format::e4m3, bytes_from({0x38, 0xb8, 0x7e}), 3), (std::vector<double>{1, -1, 448}));
  EXPECT_EQ(decode_elements(Format::e5m2, bytes_from({0x3c, 0x01}), 2), (std::vector<double>{1, 0x1p-16}));
  EXPECT_EQ(decode_elements(Format::e2m1, bytes_from({0x72, 0x9f}), 4), (std::vector<double>{1, 6, -6, -0.5}));
  EXPECT_EQ(decode_elements(Format::bf16, bytes_from({0x80, 0x3f, 0x00, 0xc0}), 2), (std::vector<double>{1, -2}));
  EXPECT_EQ(decode_elements(Format::fp16, bytes_from({0x00, 0x3c, 0xff, 0x7b}), 2), (std::vector<double>{1, 65504}));
  EXPECT_EQ(decode_elements(Format::int8, bytes_from({0x81}), 1), (std::vector<double>{-127}));
  EXPECT_EQ(decode_elements(Format::int32, bytes_from({0xff, 0xff, 0xff, 0xff}), 1), (std::vector<double>{-1}));
  EXPECT_EQ(decode_elements(Format::fp32, bytes_from({0x00, 0x00, 0x40, 0x40}), 1), (std::vector<double>{3}));
}

TEST(gemm_check, an_infinity_or_not_a_number_of_16_bits_is_none) {
  for (const double value : decode_elements(Format::bf16, bytes_from({0x80, 0x7f, 0xff, 0xff}), 2))
    EXPECT_TRUE(std::isnan(value));
  for (const double value : decode_elements(Format::fp16, bytes_from({0x00, 0x7c, 0xff, 0xff}), 2))
    EXPECT_TRUE(std::isnan(value));
}

TEST(gemm_check, block_scales_are_found_by_line_and_block) {
  std::vector<std::byte> scales(scale_count(130, 2));
  scales[scale_index(129, 1, 2)] = std::byte{128};  // 2^(128 - 127)
  scales[scale_index(129, 0, 2)] = std::byte{127};
  const std::size_t lines[] = {129};
  std::vector<double> values(64, 1.5);
  apply_block_scales(values, lines, 64, Scaling::mx, scales);
  EXPECT_EQ(values[31], 1.5);
  EXPECT_EQ(values[32], 3);
}

TEST(gemm_check, a_product_in_single_precision_is_right) {
  EXPECT_EQ(check_elements(computed(kBf16, 16, 24), gemm_type("bf16").exactness).wrong, 0U);
}

TEST(gemm_check, the_largest_error_is_told_as_a_share_of_its_tolerance) {
  const Exactness exactness = gemm_type("fp8_e4m3").exactness;
  const ElementErrors kept = check_elements(computed(kE4m3, 32, 14), exactness);
  const ElementErrors finer = check_elements(computed(kE4m3, 32, 24), exactness);
  EXPECT_GT(kept.largest_share, 0.02);
  EXPECT_LE(kept.largest_share, 1);
  EXPECT_LT(finer.largest_share, kept.largest_share);
  EXPECT_GT(check_elements(computed(kE4m3, 32, 8), exactness).largest_share, 1);
}

TEST(gemm_check, fp8_products_that_keep_14_bits_are_right) {
  EXPECT_EQ(check_elements(computed(kE4m3, 32, 14), gemm_type("fp8_e4m3").exactness).wrong, 0U);
}

TEST(gemm_check, bf16_products_that_keep_14_bits_are_wrong) {
  EXPECT_GT(check_elements(computed(kBf16, 16, 14), gemm_type("tf32").exactness).wrong, 32U);
}

TEST(gemm_check, partial_sums_that_were_stored_in_the_type_of_the_result_are_right_where_they_are_expected) {
  constexpr std::size_t kParts = 4;
  SampledProduct product = computed(kBf16, 16, 24);
  for (std::size_t i = 0; i < kLines; ++i) {
    for (std::size_t j = 0; j < kLines; ++j) {
      double sum = 0;
      for (std::size_t part = 0; part < kParts; ++part) {
        double partial = 0;
        for (std::size_t t = part * kTerms / kParts; t < (part + 1) * kTerms / kParts; ++t) {
          partial += product.a[i * kTerms + t] * product.b[j * kTerms + t];
        }
        sum = cut(sum + cut(partial, 8), 8);
      }
      product.d[i * kLines + j] = sum;
    }
  }
  EXPECT_GT(check_elements(product, gemm_type("bf16").exactness).wrong, 0U);
  EXPECT_EQ(check_elements(product, gemm_type("bf16").exactness, kParts).wrong, 0U);
  std::ranges::rotate(product.d, product.d.begin() + kLines);
  EXPECT_GT(check_elements(product, gemm_type("bf16").exactness, kParts).wrong, kLines * kLines * 9 / 10);
}

TEST(gemm_check, results_that_belong_to_another_line_are_nearly_all_wrong_even_for_fp8) {
  SampledProduct product = computed(kE4m3, 32, 24);
  std::ranges::rotate(product.d, product.d.begin() + kLines);
  EXPECT_GT(check_elements(product, gemm_type("fp8_e4m3").exactness).wrong, kLines * kLines * 3 / 4);
}

TEST(gemm_check, scales_that_were_ignored_make_everything_wrong) {
  SampledProduct product = computed(kE4m3, 32, 24);
  for (double& value : product.a) value *= kTensorScaleA;
  for (double& value : product.b) value *= kTensorScaleB;
  EXPECT_GT(check_elements(product, gemm_type("fp8_e4m3").exactness).wrong, kLines * kLines * 9 / 10);
}

TEST(gemm_check, one_result_that_is_not_a_number_is_one_mismatch) {
  SampledProduct product = computed(kBf16, 16, 24);
  product.d[5] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(check_elements(product, gemm_type("bf16").exactness).wrong, 1U);
}

TEST(gemm_check, whole_numbers_must_agree_exactly) {
  SampledProduct product{.k = 2, .a = {127, -127}, .b = {127, 127}, .d = {0}};
  EXPECT_EQ(check_elements(product, gemm_type("int8").exactness).wrong, 0U);
  product.d[0] = 1;
  EXPECT_EQ(check_elements(product, gemm_type("int8").exactness).wrong, 1U);
}

TEST(gemm_check, constant_operands_pass_although_their_sums_do_not_cancel) {
  SampledProduct product{
      .k = kTerms, .a = std::vector<double>(kTerms, 1), .b = std::vector<double>(kTerms, 1), .d = {kTerms}};
  EXPECT_EQ(check_elements(product, gemm_type("fp16").exactness).wrong, 0U);
  product.d[0] = kTerms * 1.02;
  EXPECT_EQ(check_elements(product, gemm_type("fp16").exactness).wrong, 1U);
}

}  // namespace assay::cuda
