// health_inventory as a process on a made-up machine: the whole record, number by number.
#include <map>

#include <gtest/gtest.h>

#include "tests/unit/fake_nvml.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/health/smbios_table.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::health {
namespace {

/// Two CPUs, one module in two slots, one NVMe drive at half width, two ports of which one is down.
void add_machine(const FakeTree& tree) {
  const std::string pci = "sys/devices/pci0000:00/";
  tree.file("proc/meminfo", "MemTotal:       65536000 kB\nMemFree:          100 kB\n");
  tree.file("proc/sys/kernel/osrelease", "6.8.0-31\n");
  tree.file("etc/os-release", "ID=ubuntu\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n");
  tree.file("sys/class/dmi/id/product_name", "HGX Base\n");
  tree.file("sys/class/dmi/id/product_serial", "Default string\n");
  tree.file("sys/firmware/dmi/tables/DMI",
            memory_device({.size = 0x4000}) + memory_device({.locator = "DIMM_A2", .size = 0}) + end_of_table());
  tree.file("sys/devices/system/cpu/present", "0-1\n");
  tree.file("sys/devices/system/cpu/online", "0-1\n");

  tree.link("sys/block/nvme0n1", pci + "0000:c1:00.0/nvme/nvme0/nvme0n1");
  tree.link("sys/block/nvme0n1/device", pci + "0000:c1:00.0/nvme/nvme0");
  tree.file("sys/block/nvme0n1/size", "2000\n");
  tree.file("sys/block/nvme0n1/device/serial", "S6CLNE0T\n");
  tree.file("sys/block/nvme0n1/device/firmware_rev", "GDC7302Q\n");
  tree.link("sys/bus/pci/devices/0000:c1:00.0", pci + "0000:c1:00.0");
  tree.file(pci + "0000:c1:00.0/class", "0x010802\n");
  tree.file(pci + "0000:c1:00.0/numa_node", "-1\n");
  tree.file(pci + "0000:c1:00.0/current_link_speed", "16.0 GT/s PCIe\n");
  tree.file(pci + "0000:c1:00.0/max_link_speed", "16.0 GT/s PCIe\n");
  tree.file(pci + "0000:c1:00.0/current_link_width", "2\n");
  tree.file(pci + "0000:c1:00.0/max_link_width", "4\n");

  for (const std::string name : {"eth0", "eth1"}) {
    tree.directory("sys/class/net/" + name + "/device");
    tree.file("sys/class/net/" + name + "/carrier", name == "eth0" ? "1\n" : "0\n");
    tree.file("sys/class/net/" + name + "/speed", "25000\n");
  }
}

}  // namespace

TEST(health_inventory, names_the_accelerators_of_amd_and_no_graphics_of_its_processors) {
  const FakeTree tree;
  add_machine(tree);
  const auto function = [&](const std::string& address, const std::string& driver,
                            const std::map<std::string, std::string>& files) {
    tree.link("sys/bus/pci/devices/" + address, "sys/devices/pci0000:00/" + address);
    tree.link("sys/devices/pci0000:00/" + address + "/driver", "sys/bus/pci/drivers/" + driver);
    for (const auto& [name, text] : files) tree.file("sys/devices/pci0000:00/" + address + "/" + name, text + "\n");
  };
  function("0000:05:00.0", "amdgpu",
           {{"vendor", "0x1002"},
            {"class", "0x120000"},
            {"product_name", "AMD Instinct MI300X OAM"},
            {"product_number", "102-G30211-0C"},
            {"serial_number", "692346000001"},
            {"vbios_version", "113-M3000100-102"},
            {"mem_info_vram_total", "206141652992"},
            {"current_compute_partition", "CPX"},
            {"current_memory_partition", "NPS4"}});
  function("0000:06:00.0", "amdgpu", {{"vendor", "0x1002"}, {"class", "0x038000"}, {"product_name", "AMD Instinct"}});
  function("0000:07:00.0", "amdgpu", {{"vendor", "0x1002"}, {"class", "0x030000"}, {"product_name", ""}});
  function("0000:08:00.0", "vfio-pci", {{"vendor", "0x1002"}, {"class", "0x120000"}});
  tree.file("sys/module/amdgpu/version", "6.12.12\n");
  const Record record = record_of(probe_file("health_inventory"), {"--root", tree.path()});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(samples_of(record, "gpus_total", node), std::vector<double>{2});
  EXPECT_EQ(value_of(record, "amdgpu_version", node), Value{std::string("6.12.12")});
  const Subject gpu{"gpu", "0000:05:00.0"};
  EXPECT_EQ(samples_of(record, "gpu_memory", gpu), std::vector<double>{206141652992});
  const std::map<std::string, std::string> facts = {
      {"model", "AMD Instinct MI300X OAM"}, {"serial", "692346000001"}, {"part", "102-G30211-0C"},
      {"vbios", "113-M3000100-102"},        {"driver", "amdgpu"},       {"compute_partition", "CPX"},
      {"memory_partition", "NPS4"}};
  for (const auto& [name, text] : facts) EXPECT_EQ(value_of(record, name, gpu), Value{text}) << name;
}

