// Matrices that are cast to FP8: their scales and codes, when they are cast, and that exact steps find a turned bit.
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "tests/unit/train/ranks.h"
#include "tests/unit/train_gpu/fake_network.h"

namespace assay::train_gpu {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN(), kInfinite = std::numeric_limits<float>::infinity();

TEST(Fp8Scale, maps_the_largest_number_to_the_largest_of_the_format) {
  struct {
    CastShape shape;
    float largest, scale;
  } const cases[] = {
      {{.wide = false}, 448, 1},
      {{.wide = false}, 3, 448.0F / 3},
      {{.wide = true}, 57344, 1},
      {{.wide = true}, 3, 57344.0F / 3},
      {{.wide = false}, 1e4F, 0.0448F},
      {{.wide = false}, 0, 1},  // a matrix of zeros
      {{.wide = false}, 1e-38F, 0x1p126F},
      {{.wide = false, .exact = true}, 3, 128},
      {{.wide = true, .exact = true}, 3, 16384},
      {{.wide = false, .exact = true}, 448, 1},
      {{.wide = false, .exact = true}, 449, 0.5F},
  };
  for (const auto& one : cases) EXPECT_EQ(fp8_scale(one.shape, one.largest), one.scale) << one.largest;
}

// What is infinite or no number may not hide behind the largest number of the format.
TEST(Fp8Scale, of_a_matrix_that_is_not_finite_makes_a_product_that_is_not) {
  for (const bool wide : {false, true}) {
    for (const bool exact : {false, true}) {
      for (const float largest : {kNone, kInfinite}) {
        const CastShape shape{.wide = wide, .exact = exact};
        const float scale = fp8_scale(shape, largest);
        const std::uint8_t code = fp8_code(shape, largest * scale);
        EXPECT_EQ(code, 0x7F) << wide << exact << largest;
      }
    }
  }
}

TEST(Fp8Code, is_the_nearest_number_and_of_two_the_even_one) {
  struct {
    bool wide;
    float value;
    std::uint8_t code;
  } const cases[] = {
      {false, 1, 0x38},        {false, 1.0625F, 0x38},  // halfway: the even one
      {false, 1.1875F, 0x3A},                           // halfway from an odd one
      {false, 1.07F, 0x39},    {false, 448, 0x7E},      {false, 1e30F, 0x7E}, {false, -kInfinite, 0xFE},
      {false, 0x1p-9F, 0x01},  {false, 0x1p-10F, 0x00},  // halfway to the smallest
      {false, kNone, 0x7F},    {true, 1.125F, 0x3C},    {true, 57344, 0x7B},  {true, 1e30F, 0x7B},  // never infinite
      {true, -0x1p-16F, 0x81}, {true, kNone, 0x7F},
  };
  for (const auto& one : cases) EXPECT_EQ(fp8_code({.wide = one.wide}, one.value), one.code) << one.value;
}

TEST(Fp8Casts, of_widths_that_sixteen_does_not_divide_and_of_experts_are_refused) {
  const auto refusal = [](const train::ModelShape& model, std::int64_t seq) -> std::string {
    try {
      check_device_engine(model, {.layers = 2, .seq = seq}, train::FactorType::fp8);
    } catch (const BadParameter& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(train::kTinyDense, 144), "");
  EXPECT_EQ(refusal(train::kTinyDense, 136),
            "seq / (2 cp): 136 is no multiple of 16, which the engine on GPUs needs; the nearest that is: 144");
  EXPECT_EQ(refusal(train::kDivisible, 144).substr(0, 34), "head_dim: 8 is no multiple of 16, ");
  EXPECT_EQ(refusal(train::kExperts, 144),
            "type: fp8 is for models without experts, since rows of an expert are no multiple of 16; the nearest that "
            "runs: bf16");
}

TEST(Fp8Casts, on_a_gpu_below_8_9_are_skipped_with_words) {
  EXPECT_NO_THROW(demand_fp8(8, 9, "GPU-1"));
  EXPECT_NO_THROW(demand_fp8(9, 0, "GPU-1"));
  try {
    demand_fp8(8, 6, "GPU-1");
    FAIL() << "8.6 has no FP8";
  } catch (const Skip& skip) {
    EXPECT_STREQ(skip.what(), "type fp8 needs compute capability 8.9; GPU-1 has 8.6");
  }
}

/// A copy that a cast has made: as it is, or transposed.
struct Turn {
  std::size_t cast = 0;
  bool turned = false;
  int bit = 0;
};
struct Step {
  std::size_t casts = 0;
  WeightPrint gradients;
};

/// Exact gradients of one step, one bit of a code of which is turned where `turn` says so: of one in the middle that is
/// not zero. (Beside a zero, as of a gain, every number is without effect.)
Step step(const std::optional<Turn>& turn) {
  const train::ModelShape small{
      .layers = 1, .hidden = 32, .ffn = 32, .heads = 4, .kv_heads = 4, .head_dim = 8, .vocab = 32};
  const train::RankJob job{.model = small,
                           .plan = {.layers = 1, .seq = 16, .micro_batches = 2},
                           .data = train::DataMode::ring,
                           .factors = train::FactorType::fp8};
  FakeDevice device(job, train::sized(job.plan.seq));
  Step found;
  device.after_cast = [&](std::span<std::uint8_t> plain, std::span<std::uint8_t> turned) {
    if (!turn || found.casts++ != turn->cast) return;
    const auto copy = turn->turned ? turned : plain;
    auto& code = *std::ranges::find_if(copy.subspan(copy.size() / 2), [](std::uint8_t one) { return one % 128 != 0; });
    code = static_cast<std::uint8_t>(code ^ (1U << static_cast<unsigned>(turn->bit)));
  };
  DeviceCore core(job, train::sized(job.plan.seq), device);
  FakeNetwork network;
  FakeCollectives collectives(network, job.plan, 0);
  DeviceLine<FakeCollectives> line(job, core, collectives);
  train::Executor executor(core.ops(), true, core, line);
  core.start(0, train::Part::gradients);
  (void)executor.walk(
      train::Part::gradients, [](std::size_t) {}, [](std::size_t) {});  // fake times
  found.gradients = core.print(true);
  return found;
}

// Four linear layers: their weights once a step, inputs and gradients of outputs for each micro-batch.
TEST(Fp8Casts, of_a_layer_are_made_once_of_each_matrix) { EXPECT_EQ(step(Turn{.cast = 1000}).casts, 4U + 2 * (4 + 4)); }

TEST(Fp8Casts, with_a_turned_bit_in_any_copy_change_the_gradients_of_an_exact_step) {
  const WeightPrint right = step(std::nullopt).gradients;
  EXPECT_EQ(right.not_finite, 0U);
  for (std::size_t cast = 0; cast < 20; ++cast) {
    for (const bool turned : {false, true}) {
      for (int bit = 0; bit < 8; ++bit) {
        const WeightPrint found = step(Turn{.cast = cast, .turned = turned, .bit = bit}).gradients;
        EXPECT_TRUE(found.shared != right.shared || found.not_finite > 0)
            << cast << (turned ? " turned " : " plain ") << bit;
      }
    }
  }
}

}  // namespace
}  // namespace assay::train_gpu
