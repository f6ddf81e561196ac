// The kinds, ratings and tiers of memory nodes, on artificial trees.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/core/machine_tree.h"
#include "probes/core/memory_nodes.h"
#include "tests/unit/fake_tree.h"

namespace assay {
namespace {

void add_node(const FakeTree& tree, int number, const std::string& cpus, std::int64_t kib,
              const std::string& distances = "10 20\n") {
  const std::string node = fmt::format("sys/devices/system/node/node{}/", number);
  tree.file(node + "cpulist", cpus + "\n");
  tree.file(node + "meminfo",
            fmt::format("Node {0} MemTotal:  {1} kB\nNode {0} MemFree:  {2} kB\n", number, kib, kib / 2));
  tree.file(node + "distance", distances);
}

void add_rating(const FakeTree& tree, int number, int access, const std::string& bandwidth,
                const std::string& latency) {
  const std::string path = fmt::format("sys/devices/system/node/node{}/access{}/initiators/", number, access);
  tree.directory(path + "node0");
  tree.file(path + "read_bandwidth", bandwidth + "\n");
  tree.file(path + "read_latency", latency + "\n");
}

/// Two nodes with CPUs, one that a CXL region lies in, one of a GPU, one of neither, and one that is empty.
void add_machine(const FakeTree& tree) {
  tree.file("sys/devices/system/node/online", "0-5\n");
  add_node(tree, 0, "0-3", 1024);
  add_node(tree, 1, "4-7", 1024);
  add_node(tree, 2, "", 4096);
  add_node(tree, 3, "", 8192);
  add_node(tree, 4, "", 512);
  add_node(tree, 5, "", 0);
  tree.file("sys/devices/system/memory/block_size_bytes", "8000000\n");
  tree.file("sys/devices/system/node/node0/memory0/state", "online\n");
  tree.file("sys/devices/system/node/node2/memory96/state", "online\n");  // begins at 0x300000000
  tree.file("sys/bus/cxl/devices/region0/resource", "0x2f8000000\n");
  tree.file("sys/bus/cxl/devices/region0/size", "0x10000000\n");
  tree.file("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:      3\nStatus:    online\n");
  tree.file("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n");
  tree.file("sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "2\n");
}

}  // namespace

TEST(memory_nodes, kinds_are_told_by_facts_and_an_empty_node_is_none) {
  const FakeTree fake;
  add_machine(fake);
  const auto nodes = read_memory_nodes(MachineTree(fake.path()));
  ASSERT_EQ(nodes.size(), 5U);
  EXPECT_EQ(nodes[0].kind, MemoryKind::with_cpus);
  EXPECT_EQ(nodes[0].shown_by, "CPUs 0-3");
  EXPECT_EQ(nodes[0].size_b, 1024 * 1024);
  EXPECT_EQ(nodes[2].kind, MemoryKind::cxl);
  EXPECT_EQ(nodes[2].shown_by, "region0");
  EXPECT_EQ(nodes[2].tier, 22);
  EXPECT_EQ(nodes[3].kind, MemoryKind::gpu);
  EXPECT_EQ(nodes[3].shown_by, "GPU 0009:01:00.0");
  EXPECT_EQ(nodes[4].kind, MemoryKind::without_cpus);
  EXPECT_EQ(nodes[4].tier, std::nullopt);
  EXPECT_EQ(kinds_of(nodes, std::vector{0, 2, 1, 3}), "with_cpus+gpu+cxl");
}

TEST(memory_nodes, a_region_of_other_addresses_and_a_gpu_without_a_node_tell_nothing) {
  const FakeTree fake;
  add_machine(fake);
  fake.file("sys/bus/cxl/devices/region0/resource", "0x308000000\n");  // begins behind the block
  fake.file("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:      -1\nStatus:    offline\n");
  const auto nodes = read_memory_nodes(MachineTree(fake.path()));
  EXPECT_EQ(nodes[2].kind, MemoryKind::without_cpus);
  EXPECT_EQ(nodes[3].kind, MemoryKind::without_cpus);
}

TEST(memory_nodes, a_node_with_cpus_is_the_hosts_whatever_else_names_it) {
  const FakeTree fake;
  add_machine(fake);
  fake.file("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:      0\nStatus:    online\n");
  EXPECT_EQ(read_memory_nodes(MachineTree(fake.path()))[0].kind, MemoryKind::with_cpus);
}

TEST(memory_nodes, ratings_are_those_of_the_nearest_cpus_and_else_of_any_initiator) {
  const FakeTree fake;
  add_machine(fake);
  add_rating(fake, 2, 0, "9000", "900");
  add_rating(fake, 2, 1, "36000", "250");
  add_rating(fake, 4, 0, "8000", "0");
  const auto nodes = read_memory_nodes(MachineTree(fake.path()));
  ASSERT_TRUE(nodes[2].rating.has_value());
  EXPECT_EQ(nodes[2].rating->access_class, 1);
  EXPECT_EQ(nodes[2].rating->initiators, "0");
  EXPECT_EQ(nodes[2].rating->read_rate, 36e9);
  EXPECT_DOUBLE_EQ(*nodes[2].rating->read_latency_s, 250e-9);
  ASSERT_TRUE(nodes[4].rating.has_value());
  EXPECT_EQ(nodes[4].rating->access_class, 0);
  EXPECT_EQ(nodes[4].rating->read_latency_s, std::nullopt);
  EXPECT_EQ(nodes[0].rating, std::nullopt);
}

TEST(memory_nodes, distances_and_poisoned_pages_are_read_where_the_kernel_shows_them) {
  const FakeTree fake;
  add_machine(fake);
  fake.file("sys/devices/system/node/node2/memory_failure/total", "7\n");
  const auto nodes = read_memory_nodes(MachineTree(fake.path()));
  EXPECT_EQ(nodes[0].distances, (std::vector{10, 20}));
  EXPECT_EQ(nodes[2].poisoned_pages, 7);
  EXPECT_EQ(nodes[0].poisoned_pages, std::nullopt);
}

TEST(memory_nodes, a_kernel_without_them_and_hostile_content_show_none) {
  const FakeTree fake;
  EXPECT_TRUE(read_memory_nodes(MachineTree(fake.path())).empty());
  add_machine(fake);
  for (const char* content : {"", "-3\n", "0-99999999999\n", "0,\n", "0\xff\n"}) {
    fake.file("sys/devices/system/node/online", content);
    EXPECT_TRUE(read_memory_nodes(MachineTree(fake.path())).empty()) << content;
  }
  fake.file("sys/devices/system/node/online", "0-5\n");
  fake.file("sys/devices/system/memory/block_size_bytes", "no number\n");
  fake.file("sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "two\n");
  fake.file("sys/devices/system/node/node0/distance", "ten\n");
  const auto nodes = read_memory_nodes(MachineTree(fake.path()));
  EXPECT_EQ(nodes[2].kind, MemoryKind::without_cpus);
  EXPECT_EQ(nodes[2].tier, std::nullopt);
  EXPECT_TRUE(nodes[0].distances.empty());
}

TEST(memory_nodes, a_guest_is_known_by_the_processors_flag_or_by_qemu) {
  const FakeTree fake;
  fake.file("proc/cpuinfo", "processor : 0\nflags : fpu sse\n");
  EXPECT_FALSE(is_guest(MachineTree(fake.path())));
  fake.file("sys/class/dmi/id/sys_vendor", "QEMU\n");
  EXPECT_TRUE(is_guest(MachineTree(fake.path())));
  fake.file("sys/class/dmi/id/sys_vendor", "Maker\n");
  fake.file("proc/cpuinfo", "processor : 0\nflags : fpu hypervisor sse\n");
  EXPECT_TRUE(is_guest(MachineTree(fake.path())));
}

}  // namespace assay
