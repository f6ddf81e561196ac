// Collectives: sizes, buffers, check patterns and batches, on the host.
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "probes/collective/conductor.h"
#include "probes/collective/operation.h"
#include "probes/collective/pattern.h"
#include "probes/core/parameters.h"
#include "probes/core/sizes.h"
#include "probes/core/text.h"
#include "probes/nccl/outcome.h"
#include "probes/nccl/wire.h"

namespace assay::nccl {
namespace {

std::vector<std::uint64_t> counts(const std::vector<Bytes>& sizes) {
  std::vector<std::uint64_t> all;
  for (const auto size : sizes) all.push_back(size.count);
  return all;
}

std::string refusal(const std::string& text) {
  try {
    (void)parse_sizes(text);
  } catch (const BadParameter& error) {
    return error.what();
  }
  return "";
}

TEST(sizes, are_read_as_lists_and_doubling_ranges_ascending_and_once) {
  EXPECT_EQ(counts(parse_sizes("1MiB,8,4MiB..16MiB,8MiB")),
            (std::vector<std::uint64_t>{8, 1 << 20, 4 << 20, 8 << 20, 16 << 20}));
  EXPECT_EQ(counts(parse_sizes("3KiB..10KiB")), (std::vector<std::uint64_t>{3072, 6144}));
  const auto all = parse_sizes("8..16GiB");
  EXPECT_EQ(all.size(), 32U);
  EXPECT_EQ(all.back().count, std::uint64_t{16} << 30);
}

TEST(sizes, that_cannot_be_read_are_refused_with_their_part) {
  EXPECT_NE(refusal("8,,9").find("''"), std::string::npos);
  EXPECT_NE(refusal("8,x").find("'x' is not a size"), std::string::npos);
  EXPECT_NE(refusal("0").find("'0' is not a size"), std::string::npos);
  EXPECT_NE(refusal("16..8").find("'16..8' runs backwards"), std::string::npos);
  EXPECT_NE(refusal("1..1TiB,3..3TiB").find("over the limit of 64"), std::string::npos);
}

TEST(sizes, that_do_not_fit_are_told_apart) {
  const auto fitting = collective::fit_sizes(parse_sizes("8,1KiB,1MiB"), collective::Operation::all_gather,
                                             collective::Element::fp32, 8, {600'000});
  EXPECT_EQ(counts(fitting.kept), (std::vector<std::uint64_t>{1024}));
  EXPECT_EQ(counts(fitting.too_small), (std::vector<std::uint64_t>{8}));        // 1 B for each of 8 ranks
  EXPECT_EQ(counts(fitting.too_large), (std::vector<std::uint64_t>{1 << 20}));  // 1.125 MiB of buffers
}

TEST(memory_for_buffers, leaves_a_reserve_to_NCCL) {
  constexpr std::uint64_t kGibi = std::uint64_t{1} << 30;
  EXPECT_EQ(memory_for_buffers({80 * kGibi}).count, 76 * kGibi);
  EXPECT_EQ(memory_for_buffers({6 * kGibi}).count, 3 * kGibi);
}

TEST(rotated_offset, never_leaves_the_buffer) {
  for (std::uint64_t number = 0; number < 100; ++number)
    EXPECT_LE(collective::rotated_offset(number, 1000, 10'000) + 1000, 10'000U);
}

/// Buffers of all ranks after a collective that works as the operation says, on numbers and words.
std::vector<std::vector<std::uint64_t>> collective(collective::Operation operation, std::size_t chunk,
                                                   const std::vector<std::vector<std::uint64_t>>& source) {
  const std::size_t n = source.size();
  std::vector<std::vector<std::uint64_t>> target(n);
  std::vector<std::uint64_t> sums(collective::reduces(operation) ? source[0].size() : 0, 0);
  for (const auto& one : source) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
  }
  for (std::size_t r = 0; r < n; ++r) {
    switch (operation) {
      case collective::Operation::all_reduce:
      case collective::Operation::reduce_scatter: {
        const auto first = operation == collective::Operation::all_reduce ? 0 : r * chunk;
        target[r].assign(sums.begin() + static_cast<std::ptrdiff_t>(first),
                         sums.begin() + static_cast<std::ptrdiff_t>(first + chunk));
        break;
      }
      case collective::Operation::all_gather:
        for (const auto& one : source) target[r].insert(target[r].end(), one.begin(), one.end());
        break;
      case collective::Operation::all_to_all:
        for (const auto& one : source) {
          const auto share = one.begin() + static_cast<std::ptrdiff_t>(r * chunk);
          target[r].insert(target[r].end(), share, share + static_cast<std::ptrdiff_t>(chunk));
        }
        break;
      case collective::Operation::broadcast:
        target[r] = source[0];
        break;
      case collective::Operation::scatter: {
        const auto share = source[0].begin() + static_cast<std::ptrdiff_t>(r * chunk);
        target[r].assign(share, share + static_cast<std::ptrdiff_t>(chunk));
        break;
      }
      case collective::Operation::send_recv:
        target[r] = source[(r + n - 1) % n];
        break;
    }
  }
  return target;
}

collective::Pattern pattern_of(collective::Operation operation, std::uint32_t rank, std::uint32_t ranks,
                               std::uint64_t chunk, std::uint32_t limit) {
  return {.operation = operation,
          .rank = rank,
          .ranks = ranks,
          .chunk = chunk,
          .seed = 7,
          .modulus = collective::sum_modulus(ranks, limit),
          .sparse = collective::sum_is_sparse(ranks, limit)};
}

/// Elements that a check finds wrong after `operation`, when rank `broken` (if below the ranks) sends zeros.
std::size_t mismatches(collective::Operation operation, std::uint32_t ranks, std::uint32_t limit,
                       std::uint32_t broken) {
  const collective::Shape shape = collective::shape_of(operation, 48 * std::size_t{ranks}, 4, static_cast<int>(ranks));
  std::vector<std::vector<std::uint64_t>> source;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto pattern = pattern_of(operation, rank, ranks, shape.chunk, limit);
    auto& buffer = source.emplace_back(shape.sent);
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = rank == broken ? 0 : collective::sent(pattern, i);
  }
  const auto target = collective(operation, shape.chunk, source);
  std::size_t wrong = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(target[rank].size(), shape.received);
    const auto pattern = pattern_of(operation, rank, ranks, shape.chunk, limit);
    for (std::size_t i = 0; i < target[rank].size(); ++i) {
      if (collective::reduces(operation)) {
        EXPECT_LE(target[rank][i], limit);  // exact in the type
      }
      if (target[rank][i] != collective::received(pattern, i)) ++wrong;
    }
  }
  return wrong;
}

class patterns_of : public testing::TestWithParam<collective::Operation> {};

TEST_P(patterns_of, every_operation_are_what_a_correct_collective_delivers) {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 17U, 300U}) {  // 300: bf16 sums only now and then
    for (const auto element : {collective::Element::bf16, collective::Element::fp16, collective::Element::fp32}) {
      EXPECT_EQ(mismatches(GetParam(), ranks, collective::exact_limit(element), ranks), 0U) << ranks;
    }
  }
}

