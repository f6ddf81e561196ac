// STREAM's kernels and their verification; the pointer cycle; memory from the kernel.
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "probes/core/host_facts.h"
#include "probes/host/buffer.h"
#include "probes/host/chase.h"
#include "probes/host/stream.h"

namespace assay::host {
namespace {

constexpr std::size_t kElements = 1024;
constexpr Bytes kArray = {kElements * sizeof(double)};

/// Three small arrays after `rounds` rounds.
struct Streamed {
  Streamed(Stores stores, int rounds) : a(kArray, Pages::base), b(kArray, Pages::base), c(kArray, Pages::base) {
    stream_fill(arrays());
    for (int round = 0; round < rounds; ++round) {
      for (const StreamKernel kernel : kStreamKernels) stream_code(stores).pass(kernel, arrays());
    }
  }
  StreamArrays arrays() { return {.a = a.as<double>(), .b = b.as<double>(), .c = c.as<double>()}; }
  Buffer a, b, c;
};

std::vector<Link> cycle(std::size_t length, std::uint64_t seed) {
  std::vector<Link> links(length);
  make_cycle(links, seed);
  return links;
}

}  // namespace

TEST(stream, both_kinds_of_stores_leave_the_values_that_the_rounds_demand) {
  for (const Stores stores : {Stores::regular, Stores::non_temporal}) {
    Streamed streamed(stores, 5);
    EXPECT_EQ(stream_mismatches(streamed.arrays(), 5), 0U);
  }
}

TEST(stream, one_round_is_worked_out_by_hand) {
  Streamed streamed(Stores::regular, 1);
  EXPECT_DOUBLE_EQ(streamed.arrays().b[7], 0.42);
  EXPECT_DOUBLE_EQ(streamed.arrays().c[7], 1.42);
  EXPECT_DOUBLE_EQ(streamed.arrays().a[7], 0.42 + 0.42 * 1.42);
}

TEST(stream, one_wrong_element_of_any_array_is_one_mismatch) {
  Streamed streamed(Stores::regular, 3);
  const auto arrays = streamed.arrays();
  arrays.a[0] *= 1 + 1e-12;
  EXPECT_EQ(stream_mismatches(arrays, 3), 1U);
  arrays.b[kElements / 2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(stream_mismatches(arrays, 3), 2U);
  arrays.c[kElements - 1] = 0;
  EXPECT_EQ(stream_mismatches(arrays, 3), 3U);
}

TEST(stream, a_lost_round_makes_every_element_wrong) {
  Streamed streamed(Stores::regular, 3);
  EXPECT_EQ(stream_mismatches(streamed.arrays(), 4), 3 * kElements);
}

TEST(stream, a_thousand_rounds_do_not_overflow) {
  Streamed streamed(Stores::regular, 1000);
  EXPECT_EQ(stream_mismatches(streamed.arrays(), 1000), 0U);
}

TEST(chase, every_length_gives_one_cycle_through_all_links) {
  for (const std::size_t length : {2U, 3U, 10U, 1000U}) {
    for (const std::uint64_t seed : {0U, 1U, 2U}) EXPECT_EQ(cycle_length(cycle(length, seed)), length);
  }
}

TEST(chase, every_cycle_of_four_occurs) {
  // Four links have 3! = 6 cycles; 200 seeds miss one of them with probability under 1e-15.
  std::set<std::vector<std::ptrdiff_t>> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto links = cycle(4, seed);
    std::vector<std::ptrdiff_t> order;
    order.reserve(links.size());
    for (const Link& link : links) order.push_back(link.next - links.data());
    seen.insert(order);
  }
  EXPECT_EQ(seen.size(), 6U);
}

TEST(chase, a_split_cycle_is_not_taken_for_a_full_one) {
  auto links = cycle(100, 1);
  std::swap(links[0].next, links[50].next);
  EXPECT_LT(cycle_length(links), 100U);
}

TEST(chase, a_walk_round_the_cycle_comes_home_and_not_before) {
  const auto links = cycle(100, 1);
  EXPECT_EQ(walk(links.data(), 100), links.data());
  EXPECT_NE(walk(links.data(), 99), links.data());
}

TEST(buffer, is_aligned_to_huge_pages_and_starts_as_zeros) {
  Buffer buffer({3'000'000}, Pages::huge);
  const auto bytes = buffer.as<std::byte>();
  EXPECT_EQ(bytes.size(), 3'000'000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % (2 << 20), 0U);
  EXPECT_EQ(bytes.back(), std::byte{0});
}

TEST(buffer, base_pages_are_not_counted_as_huge) {
  Buffer buffer({8 << 20}, Pages::base);
  std::ranges::fill(buffer.as<std::byte>(), std::byte{1});
  EXPECT_EQ(buffer.huge_share(), 0);
}

TEST(buffer, a_refused_mapping_says_how_much_was_asked_for) {
  try {
    const Buffer buffer({std::uint64_t{1} << 60}, Pages::base);
    FAIL() << "an exabyte was granted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("1.153 EB"), std::string::npos) << error.what();
  }
}

TEST(buffer, what_is_affordable_leaves_half_of_memory_to_others) {
  const Bytes all = total_memory();
  EXPECT_EQ(affordable({1'000}, 3, {64}), Bytes{960});
  EXPECT_EQ(affordable({1}, 3, {64}), Bytes{64});
  EXPECT_LE(affordable(all, 3, {64}).count * 3, all.count / 2);
}

}  // namespace assay::host
