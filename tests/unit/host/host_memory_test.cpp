// STREAM's kernels and their verification; the pointer cycle; memory from the kernel, and its place.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "probes/core/host_facts.h"
#include "probes/core/machine_tree.h"
#include "probes/host/buffer.h"
#include "probes/host/memory_placement.h"
#include "probes/host/memory_walk.h"
#include "probes/host/stream.h"
#include "tests/unit/fake_tree.h"

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

Parameters placed(const std::string& memory_node, const std::string& policy = "bind",
                  const std::string& cpu_node = "all") {
  return Parameters({{"memory_node", memory_node}, {"policy", policy}, {"cpu_node", cpu_node}});
}

/// Node 0 with this machine's CPUs, node 1 without any, weights 3 and 1.
void add_nodes(const FakeTree& tree) {
  const std::string nodes = "sys/devices/system/node/";
  tree.file(nodes + "online", "0-1\n");
  tree.file(nodes + "node0/cpulist", "0-1023\n");
  tree.file(nodes + "node0/meminfo", "Node 0 MemTotal:  4194304 kB\nNode 0 MemFree:  1048576 kB\n");
  tree.file(nodes + "node1/cpulist", "\n");
  tree.file(nodes + "node1/meminfo", "Node 1 MemTotal:  2097152 kB\nNode 1 MemFree:  1048576 kB\n");
  tree.file("sys/kernel/mm/mempolicy/weighted_interleave/node0", "3\n");
  tree.file("sys/kernel/mm/mempolicy/weighted_interleave/node1", "1\n");
}