TEST_P(patterns_of, every_operation_show_a_rank_that_sends_zeros) {
  for (const std::uint32_t ranks : {2U, 8U, 300U})
    EXPECT_GT(mismatches(GetParam(), ranks, collective::exact_limit(collective::Element::bf16), 0), 0U) << ranks;
}

INSTANTIATE_TEST_SUITE_P(collectives, patterns_of,
                         testing::Values(collective::Operation::all_reduce, collective::Operation::all_gather,
                                         collective::Operation::reduce_scatter, collective::Operation::all_to_all,
                                         collective::Operation::broadcast, collective::Operation::scatter,
                                         collective::Operation::send_recv));

TEST(patterns, of_another_seed_are_others) {
  auto pattern = pattern_of(collective::Operation::all_reduce, 0, 8, 1000, 256);
  const auto first = collective::received(pattern, 5) + 1000 * collective::received(pattern, 6) +
                     1'000'000 * collective::received(pattern, 7);
  pattern.seed = 8;
  EXPECT_NE(collective::received(pattern, 5) + 1000 * collective::received(pattern, 6) +
                1'000'000 * collective::received(pattern, 7),
            first);
}

TEST(words, of_operations_and_types_are_in_the_order_of_their_enumerators) {
  EXPECT_EQ(collective::operation_named("all_reduce"), collective::Operation::all_reduce);
  EXPECT_EQ(collective::operation_named("send_recv"), collective::Operation::send_recv);
  EXPECT_EQ(collective::element_named("fp32"), collective::Element::fp32);
  EXPECT_EQ(collective::element_named("bf16"), collective::Element::bf16);
  EXPECT_THROW((void)collective::operation_named("gather"), std::logic_error);
}

