// Contents of a walk, the faults that they show, classes of errors, and sums in which no errors cancel.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "probes/cuda/detection.h"
#include "probes/cuda/stream_values.h"
#include "probes/cuda/walk_errors.h"
#include "tests/unit/cuda/faults.h"

namespace assay::cuda {
namespace {

constexpr std::uint64_t kSlice = 4096;  // B
constexpr std::uint64_t kBit = std::uint64_t{1} << 17;

WalkError error_at(std::uint64_t offset, std::uint64_t flipped, std::uint64_t content = 0) {
  return {.content = content, .offset = offset, .expected = 0, .found = flipped, .again = flipped};
}

std::vector<std::uint64_t> payload(std::uint64_t words) {
  std::vector<std::uint64_t> all(words);
  for (std::uint64_t i = 0; i < words; ++i) all[i] = payload_word(7, i);
  return all;
}

}  // namespace

TEST(walk, every_pattern_is_followed_by_its_complement_and_comes_back_downwards) {
  for (std::uint64_t number = kPayloadContents; number < walk_contents(2); number += kPatternContents) {
    const WalkWords first = walk_words(number, 5, kSlice), second = walk_words(number + 1, 5, kSlice);
    for (std::uint64_t i = 0; i < 200; ++i) {
      EXPECT_EQ(walk_word(first, i) ^ walk_word(second, i), ~std::uint64_t{0}) << number;
      EXPECT_EQ(walk_word(first, i), walk_word(walk_words(number + 2, 5, kSlice), i)) << number;
    }
    EXPECT_FALSE(walk_content(number + 1).downwards);
    EXPECT_TRUE(walk_content(number + 2).downwards);
  }
}

TEST(walk, payloads_and_addresses_of_different_places_differ) {
  for (const std::uint64_t number : {std::uint64_t{0}, kPayloadContents}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t slice = 0; slice < 20; ++slice)
      for (std::uint64_t i = 0; i < 50; ++i) seen.insert(walk_word(walk_words(number, slice, kSlice), i));
    EXPECT_EQ(seen.size(), 1000U) << number;
  }
}

TEST(walk, any_two_bits_of_a_word_differ_in_one_of_the_stripes) {
  for (int a = 0; a < 64; ++a) {
    for (int b = 0; b < a; ++b) {
      EXPECT_TRUE(std::ranges::any_of(kWalkPatterns,
                                      [&](const WalkPattern& pattern) {
                                        return pattern.name.starts_with("stripes_") &&
                                               ((pattern.base >> a ^ pattern.base >> b) & 1U) != 0;
                                      }))
          << a << " " << b;
    }
  }
}

TEST(walk, a_pass_has_other_random_words_than_the_pass_before) {
  const std::uint64_t number = kPayloadContents + kPatternContents;
  const std::uint64_t next = number + kPatternContents * (kWalkPatterns.size() - 1);
  ASSERT_EQ(kWalkPatterns.at(walk_content(next).pattern).name, "random");
  EXPECT_NE(walk_word(walk_words(number, 0, kSlice), 3), walk_word(walk_words(next, 0, kSlice), 3));
}

TEST(walk, of_right_memory_finds_nothing_and_a_stuck_bit_is_found_whatever_it_is_stuck_at) {
  EXPECT_TRUE(FaultyMemory{.words = std::vector<std::uint64_t>(256)}.walk(1).empty());
  for (const bool one : {false, true}) {
    FaultyMemory memory{.words = std::vector<std::uint64_t>(256)};
    memory.read = [&](std::uint64_t i, std::uint64_t stored) {
      return i != 77 ? stored : one ? stored | kBit : stored & ~kBit;
    };
    EXPECT_EQ(memory.walk(0).size(), 1U);
    const auto errors = memory.walk(1);
    EXPECT_EQ(classes_of(errors).stuck, 1U);
    EXPECT_EQ(errors.front().offset, 77 * sizeof(std::uint64_t));
  }
}

TEST(walk, a_line_that_selects_another_word_is_found) {
  FaultyMemory memory{.words = std::vector<std::uint64_t>(256)};
  memory.write = [](std::vector<std::uint64_t>& all, std::uint64_t i, std::uint64_t word) { all[i & ~64U] = word; };
  memory.read = [&](std::uint64_t i, std::uint64_t) { return memory.words[i & ~std::uint64_t{64}]; };
  EXPECT_GE(memory.walk(0).size(), 128U);
}

TEST(walk, a_bit_that_a_write_of_its_neighbour_turns_is_found_by_the_patterns) {
  for (const int distance : {-1, 1, 64}) {
    FaultyMemory memory{.words = std::vector<std::uint64_t>(256)};
    memory.write = [&](std::vector<std::uint64_t>& all, std::uint64_t i, std::uint64_t word) {
      const bool rises = (all[i] & kBit) == 0 && (word & kBit) != 0;
      all[i] = word;
      if (i == 100 && rises) all[static_cast<std::uint64_t>(100 + distance)] |= kBit;
    };
    EXPECT_FALSE(memory.walk(1).empty()) << distance;
  }
}