/// What placement_of() says of parameters that it refuses.
std::string refusal(const FakeTree& tree, const Parameters& given) {
  try {
    (void)placement_of(given, MachineTree(tree.path()));  // what matters is what it throws
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

/// Steps after which the walk from the first link is back at it; 0 when it is not back after links.size() steps.
std::size_t cycle_length(std::span<const Link> links) {
  const Link* at = links.data();
  for (std::size_t steps = 1; steps <= links.size(); ++steps) {
    at = at->next;
    if (at == links.data()) return steps;
  }
  return 0;
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

TEST(stream, a_read_depends_on_every_element) {
  std::vector<std::uint64_t> values(1000, 0);
  values[777] = 5;
  EXPECT_EQ(stream_read(values), 5U);
}

TEST(placement, nodes_are_named_by_number_or_by_kind) {
  const FakeTree tree;
  add_nodes(tree);
  const MachineTree machine(tree.path());
  EXPECT_EQ(placement_of(placed("local"), machine).policy, Policy::first_touch);
  EXPECT_EQ(placement_of(placed("1,0,1"), machine).targets, (std::vector{0, 1}));
  EXPECT_EQ(placement_of(placed("tier"), machine).targets, std::vector{1});
  EXPECT_EQ(placement_of(placed("all", "interleave"), machine).weights, (std::vector{1, 1}));
  EXPECT_EQ(placement_of(placed("all", "weighted_interleave"), machine).weights, (std::vector{3, 1}));
}

TEST(placement, what_cannot_be_placed_is_refused_with_the_nodes_there_are) {
  const FakeTree tree;
  add_nodes(tree);
  EXPECT_EQ(refusal(tree, placed("2")),
            "memory_node: node 2 has no memory; the nodes with memory are 0 (with_cpus), 1 (without_cpus)");
  EXPECT_EQ(refusal(tree, placed("gpu")),
            "memory_node: this machine has no memory of kind gpu; its nodes are 0 (with_cpus), 1 (without_cpus)");
  EXPECT_EQ(refusal(tree, placed("fast")),
            "memory_node: 'fast' is not local, all, tier, cxl, gpu or numbers\nhint: write 2, 0,2 or 0-1");
  EXPECT_EQ(refusal(tree, placed("local", "interleave")),
            "policy: interleave over the local node places nothing\nhint: name nodes with --memory-node, such as all");
  EXPECT_EQ(refusal(tree, placed("1", "weighted_interleave")),
            "policy: weighted_interleave over one node shares nothing out; the nodes with memory are 0 (with_cpus), 1 "
            "(without_cpus)");
  EXPECT_THROW(cpus_near(placed("local", "bind", "1"), 0, placement_of(placed("local"), MachineTree(tree.path()))),
               Skip);
  EXPECT_THROW(cpus_near(placed("local", "bind", "x"), 0, {}), std::runtime_error);
}

TEST(placement, a_size_fits_the_nodes_and_the_free_part_of_those_without_cpus) {
  const FakeTree tree;
  add_nodes(tree);
  const MachineTree machine(tree.path());
  const auto room = [&](const char* node, const char* policy) {
    const Bytes all = total_memory();
    return affordable(placement_of(placed(node, policy), machine), all, 1, {4096}).count;
  };
  const std::uint64_t kGiB = std::uint64_t{1} << 30;
  const std::uint64_t most = total_memory().count / 2 / 4096 * 4096;
  EXPECT_EQ(room("0", "bind"), std::min(most, 2 * kGiB));
  EXPECT_EQ(room("1", "bind"), std::min(most, kGiB * 9 / 10 / 4096 * 4096));
  EXPECT_EQ(room("0,1", "weighted_interleave"), std::min(most, 2 * kGiB * 4 / 3 / 4096 * 4096));
}

TEST(placement, pages_bound_to_node_0_lie_there_and_a_wrong_node_is_counted) {
  const MachineTree machine("/");
  if (read_memory_nodes(machine).empty()) GTEST_SKIP() << "this kernel shows no memory nodes";
  const Placement bound = placement_of(placed("0"), machine);
  Buffer memory({8 << 20}, Pages::base);
  try {
    place(memory, bound);
  } catch (const Skip& refused) {
    GTEST_SKIP() << refused.what();
  }
  std::ranges::fill(memory.as<std::byte>(), std::byte{1});
  PageCheck right(bound);
  right.add(memory.as<std::byte>(), 0);
  const auto pages = static_cast<std::uint64_t>((8 << 20) / sysconf(_SC_PAGESIZE));
  EXPECT_EQ(right.found(), (std::map<int, std::uint64_t>{{0, pages}}));
  EXPECT_EQ(right.misplaced(), 0U);
  Placement meant_elsewhere = bound;
  meant_elsewhere.targets = {1};
  PageCheck wrong(meant_elsewhere);
  wrong.add(memory.as<std::byte>(), 0);
  EXPECT_EQ(wrong.misplaced(), pages);
}

TEST(placement, pages_that_no_interleave_shared_out_are_counted) {
  const MachineTree machine("/");
  if (read_memory_nodes(machine).empty()) GTEST_SKIP() << "this kernel shows no memory nodes";
  Placement both = placement_of(placed("0"), machine);
  both.policy = Policy::weighted_interleave;
  Buffer memory({64 << 20}, Pages::base);
  if (MachineTree("/").exists("sys/kernel/mm/mempolicy/weighted_interleave")) place(memory, both);  // Linux 6.9
  std::ranges::fill(memory.as<std::byte>(), std::byte{1});
  PageCheck alone(both);
  alone.add(memory.as<std::byte>(), 0);
  EXPECT_EQ(alone.misplaced(), 0U);  // of one node an interleave is a bind
  both.targets = {0, 1};
  both.weights = {1, 1};
  PageCheck shared(both);
  shared.add(memory.as<std::byte>(), 0);
  EXPECT_EQ(shared.misplaced(), static_cast<std::uint64_t>((32 << 20) / sysconf(_SC_PAGESIZE)));
}

TEST(placement, memory_that_was_never_touched_lies_nowhere) {
  const MachineTree machine("/");
  if (read_memory_nodes(machine).empty()) GTEST_SKIP() << "this kernel shows no memory nodes";
  const Placement local = placement_of(placed("local"), machine);
  const Buffer memory({8 << 20}, Pages::base);
  PageCheck pages(local);
  pages.add(memory.as<std::byte>(), 0);
  EXPECT_EQ(pages.misplaced(), std::nullopt);
}

TEST(walk, it_follows_the_cycle_of_its_memory_from_call_to_call) {
  PinnedThreads crew(cpus_for(1));
  MemoryWalk walk(crew, {1 << 20}, Pages::base, {});
  EXPECT_EQ(cycle_length(walk.memory().as<Link>()), std::size_t{1 << 20} / sizeof(Link));
  EXPECT_GT(walk.alone(1000).count, 0);
  EXPECT_GE(walk.steps_for({1e-3}), 1U);
}

}  // namespace assay::host
