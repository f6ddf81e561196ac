// CXL devices, and health_memory as a process on a made-up machine.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/core/machine_tree.h"
#include "probes/health/cxl.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::health {
namespace {

using Samples = std::vector<double>;
const Subject kMem0{"dimm", "mem0"};

/// An answer of 18 bytes: status, media, additional status, life used; 45 degC, 2 dirty shutdowns, 258 and 3 errors.
std::string health_answer(int status, int media, int additional, int life) {
  std::string answer = {static_cast<char>(status), static_cast<char>(media), static_cast<char>(additional),
                        static_cast<char>(life)};
  for (const int byte : {45, 0, 2, 0, 0, 0, 2, 1, 0, 0, 3, 0, 0, 0}) answer += static_cast<char>(byte);
  return answer;
}

/// A node with CPUs, one behind a CXL region, and a device whose link has half of its lanes.
void add_memory_machine(const FakeTree& tree) {
  const std::string nodes = "sys/devices/system/node/", function = "sys/devices/pci0000:0c/0000:0c:00.0/0000:0d:00.0/";
  tree.file("proc/cpuinfo", "processor : 0\nflags : fpu\n");
  tree.file(nodes + "online", "0-1\n");
  tree.file(nodes + "node0/cpulist", "0-1\n");
  tree.file(nodes + "node0/meminfo", "Node 0 MemTotal: 1024 kB\n");
  tree.file(nodes + "node0/distance", "10 14\n");
  tree.file(nodes + "node1/cpulist", "\n");
  tree.file(nodes + "node1/meminfo", "Node 1 MemTotal: 2048 kB\n");
  tree.file(nodes + "node1/distance", "14 10\n");
  tree.file(nodes + "node1/memory32/state", "online\n");
  tree.file(nodes + "node1/memory_failure/total", "3\n");
  tree.file(nodes + "node1/access1/initiators/read_bandwidth", "36000\n");
  tree.directory(nodes + "node1/access1/initiators/node0");
  tree.file("sys/devices/system/memory/block_size_bytes", "8000000\n");
  tree.file("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0\n");
  tree.file("sys/bus/cxl/devices/region0/resource", "0x100000000\n");
  tree.file("sys/bus/cxl/devices/region0/size", "0x80000000\n");
  tree.link("sys/bus/cxl/devices/mem0", function + "mem0");
  tree.file(function + "mem0/ram/size", "0x80000000\n");
  tree.file(function + "mem0/serial", "0xc1c1\n");
  tree.file(function + "mem0/firmware_version", "1.2\n");
  tree.file(function + "mem0/numa_node", "0\n");
  tree.link("sys/bus/pci/devices/0000:0d:00.0", function);
  tree.file(function + "current_link_speed", "32.0 GT/s PCIe\n");
  tree.file(function + "max_link_speed", "32.0 GT/s PCIe\n");
  tree.file(function + "current_link_width", "4\n");
  tree.file(function + "max_link_width", "8\n");
  tree.file(function + "aer_dev_correctable", "TOTAL_ERR_COR 6\n");
  tree.file("saved/mem0.health", health_answer(0, 0, 0, 4));
}

}  // namespace

TEST(Cxl, every_state_that_is_not_normal_is_named_and_warnings_are_no_faults) {
  const auto normal = parse_cxl_health(health_answer(0, 0, 0, 4));
  ASSERT_TRUE(normal.has_value());
  EXPECT_EQ(normal->states, "");
  EXPECT_EQ(normal->faults, 0);
  EXPECT_DOUBLE_EQ(*normal->life_used, 0.04);
  EXPECT_EQ(normal->temperature_c, 45);
  EXPECT_EQ(normal->dirty_shutdowns, 2);
  EXPECT_EQ(normal->corrected_volatile, 258);
  EXPECT_EQ(normal->corrected_persistent, 3);
  const auto bad = parse_cxl_health(health_answer(0b101, 3, 0b111001, 0xff));
  EXPECT_EQ(bad->states,
            "maintenance needed, replacement needed, media data lost, life used warning, temperature critical, "
            "corrected volatile errors warning, corrected persistent errors warning");
  EXPECT_EQ(bad->faults, 4);
  EXPECT_EQ(bad->life_used, std::nullopt);
  EXPECT_EQ(parse_cxl_health(health_answer(0, 77, 0, 0))->states, "media status 77");
}