TEST(iteration_times, are_the_longest_of_all_ranks) {
  EXPECT_EQ(collective::slowest({{1, 5, 3}, {2, 4, 3.5}}), (std::vector<double>{2, 5, 3.5}));
}

TEST(iteration_times, of_different_number_or_no_sense_are_refused) {
  EXPECT_THROW((void)collective::slowest({{1, 2}, {1}}), std::runtime_error);
  EXPECT_THROW((void)collective::slowest({{1}, {0}}), std::runtime_error);
  EXPECT_THROW((void)collective::slowest({{1}, {std::nan("")}}), std::runtime_error);
}

TEST(batches, begin_with_five_to_warm_up_and_then_fit_the_time) {
  EXPECT_EQ(collective::next_batch(std::nullopt), (collective::Batch{.lead = 5, .counted = 1}));
  EXPECT_EQ(collective::next_batch(1e-5), (collective::Batch{.lead = 1, .counted = 10}));
  EXPECT_EQ(collective::next_batch(0.3), (collective::Batch{.lead = 1, .counted = 3}));
  EXPECT_EQ(collective::next_batch(30), (collective::Batch{.lead = 1, .counted = 1}));
}

TEST(batches, keep_every_time_that_was_measured) {
  std::size_t measured = 0;
  const auto sampling =
      collective::sample_batches({.min_samples = 10, .max_samples = 10}, [&](collective::Batch batch) {
        measured += static_cast<std::size_t>(batch.counted);
        return std::vector<double>(static_cast<std::size_t>(batch.counted), 0.001);
      });
  EXPECT_EQ(sampling.samples.size() + sampling.warmup.size(), measured);
  EXPECT_GE(sampling.samples.size(), 10U);
  EXPECT_EQ(sampling.stopped, "stable");
}

TEST(batches, that_come_back_short_are_an_error) {
  EXPECT_THROW(collective::sample_batches({}, [](collective::Batch) { return std::vector<double>{}; }),
               std::runtime_error);
}

TEST(rates, are_the_amount_over_each_time) {
  const auto rates = collective::per_second({.samples = {0.5, 0.25}, .warmup = {1}, .stopped = "fixed"}, 8);
  EXPECT_EQ(rates.samples, (std::vector<double>{16, 32}));
  EXPECT_EQ(rates.warmup, (std::vector<double>{8}));
  EXPECT_EQ(rates.stopped, "fixed");
}

TEST(hexadecimal, goes_both_ways_and_refuses_the_rest) {
  const std::string bytes("\x00\x7f\xff\n", 4);
  EXPECT_EQ(to_hexadecimal(bytes), "007fff0a");
  EXPECT_EQ(from_hexadecimal("007fff0a"), bytes);
  for (const char* text : {"0", "0g", "FF"}) EXPECT_EQ(from_hexadecimal(text), std::nullopt) << text;
}

/// A node whose channels leave by `adapters` in turn, each of 50 GB/s.
NodeWays node_with(int adapters, int channels) {
  NodeWays node;
  for (int i = 0; i < channels; ++i) node.adapters[i] = {i % adapters};
  for (int i = 0; i < adapters; ++i) node.rates[i] = 50e9;
  return node;
}