TEST(classes, of_errors_are_those_of_their_bits_and_places) {
  using Errors = std::vector<WalkError>;
  EXPECT_EQ(classes_of(Errors{error_at(8, kBit)}), WalkClasses{.single_bit = 1});
  EXPECT_EQ(classes_of(Errors{error_at(8, 0x81)}), WalkClasses{.burst = 1});
  EXPECT_EQ(classes_of(Errors{error_at(8, 0x101)}), WalkClasses{.other = 1});
  Errors lanes, lane_of_warps, apart;
  for (std::uint64_t i = 0; i < 4; ++i) {
    lanes.push_back(error_at(512 * 9 + 16 * i, kBit));
    lane_of_warps.push_back(error_at(16 * 3 + 512 * 7 * i, kBit));
    apart.push_back(error_at(520 * i, kBit));
  }
  EXPECT_EQ(classes_of(lanes), WalkClasses{.warp_aligned = 4});
  EXPECT_EQ(classes_of(lane_of_warps), WalkClasses{.warp_aligned = 4});
  EXPECT_EQ(classes_of(apart), WalkClasses{.single_bit = 4});
  lanes.pop_back();
  EXPECT_EQ(classes_of(lanes), WalkClasses{.single_bit = 3}) << "three may be chance";
}

TEST(classes, a_place_is_stuck_when_the_same_bit_is_wrong_the_same_way_in_several_contents) {
  const std::vector<WalkError> twice = {error_at(8, kBit, 3), error_at(8, kBit | 1, 5)};
  EXPECT_EQ(classes_of(twice).stuck, 1U);
  EXPECT_EQ(classes_of(std::vector{error_at(8, kBit, 3), error_at(16, kBit, 5)}).stuck, 0U);
  std::vector<WalkError> both_ways = twice;
  both_ways[1] = {.content = 5, .offset = 8, .expected = kBit, .found = 0, .again = kBit};
  EXPECT_EQ(classes_of(both_ways).stuck, 0U);
  EXPECT_EQ(classes_of(both_ways).transient, 1U);
}

TEST(classes, and_places_are_said_in_words) {
  const WalkError error{.content = kPayloadContents + 1, .offset = 0x1f8, .expected = 0, .found = 5, .again = 0};
  EXPECT_EQ(
      words_of(error),
      "address inverted at 0x1f8: 0x0000000000000005, not 0x0000000000000000, bits 0 2, right at the second read");
  EXPECT_EQ(
      words_of(WalkClasses{.burst = 1, .transient = 1}, 1, 9),
      "0 single_bit, 1 burst, 0 warp_aligned, 0 other; 0 stuck places, 1 right at the second read; of the first 1 "
      "of 9");
}

TEST(fold, the_sum_of_words_is_that_of_the_payload) {
  for (const std::uint64_t words : {2U, 4096U, 10000U})
    EXPECT_EQ(folded(payload(words)).sum, payload_sum(7, words)) << words;
}

TEST(fold, shows_what_cancels_in_a_sum) {
  const auto right = payload(16384);
  auto wrong = right;
  for (std::size_t lane = 0; lane < 32; ++lane) wrong[4096 + 2 * lane] ^= std::uint64_t{1} << 63;  // an even number
  EXPECT_EQ(folded(wrong).sum, folded(right).sum);
  EXPECT_NE(folded(wrong).fold, folded(right).fold);
  wrong = right;
  wrong[5] ^= 1, wrong[8] ^= 1;  // one falls, one rises
  ASSERT_NE(right[5] & 1, right[8] & 1);
  EXPECT_EQ(folded(wrong).sum, folded(right).sum);
  EXPECT_NE(folded(wrong).fold, folded(right).fold);
  wrong = right;
  wrong[5] ^= std::uint64_t{1} << 63;  // in each of ten passes
  EXPECT_EQ(10 * folded(wrong).sum, 10 * folded(right).sum);
  EXPECT_NE(10 * folded(wrong).fold, 10 * folded(right).fold);
}

TEST(fold, tells_the_words_of_one_thread_and_the_threads_apart) {
  const auto right = payload(16384);
  for (const std::uint64_t other : {std::uint64_t{1}, 2 * sum_vector(0, 1), 2 * sum_vector(1, 0)}) {
    auto wrong = right;
    std::swap(wrong[0], wrong[other]);
    EXPECT_EQ(folded(wrong).sum, folded(right).sum);
    EXPECT_NE(folded(wrong).fold, folded(right).fold) << other;
  }
}