TEST(Cxl, an_answer_that_is_cut_off_is_none) {
  EXPECT_FALSE(parse_cxl_health(health_answer(0, 0, 0, 4).substr(0, 17)).has_value());
  EXPECT_FALSE(parse_cxl_health("").has_value());
}

TEST(health_memory, nodes_and_devices_are_told_number_by_number) {
  const FakeTree tree;
  add_memory_machine(tree);
  const Record record = record_of(probe_file("health_memory"), {"--root", tree.path()});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(samples_of(record, "memory_nodes", node), Samples{2});
  EXPECT_EQ(samples_of(record, "memory_nodes_without_cpus", node), Samples{1});
  EXPECT_EQ(samples_of(record, "poisoned_pages", node), Samples{3});
  EXPECT_EQ(samples_of(record, "rated_read_bandwidth", node), Samples{36e9});
  EXPECT_EQ(samples_of(record, "cxl_devices", node), Samples{1});
  EXPECT_EQ(samples_of(record, "cxl_narrow_links", node), Samples{1});
  EXPECT_EQ(samples_of(record, "cxl_slow_links", node), Samples{0});
  EXPECT_EQ(samples_of(record, "cxl_faults", node), Samples{0});
  EXPECT_EQ(samples_of(record, "cxl_size", kMem0), Samples{2147483648});
  EXPECT_EQ(samples_of(record, "pcie_width", kMem0), Samples{4});
  EXPECT_EQ(samples_of(record, "pcie_rate", kMem0), Samples{32e9});
  EXPECT_EQ(samples_of(record, "pcie_errors_corrected", kMem0), Samples{6});
  EXPECT_EQ(samples_of(record, "cxl_corrected_errors", kMem0), Samples{261});
  EXPECT_EQ(value_of(record, "memory_kinds", node), Value{std::string("0 with_cpus (CPUs 0-1); 1 cxl (region0)")});
  EXPECT_EQ(value_of(record, "memory_tiers", node), Value{std::string("0: 4")});
  EXPECT_EQ(value_of(record, "rated_from", node), Value{std::string("1: access1 of 0")});
  EXPECT_EQ(value_of(record, "cxl_health", kMem0), Value{std::string("normal")});
  EXPECT_EQ(value_of(record, "serial", kMem0), Value{std::string("0xc1c1")});
  EXPECT_EQ(value_of(record, "bare_metal", node), Value{true});
  std::vector<double> distances;
  for (const auto& one : record.measurements) {
    if (one.metric == "numa_distance") distances.push_back(one.samples.front());
  }
  EXPECT_EQ(distances, (std::vector<double>{10, 14, 14, 10}));
}

TEST(health_memory, a_guest_shows_no_links_and_a_device_without_an_answer_no_faults) {
  const FakeTree tree;
  add_memory_machine(tree);
  tree.file("proc/cpuinfo", "processor : 0\nflags : fpu hypervisor\n");
  tree.file("saved/mem0.health", "short");
  const Record record = record_of(probe_file("health_memory"), {"--root", tree.path()});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(samples_of(record, "cxl_narrow_links", node), Samples{});
  EXPECT_EQ(samples_of(record, "cxl_faults", node), Samples{});
  EXPECT_EQ(value_of(record, "bare_metal", node), Value{false});
  EXPECT_EQ(value_of(record, "cxl_health", kMem0), Value{std::string("absent: it was not saved")});
}

TEST(health_memory, a_kernel_without_nodes_is_a_skip) {
  const FakeTree tree;
  EXPECT_EQ(record_of(probe_file("health_memory"), {"--root", tree.path()}).end.reason,
            "sys/devices/system/node shows no node with memory: this kernel has no NUMA");
}

}  // namespace assay::health
