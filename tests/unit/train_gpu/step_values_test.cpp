// The arithmetic that kernels and hosts share: rounding, values and prints from places, and sums in two passes.
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "workloads/train/engine/host_weights.h"
#include "workloads/train/engine/step_math.h"

namespace assay::train {
namespace {

TEST(Bf16, is_the_nearest_number_and_of_two_the_even_one) {
  struct {
    float value;
    std::uint16_t bits;
  } const cases[] = {
      {1.0F, 0x3F80},        {-3.0F, 0xC040},
      {1.00390625F, 0x3F80},  // halfway from 1 to the next: the even one
      {1.01171875F, 0x3F82},  // halfway from an odd one
      {1.00390637F, 0x3F81},  // just above halfway
      {3.4e38F, 0x7F80},      // above the largest: infinite
      {1e-40F, 0x0001},       // denormal
      {-0.0F, 0x8000},       {std::numeric_limits<float>::infinity(), 0x7F80},
  };
  for (const auto& one : cases) EXPECT_EQ(narrowed<Bf16>(one.value).bits, one.bits) << one.value;
  EXPECT_TRUE(std::isnan(widened(narrowed<Bf16>(std::bit_cast<float>(0x7F800001U)))))
      << "the bits that make it no number are those that rounding drops";
  EXPECT_FALSE(is_finite(std::numeric_limits<float>::infinity()));
  EXPECT_FALSE(is_finite(std::nanf("")));
  EXPECT_TRUE(is_finite(std::numeric_limits<float>::max()));
}

TEST(Bf16, holds_every_number_of_exact_arithmetic) {
  for (int value = -256; value <= 256; ++value)
    EXPECT_EQ(widened(narrowed<Bf16>(static_cast<float>(value))), static_cast<float>(value));
}

TEST(NormalParts, in_fp32_give_finite_numbers_near_those_of_fp64_for_any_bits) {
  for (const std::uint64_t bits : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0xFFFFFFFF} << 32U,
                                   std::uint64_t{0x80000000}, mixed(1, 2), mixed(3, 4), mixed(5, 6)}) {
    const auto single = normal_parts<float>(bits);
    const auto exact = normal_parts<double>(bits);
    const double one = std::sqrt(-2 * std::log(single.radius)) * std::cos(2 * M_PI * double{single.turn});
    const double other = std::sqrt(-2 * std::log(exact.radius)) * std::cos(2 * M_PI * exact.turn);
    EXPECT_TRUE(std::isfinite(one)) << bits;
    EXPECT_NEAR(one, other, 2e-5 * std::max(1.0, std::abs(other))) << bits;
  }
}

TEST(WeightBlocks, cover_every_number_of_a_rank_once) {
  const ModelShape experts{.layers = 2,
                           .hidden = 48,
                           .ffn = 96,
                           .heads = 12,
                           .kv_heads = 12,
                           .head_dim = 8,
                           .vocab = 96,
                           .moe = Experts{.experts = 8, .top_k = 2, .ffn = 24, .shared = 1}};
  const WeightLayout layout(experts, {.layers = 2, .seq = 16, .tp = 2, .ep = 2, .dp = 2}, 3);
  std::vector<int> times(layout.size(), 0);
  for (const WeightBlock& block : layout.blocks()) {
    for (std::size_t row = 0; row < block.rows; ++row) {
      for (std::size_t i = 0; i < block.count; ++i) ++times.at(block.at(row, i));
    }
  }
  EXPECT_EQ(times, std::vector<int>(layout.size(), 1));
}