Choice ring(std::int64_t channels) {
  return {.function = "AllReduce", .bytes = 1, .algorithm = "RING", .protocol = "SIMPLE", .channels = channels};
}

TEST(wire_rate, is_the_busbw_at_which_the_busiest_adapter_is_full) {
  struct Case {
    const char* what;
    int adapters, channels;
    double rate;
  };
  const std::vector<Case> cases = {
      {"8 GPUs, an adapter each", 8, 16, 400e9},
      {"8 GPUs, half an adapter each", 4, 16, 200e9},
      {"8 GPUs, two each", 16, 16, 800e9},
      {"8 GPUs, four each", 32, 32, 1600e9},
      {"one adapter", 1, 2, 50e9},
      {"8 adapters, of which 6 channels use 6", 8, 6, 300e9},
      {"4 adapters, two of them with a channel more", 4, 6, 150e9},
  };
  for (const auto& one : cases) {
    const auto node = node_with(one.adapters, one.channels);
    const auto rate = wire_rate({node, node}, {ring(one.channels)});
    ASSERT_TRUE(rate) << one.what;
    EXPECT_DOUBLE_EQ(*rate, one.rate) << one.what;
  }
  auto slow = node_with(8, 16);
  slow.rates[3] = 25e9;
  EXPECT_DOUBLE_EQ(wire_rate({node_with(8, 16), slow}, {ring(16)}).value(), 200e9);
  EXPECT_DOUBLE_EQ(wire_rate({node_with(8, 16), node_with(8, 16)}, {ring(16), ring(8)}).value(), 400e9);
}

TEST(wire_rate, is_unknown_for_all_but_rings_whose_every_channel_is_known) {
  const auto node = node_with(8, 16);
  for (const std::string algorithm : {"TREE", "NVLS", "NVLS_TREE", "COLLNET_DIRECT", "COLLNET_CHAIN", "PAT", ""}) {
    auto choice = ring(16);
    choice.algorithm = algorithm;
    EXPECT_FALSE(wire_rate({node, node}, {choice})) << algorithm;
    EXPECT_FALSE(wire_rate({node, node}, {ring(16), choice})) << algorithm;
  }
  for (const std::string protocol : {"LL", "LL128"}) {
    auto choice = ring(16);
    choice.protocol = protocol;
    EXPECT_FALSE(wire_rate({node, node}, {choice})) << protocol;
  }
  auto broadcast = ring(16);
  broadcast.function = "Broadcast";
  EXPECT_FALSE(wire_rate({node, node}, {broadcast}));
  EXPECT_FALSE(wire_rate({node, node}, {})) << "send and receive: NCCL names no algorithm";
  EXPECT_FALSE(wire_rate({node}, {ring(16)})) << "one node has no wire";
  EXPECT_FALSE(wire_rate({node, node}, {ring(17)})) << "a channel without a way";
  EXPECT_FALSE(wire_rate({node, node_with(8, 15)}, {ring(16)}));
  auto two = node;
  two.adapters[5].insert(7);
  EXPECT_FALSE(wire_rate({node, two}, {ring(16)})) << "a channel of two ways";
  auto untold = node;
  untold.rates.erase(2);
  EXPECT_FALSE(wire_rate({node, untold}, {ring(16)}));
  untold.rates[2] = 0;
  EXPECT_FALSE(wire_rate({node, untold}, {ring(16)}));
}

TEST(wire_rate, takes_line_rates_as_the_kernel_writes_them) {
  EXPECT_DOUBLE_EQ(line_rate("400 Gb/sec (4X NDR)\n").value(), 50e9);
  EXPECT_DOUBLE_EQ(line_rate("2.5 Gb/sec (1X SDR)").value(), 0.3125e9);
  for (const auto* text : {"", "NDR", "400", "400 Mb/sec", "-1 Gb/sec", "0 Gb/sec", "nan Gb/sec"})
    EXPECT_FALSE(line_rate(text)) << text;
}

}  // namespace
}  // namespace assay::nccl
