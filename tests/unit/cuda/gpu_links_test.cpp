// From times to bandwidths, pairs, the chase, peer access, and staying on a NUMA node.
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

#include "probes/cuda/chase_words.h"
#include "probes/cuda/figures.h"
#include "probes/cuda/numa.h"
#include "probes/cuda/peer_fabric.h"
#include "tests/unit/fake_tree.h"

namespace assay::cuda {
namespace {

constexpr SamplingPlan kSixSamples{
    .min_samples = 6, .max_samples = 6, .time_limit = {0}, .warmup_limit = {0}, .half_width_goal = 0};

double share(std::vector<Interval_s> intervals) { return overlap_share(intervals); }

std::size_t allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  (void)sched_getaffinity(0, sizeof allowed, &allowed);  // an empty set fails the tests that count
  return static_cast<std::size_t>(CPU_COUNT(&allowed));
}

}  // namespace

TEST(overlap, is_the_share_of_time_in_which_all_run) {
  EXPECT_DOUBLE_EQ(share({{0, 1}}), 1);
  EXPECT_DOUBLE_EQ(share({{0, 1}, {0, 1}}), 1);
  EXPECT_DOUBLE_EQ(share({{0, 1}, {0.5, 1.5}}), 0.5 / 1.5);
  EXPECT_DOUBLE_EQ(share({{0, 4}, {1, 2}, {1, 3}}), 0.25);
}

TEST(overlap, is_none_for_things_that_run_one_after_the_other) {
  EXPECT_DOUBLE_EQ(share({{0, 1}, {2, 3}}), 0);
  EXPECT_DOUBLE_EQ(share({{1, 1}, {1, 1}}), 0);
}

TEST(overlap, of_nothing_or_of_time_that_runs_backwards_is_an_error) {
  EXPECT_THROW(share({}), std::invalid_argument);
  EXPECT_THROW(share({{1, 0}}), std::invalid_argument);
}

TEST(overlap, of_a_common_start_is_the_shortest_time_over_the_longest) {
  const std::vector<Seconds> times = {{2}, {4}, {3}};
  EXPECT_DOUBLE_EQ(overlap_share(times), 0.5);
}

TEST(all_ran_at, a_moment_before_the_first_end_and_at_no_other) {
  const std::vector<Seconds> times = {{2}, {4}, {3}};
  EXPECT_TRUE(all_ran_at({1.9}, times));
  EXPECT_FALSE(all_ran_at({2}, times));
  EXPECT_FALSE(all_ran_at({3.5}, times));
  EXPECT_FALSE(all_ran_at({0}, {}));
}

TEST(copies, fill_the_time_that_is_wanted_and_stop_at_the_cap) {
  EXPECT_EQ(copies_for({0.010}, {0.05}, 16), 5U);
  EXPECT_EQ(copies_for({0.011}, {0.05}, 16), 5U);
  EXPECT_EQ(copies_for({0.001}, {0.05}, 16), 16U);
  EXPECT_EQ(copies_for({1}, {0.05}, 16), 1U);
  EXPECT_EQ(copies_for({0}, {0.05}, 16), 16U);
  EXPECT_EQ(copies_for({1e-300}, {0.05}, 16), 16U);
}

TEST(pairs, are_ordered_by_source_then_target_and_never_of_one_device) {
  const std::vector<DevicePair> three = {{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}};
  EXPECT_EQ(ordered_pairs(3), three);
  EXPECT_TRUE(ordered_pairs(1).empty());
  EXPECT_TRUE(ordered_pairs(0).empty());
  EXPECT_EQ(ordered_pairs(8).size(), 56U);
}

TEST(pairs, that_share_a_target_land_at_different_places_without_a_gap) {
  std::vector<std::set<std::size_t>> places(5);
  for (const DevicePair pair : ordered_pairs(5)) places[pair.target].insert(landing_place(pair));
  for (const auto& of_target : places) EXPECT_EQ(of_target, (std::set<std::size_t>{0, 1, 2, 3}));
}

TEST(schedule_groups_of, together_is_one_group_and_one_by_one_is_many) {
  const std::vector<Device> devices = {{.uuid = "GPU-a"}, {.uuid = "GPU-b"}};
  ASSERT_EQ(schedule_groups(devices, "together").size(), 1U);
  EXPECT_EQ(schedule_groups(devices, "together")[0].size(), 2U);
  ASSERT_EQ(schedule_groups(devices, "one_by_one").size(), 2U);
  EXPECT_EQ(schedule_groups(devices, "one_by_one")[1].at(0).uuid, "GPU-b");
}