// What each tp rank has of a matrix has the bits that the undivided matrix has there.
TEST(WeightBlocks, of_a_divided_rank_draw_what_the_undivided_rank_draws) {
  const ModelShape& m = kTinyDense;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> whole;
  for (const WeightBlock& block : WeightLayout(m, {.layers = 2, .seq = 16}, 0).blocks()) {
    for (std::size_t row = 0; row < block.rows; ++row) {
      for (std::size_t i = 0; i < block.count; ++i)
        whole[{block.id, block.place_of(row, i)}] = block.bits(kStepSeed, row, i);
    }
  }
  std::size_t found = 0;
  for (const std::int64_t rank : {0, 1}) {
    for (const WeightBlock& block : WeightLayout(m, {.layers = 2, .seq = 16, .tp = 2}, rank).blocks()) {
      for (std::size_t row = 0; row < block.rows; ++row) {
        for (std::size_t i = 0; i < block.count; ++i) {
          ASSERT_EQ(whole.at({block.id, block.place_of(row, i)}), block.bits(kStepSeed, row, i));
          found += block.printed ? 1 : 0;
        }
      }
    }
  }
  EXPECT_EQ(found, whole.size()) << "gains count on one rank only";
}

TEST(GainParts, added_in_order_are_the_gradient_of_a_host_bit_by_bit) {
  for (const std::size_t rows : {1U, 31U, 32U, 33U, 100U}) {
    for (const bool exact : {false, true}) {
      constexpr std::size_t kColumns = 72;  // a whole vector of columns and a rest
      std::vector<float> x(rows * kColumns), above(x.size()), gain(kColumns, 1), inverse(rows), gradient(x.size()),
          host(kColumns, 2), parts(kColumns, 2);
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = exact ? whole_weight(mixed(1, i)) : static_cast<float>(mixed(1, i) % 1000) / 999;
        above[i] = exact ? whole_weight(mixed(2, i)) : static_cast<float>(mixed(2, i) % 1000) / 999 - 0.5F;
      }
      for (std::size_t row = 0; row < rows; ++row) inverse[row] = 1 + static_cast<float>(row) / 7;
      norm_back({.rows = rows, .columns = kColumns, .exact = exact}, x.data(), gain.data(), inverse.data(),
                above.data(), gradient.data(), host.data());
      for (std::size_t group = 0; group < gain_groups(rows); ++group) {
        for (std::size_t i = 0; i < kColumns; ++i) {
          parts[i] += gain_part(rows, kColumns, x.data(), inverse.data(), above.data(), group, i, exact);
          if (exact) parts[i] = residue(parts[i]);
        }
      }
      EXPECT_EQ(host, parts) << rows << (exact ? " exact" : "");
    }
  }
}

TEST(TokenDraw, has_every_token_of_a_step_once_however_it_is_divided) {
  const auto all = [](const ParallelPlan& plan) {
    std::map<std::uint64_t, std::pair<std::int32_t, std::int32_t>> tokens;
    for (std::int64_t rank = 0; rank < plan.world(); rank += plan.tp) {
      const TokenDraw draw{.places = tokens_of(plan, position_of(plan, rank)), .seed = 7, .vocab = 1000};
      const auto each = static_cast<std::size_t>(draw.places.tokens());
      for (std::int64_t batch = 0; batch < plan.micro_batches; ++batch) {
        for (std::size_t i = 0; i < each; ++i) {
          const std::size_t at = 2 * each * static_cast<std::size_t>(batch) + i;
          const auto place = draw.places.place(batch, static_cast<std::int64_t>(i));
          EXPECT_TRUE(tokens.emplace(place, std::pair(draw.token(at), draw.token(at + each))).second);
        }
      }
    }
    return tokens;
  };
  const auto one = all({.seq = 16, .micro_batch = 2, .micro_batches = 4});
  EXPECT_EQ(one.size(), 128U);
  EXPECT_EQ(one, all({.seq = 16, .micro_batch = 2, .micro_batches = 2, .cp = 2, .dp = 2}));
  for (auto next = std::next(one.begin()), before = one.begin(); next != one.end(); ++next, ++before)
    EXPECT_EQ(before->second.second, next->second.first) << "the token that follows is the next one";
}

}  // namespace
}  // namespace assay::train