TEST(health_inventory, records_exactly_what_the_machine_tells) {
  const FakeTree tree;
  add_machine(tree);
  const Record record = record_of(probe_file("health_inventory"), {"--root", tree.path()});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  const Subject drive{"drive", "nvme0n1"};
  using Samples = std::vector<double>;
  EXPECT_EQ(samples_of(record, "memory_total", node), Samples{65536000.0 * 1024});
  EXPECT_EQ(samples_of(record, "cpus_total", node), Samples{2});
  EXPECT_EQ(samples_of(record, "sockets_total", node), Samples{1});
  EXPECT_EQ(samples_of(record, "cores_total", node), Samples{});
  EXPECT_EQ(samples_of(record, "dimms_total", node), Samples{1});
  EXPECT_EQ(samples_of(record, "dimm_slots_empty", node), Samples{1});
  EXPECT_EQ(samples_of(record, "dimm_size", {"dimm", "DIMM_A1"}), Samples{17179869184});
  EXPECT_EQ(samples_of(record, "drives_total", node), Samples{1});
  EXPECT_EQ(samples_of(record, "drive_size", drive), Samples{1024000});
  EXPECT_EQ(samples_of(record, "nics_total", node), Samples{2});
  EXPECT_EQ(samples_of(record, "nics_up", node), Samples{1});
  EXPECT_EQ(samples_of(record, "link_rate", {"nic", "eth0"}), Samples{3.125e9});
  EXPECT_EQ(samples_of(record, "link_rate", {"nic", "eth1"}), Samples{});
  EXPECT_EQ(samples_of(record, "accelerators_total", node), Samples{0});
  EXPECT_EQ(samples_of(record, "pcie_width", drive), Samples{2});
  EXPECT_EQ(samples_of(record, "pcie_width_max", drive), Samples{4});
  EXPECT_EQ(samples_of(record, "pcie_links_total", node), Samples{1});
  EXPECT_EQ(samples_of(record, "pcie_degraded_links", node), Samples{1});
  EXPECT_EQ(samples_of(record, "pcie_narrow_links", node), Samples{1});
  EXPECT_EQ(samples_of(record, "cpus_offline", node), Samples{0});
  EXPECT_EQ(samples_of(record, "dimms_unlike", node), Samples{0});
  EXPECT_EQ(samples_of(record, "dimms_slow", node), Samples{1});
  EXPECT_EQ(samples_of(record, "memory_fitted", node), Samples{17179869184});
  EXPECT_EQ(samples_of(record, "memory_rate", node), Samples{4400e6 * 8});
  EXPECT_EQ(samples_of(record, "link_rate_max", {"nic", "eth0"}), Samples{});  // the tree is not this machine
  EXPECT_EQ(value_of(record, "kernel", node), Value{std::string("6.8.0-31")});
  EXPECT_EQ(value_of(record, "operating_system", node), Value{std::string("Ubuntu 24.04 LTS")});
  EXPECT_EQ(value_of(record, "product", node), Value{std::string("HGX Base")});
  EXPECT_EQ(value_of(record, "product_serial", node), std::nullopt);
  EXPECT_EQ(value_of(record, "serial", drive), Value{std::string("S6CLNE0T")});
  EXPECT_EQ(value_of(record, "firmware", drive), Value{std::string("GDC7302Q")});
  EXPECT_EQ(value_of(record, "pci_address", drive), Value{std::string("0000:c1:00.0")});
  EXPECT_EQ(value_of(record, "numa_node", drive), std::nullopt);
  EXPECT_EQ(value_of(record, "link", {"nic", "eth1"}), Value{std::string("down")});
}