TEST(sample_rounds_of, every_quantity_keeps_its_own_values_cut_at_the_same_round) {
  double round = 0;
  const auto sampled = sample_rounds(kSixSamples, [&] {
    round += 1;
    return std::vector<double>{round, 100 + round};
  });
  ASSERT_EQ(sampled.size(), 2U);
  EXPECT_EQ(sampled[0].warmup, (std::vector<double>{1}));
  EXPECT_EQ(sampled[0].samples, (std::vector<double>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(sampled[1].warmup, (std::vector<double>{101}));
  EXPECT_EQ(sampled[1].samples, (std::vector<double>{102, 103, 104, 105, 106, 107}));
  EXPECT_EQ(sampled[1].stopped, "sample_cap");
}

TEST(sample_rounds_of, a_round_that_is_empty_or_of_another_length_is_an_error) {
  EXPECT_THROW(sample_rounds(kSixSamples, [] { return std::vector<double>{}; }), std::logic_error);
  std::size_t length = 0;
  EXPECT_THROW(sample_rounds(kSixSamples, [&] { return std::vector<double>(++length, 1.0); }), std::logic_error);
}

TEST(chase, visits_every_line_once_before_it_returns) {
  constexpr std::size_t kPlaces = 1000;
  const auto words = chase_words(kPlaces, 42);
  ASSERT_EQ(words.size() * sizeof(std::uint64_t), kPlaces * kChaseLine);
  std::set<std::uint64_t> seen;
  for (std::size_t step = 0; step < kPlaces; ++step) seen.insert(chase_end(words, 0, step));
  EXPECT_EQ(seen.size(), kPlaces);
  EXPECT_EQ(chase_end(words, 0, kPlaces), 0U);
  for (const std::uint64_t offset : seen) EXPECT_EQ(offset % kChaseLine, 0U);
}

TEST(chase, in_two_parts_ends_where_the_whole_does) {
  const auto words = chase_words(1000, 42);
  EXPECT_EQ(chase_end(words, chase_end(words, 0, 300), 400), chase_end(words, 0, 700));
}

TEST(chase, that_leads_out_of_its_memory_is_an_error) {
  const std::vector<std::uint64_t> words = {4096};
  EXPECT_EQ(chase_end(words, 0, 1), 4096U);
  EXPECT_THROW(chase_end(words, 0, 2), std::out_of_range);
}

TEST(peer_access_of, nothing_is_reached_without_access_whatever_the_link) {
  EXPECT_EQ(word_of(peer_access(false, true, true)), "none");
}

TEST(peer_access_of, nvml_decides_between_nvlink_and_pcie_and_atomics_where_it_is_silent) {
  EXPECT_EQ(word_of(peer_access(true, true, false)), "nvlink");
  EXPECT_EQ(word_of(peer_access(true, false, true)), "pcie");
  EXPECT_EQ(word_of(peer_access(true, std::nullopt, true)), "nvlink");
  EXPECT_EQ(word_of(peer_access(true, std::nullopt, false)), "pcie");
}

TEST(numa, the_node_of_a_device_is_what_the_kernel_says) {
  const FakeTree sys;
  sys.file("bus/pci/devices/0000:1b:00.0/numa_node", "1\n");
  sys.file("bus/pci/devices/0000:3b:00.0/numa_node", "-1\n");
  sys.file("bus/pci/devices/0000:5b:00.0/numa_node", "one\n");
  EXPECT_EQ(numa_node_of("0000:1b:00.0", sys.path()), 1);
  EXPECT_FALSE(numa_node_of("0000:3b:00.0", sys.path()).has_value());
  EXPECT_FALSE(numa_node_of("0000:5b:00.0", sys.path()).has_value());
  EXPECT_FALSE(numa_node_of("0000:7b:00.0", sys.path()).has_value());
}

TEST(numa, the_cpus_of_a_node_are_its_list_and_none_where_there_is_none) {
  const FakeTree sys;
  sys.file("devices/system/node/node1/cpulist", "4-6,12\n");
  sys.file("devices/system/node/node2/cpulist", "\n");  // memory without processors
  EXPECT_EQ(cpus_of_node(1, sys.path()), (std::vector<int>{4, 5, 6, 12}));
  EXPECT_TRUE(cpus_of_node(2, sys.path()).empty());
  EXPECT_TRUE(cpus_of_node(3, sys.path()).empty());
}

TEST(numa, a_thread_is_bound_while_the_binding_lives_and_free_again_after) {
  const std::size_t before = allowed_cpus();
  {
    const CpuBinding binding({sched_getcpu()});
    EXPECT_TRUE(binding.bound());
    EXPECT_EQ(allowed_cpus(), 1U);
  }
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(numa, a_binding_to_cpus_that_are_not_there_binds_nothing) {
  const std::size_t before = allowed_cpus();
  const CpuBinding binding({-1, CPU_SETSIZE - 1, 1 << 30});
  EXPECT_FALSE(binding.bound());
  EXPECT_EQ(allowed_cpus(), before);
  EXPECT_FALSE(CpuBinding(std::vector<int>{}).bound());
}

TEST(numa, memory_is_not_bound_to_a_node_that_no_kernel_has) {
  std::byte byte{};
  EXPECT_FALSE(bind_memory({&byte, 1}, -1));
  EXPECT_FALSE(bind_memory({&byte, 1}, 1 << 20));
}

TEST(numa, memory_of_less_than_a_page_tells_no_share) {
  std::byte byte{};
  EXPECT_FALSE(share_on_node({&byte, 1}, 0).has_value());
}

TEST(copies_that_end_together, are_more_for_the_faster_lane) {
  using Counts = std::vector<std::size_t>;
  const std::vector<Seconds> times = {{1.0}, {0.8}};
  EXPECT_EQ(copies_that_end_together(16, times), (Counts{16, 20}));
  const std::vector<Seconds> equal = {{0.5}, {0.5}};
  EXPECT_EQ(copies_that_end_together(16, equal), (Counts{16, 16}));
  const std::vector<Seconds> none = {{0.5}, {0}};
  EXPECT_THROW((void)copies_that_end_together(16, none), std::invalid_argument);
  EXPECT_THROW((void)copies_that_end_together(16, {}), std::invalid_argument);
}

}  // namespace assay::cuda