TEST(fold, of_bits_shows_an_error_that_a_sum_of_products_rounds_away) {
  const double right = hbm_start_value(HbmKernel::dot, HbmArray::a, 5);
  const double wrong = std::bit_cast<double>(std::bit_cast<std::uint64_t>(right) ^ 1U);  // the lowest bit
  EXPECT_EQ(static_cast<std::uint64_t>(wrong * 1023), static_cast<std::uint64_t>(right * 1023));
  EXPECT_NE(turned(0, std::bit_cast<std::uint64_t>(wrong)), turned(0, std::bit_cast<std::uint64_t>(right)));
}

TEST(detection, three_events_are_expected_in_the_exposure_at_the_rate_that_is_seen) {
  EXPECT_NEAR(rate_seen(2), 1.498, 0.001);
}

TEST(put_fault, is_of_its_class_at_a_place_of_its_number) {
  using Counted = std::uint64_t WalkClasses::*;
  const std::pair<FaultClass, Counted> cases[] = {{FaultClass::single_bit, &WalkClasses::single_bit},
                                                  {FaultClass::burst, &WalkClasses::burst},
                                                  {FaultClass::warp_aligned, &WalkClasses::warp_aligned}};
  for (const auto& [fault, counted] : cases) {
    std::set<std::uint64_t> places, bits;
    for (std::uint64_t number = 0; number < kFaultsPut; ++number) {
      std::vector<std::uint64_t> words(kFaultWords);
      put_fault(words, fault, number);
      std::vector<WalkError> errors;
      for (std::size_t i = 0; i < words.size(); ++i)
        if (words[i] != 0) errors.push_back(error_at(8 * i, words[i])), places.insert(i), bits.insert(words[i]);
      ASSERT_EQ(errors.size(), fault == FaultClass::warp_aligned ? 32U : 1U) << number;
      EXPECT_EQ(classes_of(errors).*counted, errors.size()) << number;
      put_fault(words, fault, number);
      EXPECT_EQ(words, std::vector<std::uint64_t>(kFaultWords)) << number;
    }
    EXPECT_GT(places.size(), kFaultWords / 8);
    EXPECT_GT(bits.size(), 60U);
  }
}

TEST(put_fault, of_a_stuck_bit_changes_what_differs_from_its_value_and_nothing_else) {
  std::size_t ones = 0;
  for (std::uint64_t number = 0; number < kFaultsPut; ++number) {
    std::vector<std::uint64_t> low(kLeastFaultWords), high(kLeastFaultWords, ~std::uint64_t{0});
    put_fault(low, FaultClass::rare_stuck, number);
    put_fault(high, FaultClass::rare_stuck, number);
    const bool is_one = low != std::vector<std::uint64_t>(kLeastFaultWords);
    EXPECT_NE(is_one, high != std::vector<std::uint64_t>(kLeastFaultWords, ~std::uint64_t{0})) << number;
    ones += is_one ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(ones), kFaultsPut / 2.0, 40);  // five standard deviations
}

TEST(detection, of_an_hour_is_the_share_of_faults_found_times_what_the_check_sees_of_it) {
  struct Case {
    FaultClass fault;
    FaultCount count;
    HourOfCheck hour;
    ShareBounds bounds;
  };
  const Case cases[] = {
      {FaultClass::burst, {256, 256}, {}, {0.98569, 1}},
      {FaultClass::burst, {256, 256}, {.transient = 0.5, .stuck = 1, .rounds = 9}, {0.49285, 0.5}},
      {FaultClass::single_bit, {256, 0}, {}, {0, 0.01431}},
      {FaultClass::rare_stuck, {20, 5}, {.transient = 0.1, .stuck = 1, .rounds = 1}, {0.08657, 0.49105}},
      {FaultClass::rare_stuck, {20, 5}, {.transient = 1, .stuck = 0.9, .rounds = 2}, {0.14908, 0.66687}},
      {FaultClass::rare_stuck, {20, 20}, {.transient = 1, .stuck = 0.9, .rounds = 2}, {0.87447, 0.9}},
  };
  for (const Case& one : cases) {
    const ShareBounds found = found_in_hour(one.fault, one.count, one.hour);
    EXPECT_NEAR(found.low, one.bounds.low, 1e-5) << one.count.put << ' ' << one.hour.rounds;
    EXPECT_NEAR(found.high, one.bounds.high, 1e-5) << one.count.put << ' ' << one.hour.rounds;
  }
  const HourOfCheck results = hour_of_results(2.0 / 64, 64'000, 2);  // 1000 comparisons with each set
  EXPECT_DOUBLE_EQ(results.transient, 2.0 / 64);
  EXPECT_NEAR(results.stuck, 1 - std::pow(0.999, 1000), 1e-12);
}

}  // namespace assay::cuda