TEST(health_inventory, partitioned_gpus_and_the_guids_of_ports_are_recorded) {
  const FakeNvml fake("healthy", R"({"gpu": {"mig_mode": 1, "mig_instances": 7}})"), whole("healthy");
  const FakeTree tree;
  tree.file("proc/meminfo", "MemTotal: 1024 kB\n");
  tree.file("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  tree.file("sys/class/infiniband/mlx5_0/node_guid", "0c42:a103:00f4:1234\n");
  tree.directory("sys/class/infiniband/mlx5_0/device");
  tree.directory("sys/class/net");
  const auto recorded = [&](const FakeNvml& nvml) {
    return record_of(probe_file("health_inventory"), {"--root", tree.path(), "--nvml-library", nvml.library()});
  };
  const Record record = recorded(fake), other = recorded(whole);
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))}, gpu{"gpu", uuid_of(3)};
  EXPECT_EQ(value_of(record, "guid", {"nic", "mlx5_0"}), Value{std::string("0c42:a103:00f4:1234")});
  EXPECT_EQ(value_of(record, "mig_mode", gpu), Value{true});
  EXPECT_EQ(samples_of(record, "gpu_instances", node), std::vector<double>{56});
  EXPECT_EQ(value_of(other, "mig_mode", gpu), Value{false});
  EXPECT_EQ(samples_of(other, "gpu_instances", node), std::vector<double>{});
}

TEST(health_inventory, counts_are_absent_and_not_zero_where_nothing_is_told) {
  const FakeTree tree;
  tree.file("proc/meminfo", "MemTotal: 1024 kB\n");
  const Record record = record_of(probe_file("health_inventory"), {"--root", tree.path()});
  EXPECT_EQ(record.end.status, Status::complete);
  ASSERT_EQ(record.measurements.size(), 1U);
  EXPECT_EQ(record.measurements[0].metric, "memory_total");
}

TEST(health_inventory, a_root_that_is_no_machine_is_an_error_with_a_hint) {
  const FakeTree tree;
  const Record record = record_of(probe_file("health_inventory"), {"--root", tree.path()});
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_EQ(record.end.reason, "root: '" + tree.path() +
                                   "' holds neither proc/meminfo nor sys/devices\n"
                                   "hint: name the directory that proc and sys are in; / is this machine");
}

TEST(health_inventory, a_guest_and_switched_off_threads_tell_nothing_of_widths_and_offline_cpus) {
  const FakeTree tree;
  add_machine(tree);
  tree.file("proc/cpuinfo", "processor : 0\nflags : fpu hypervisor sse\n");
  tree.file("sys/devices/system/cpu/online", "0\n");
  tree.file("sys/devices/system/cpu/smt/control", "off\n");
  const Record record = record_of(probe_file("health_inventory"), {"--root", tree.path()});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(samples_of(record, "pcie_narrow_links", node), std::vector<double>{});
  EXPECT_EQ(samples_of(record, "cpus_offline", node), std::vector<double>{});
}

}  // namespace assay::health
