// The parts of a machine, read from small trees of its /proc and /sys.
#include <gtest/gtest.h>

#include "probes/core/machine_tree.h"
#include "probes/health/drives.h"
#include "probes/health/nics.h"
#include "probes/health/pcie.h"
#include "probes/health/processors.h"
#include "tests/unit/fake_tree.h"

namespace assay::health {
namespace {

const std::string kPci = "sys/devices/pci0000:00/";

/// A network interface on PCI with the driver mlx5_core.
void add_nic(const FakeTree& tree, const std::string& name, const std::string& address, const std::string& carrier,
             const std::string& speed) {
  const std::string device = kPci + address;
  tree.link("sys/class/net/" + name, device + "/net/" + name);
  tree.link(device + "/net/" + name + "/device", device);
  tree.link(device + "/driver", "sys/bus/pci/drivers/mlx5_core");
  tree.file(device + "/net/" + name + "/carrier", carrier);
  tree.file(device + "/net/" + name + "/speed", speed);
  tree.file(device + "/net/" + name + "/address", "02:00:00:00:00:0" + carrier.substr(0, 1) + "\n");
}

/// A PCI function of `class_code` with the links given as "rate|width".
void add_function(const FakeTree& tree, const std::string& address, const std::string& class_code,
                  const std::string& rate, const std::string& width) {
  tree.link("sys/bus/pci/devices/" + address, kPci + address);
  tree.file(kPci + address + "/class", class_code + "\n");
  tree.file(kPci + address + "/current_link_speed", rate + "\n");
  tree.file(kPci + address + "/max_link_speed", "32.0 GT/s PCIe\n");
  tree.file(kPci + address + "/current_link_width", width + "\n");
  tree.file(kPci + address + "/max_link_width", "4\n");
}

}  // namespace

TEST(machine_tree, placeholders_and_empty_files_tell_nothing) {
  const FakeTree fake;
  fake.file("serial", " To Be Filled By O.E.M.\n");
  fake.file("empty", "\n");
  fake.file("number", "12 apples\n");
  const MachineTree tree(fake.path());
  EXPECT_EQ(tree.text("serial"), std::nullopt);
  EXPECT_EQ(tree.text("empty"), std::nullopt);
  EXPECT_EQ(tree.number("number"), std::nullopt);
  EXPECT_EQ(tree.text("missing"), std::nullopt);
  EXPECT_EQ(tree.bytes("number", 5), std::nullopt);
  EXPECT_TRUE(tree.names("missing").empty());
}

TEST(machine_tree, a_pci_domain_has_four_digits_or_more) {
  const FakeTree fake;
  const std::string controller = "sys/devices/pci0000:d7/0000:d7:05.5";
  const auto address = [&](const std::string& function) {
    fake.directory(controller + "/" + function + "/nvme/nvme0");
    return MachineTree(fake.path()).pci_address(controller + "/" + function + "/nvme/nvme0");
  };
  for (const char* function : {"0000:d8:00.0", "10001:03:00.0", "8a3f2:01:00.0", "1a2b3c4d:01:00.1"})
    EXPECT_EQ(address(function), function);
  for (const char* other : {"001:03:00.0", "123456789:03:00.0", "1000x:03:00.0", "10001:3:00.0", "10001:03:00"})
    EXPECT_EQ(address(other), "0000:d7:05.5") << other;
  EXPECT_EQ(MachineTree(fake.path()).pci_route(controller + "/10001:03:00.0"),
            (std::vector<std::string>{"pci0000:d7", "0000:d7:05.5", "10001:03:00.0"}));
}

TEST(machine_tree, cpu_lists_are_read_or_refused_whole) {
  EXPECT_EQ(parse_cpu_list("0-2,5"), (std::vector<int>{0, 1, 2, 5}));
  for (const char* bad : {"", "3-1", "0-", "0-99999999", "1;2", "-1"})
    EXPECT_EQ(parse_cpu_list(bad), std::nullopt) << bad;
}

TEST(processors, an_offline_cpu_is_present_but_not_online) {
  const FakeTree fake;
  const std::string cpus = "sys/devices/system/cpu/";
  fake.file(cpus + "present", "0-3\n");
  fake.file(cpus + "online", "0-2\n");
  for (const auto* cpu : {"cpu0", "cpu1"}) {
    fake.file(cpus + cpu + "/topology/physical_package_id", "0\n");
    fake.file(cpus + cpu + "/topology/thread_siblings_list", "0-1\n");
  }
  fake.file(cpus + "cpu2/topology/physical_package_id", "1\n");
  fake.file(cpus + "cpu2/topology/thread_siblings_list", "2\n");
  fake.file("proc/cpuinfo",
            "processor\t: 0\nmodel name\t: EPYC 9654\nmicrocode\t: 0xa1\n\nprocessor\t: 1\nmodel name\t: EPYC 9654\n"
            "microcode\t: 0xa1\n\nprocessor\t: 2\nmodel name\t: EPYC 9654\nmicrocode\t: 0xa2\n");
  const Processors found = read_processors(MachineTree(fake.path()));
  EXPECT_EQ(found.cpus, 4);
  EXPECT_EQ(found.cpus_online, 3);
  EXPECT_EQ(found.cores, 2);
  ASSERT_EQ(found.packages.size(), 2U);
  EXPECT_EQ(found.packages.at("package-0").microcode, "0xa1");
  EXPECT_EQ(found.packages.at("package-1").microcode, "0xa2");
  EXPECT_EQ(found.packages.at("package-1").model, "EPYC 9654");
}

/// Cores as the kernel tells them apart: by their threads, and where it lists none by package, die, cluster and
/// core_id.
TEST(processors, a_core_id_that_repeats_within_a_package_is_no_core_twice) {
  const std::string cpus = "sys/devices/system/cpu/";
  const auto cores = [&](const std::vector<std::pair<std::string, std::string>>& files) {
    const FakeTree fake;
    fake.file(cpus + "online", "0-1\n");
    for (const auto& [name, text] : files) fake.file(cpus + name, text + "\n");
    return read_processors(MachineTree(fake.path())).cores;
  };
  const std::string one = "cpu0/topology/", two = "cpu1/topology/";
  EXPECT_EQ(cores({{one + "core_id", "0"},
                   {one + "thread_siblings_list", "0"},
                   {two + "core_id", "0"},
                   {two + "thread_siblings_list", "1"}}),
            2);
  EXPECT_EQ(cores({{one + "core_id", "0"},
                   {one + "core_cpus_list", "0-1"},
                   {two + "core_id", "0"},
                   {two + "core_cpus_list", "0-1"}}),
            1);
  for (const char* level : {"physical_package_id", "die_id", "cluster_id"}) {
    EXPECT_EQ(cores({{one + "core_id", "0"}, {one + level, "0"}, {two + "core_id", "0"}, {two + level, "1"}}), 2)
        << level;
    EXPECT_EQ(cores({{one + "core_id", "0"}, {one + level, "0"}, {two + "core_id", "0"}, {two + level, "0"}}), 1)
        << level;
  }
}

TEST(processors, a_machine_that_tells_nothing_has_no_counts) {
  const FakeTree fake;
  const Processors found = read_processors(MachineTree(fake.path()));
  EXPECT_EQ(found.cpus, std::nullopt);
  EXPECT_EQ(found.cores, std::nullopt);
  EXPECT_TRUE(found.packages.empty());
}

TEST(nics, a_port_without_a_link_has_no_rate) {
  const FakeTree fake;
  add_nic(fake, "eth0", "0000:5e:00.0", "1\n", "400000\n");
  add_nic(fake, "eth1", "0000:5e:00.1", "0\n", "400000\n");
  fake.directory("sys/class/net/lo");
  const auto nics = read_nics(MachineTree(fake.path()));
  ASSERT_EQ(nics.size(), 2U);
  EXPECT_TRUE(nics[0].up);
  EXPECT_EQ(nics[0].link_rate, BytesPerSecond{50e9});
  EXPECT_EQ(nics[0].driver, "mlx5_core");
  EXPECT_EQ(nics[0].pci_address, "0000:5e:00.0");
  EXPECT_FALSE(nics[1].up);
  EXPECT_EQ(nics[1].link_rate, std::nullopt);
}

TEST(nics, an_unknown_speed_is_absent_in_both_its_spellings) {
  const FakeTree fake;
  add_nic(fake, "eth0", "0000:5e:00.0", "1\n", "-1\n");
  add_nic(fake, "eth1", "0000:5e:00.1", "1\n", "4294967295\n");
  const auto nics = read_nics(MachineTree(fake.path()));
  EXPECT_EQ(nics.at(0).link_rate, std::nullopt);
  EXPECT_EQ(nics.at(1).link_rate, std::nullopt);
}

TEST(nics, a_virtual_function_of_this_machine_is_no_hardware) {
  const FakeTree fake;
  add_nic(fake, "eth0", "0000:5e:00.0", "1\n", "400000\n");
  add_nic(fake, "eth0v0", "0000:5e:00.2", "1\n", "400000\n");
  fake.link(kPci + "0000:5e:00.2/physfn", kPci + "0000:5e:00.0");
  EXPECT_EQ(read_nics(MachineTree(fake.path())).size(), 1U);
}

TEST(nics, infiniband_ports_without_an_interface_count_and_a_down_port_has_no_rate) {
  const FakeTree fake;
  for (const auto* device : {"mlx5_0", "mlx5_1"}) {
    const std::string directory = std::string("sys/class/infiniband/") + device;
    fake.link(directory + "/device", kPci + (device[5] == '0' ? "0000:5e:00.0" : "0000:9e:00.0"));
    fake.file(directory + "/fw_ver", "28.39.1002\n");
    fake.file(directory + "/ports/1/rate", device[5] == '0' ? "400 Gb/sec (4X NDR)\n" : "2.5 Gb/sec (1X SDR)\n");
    fake.file(directory + "/ports/1/state", device[5] == '0' ? "4: ACTIVE\n" : "1: DOWN\n");
  }
  const auto nics = read_nics(MachineTree(fake.path()));
  ASSERT_EQ(nics.size(), 2U);
  EXPECT_EQ(nics[0].name, "mlx5_0");
  EXPECT_EQ(nics[0].link_rate, BytesPerSecond{50e9});
  EXPECT_EQ(nics[0].firmware, "28.39.1002");
  EXPECT_FALSE(nics[1].up);
  EXPECT_EQ(nics[1].link_rate, std::nullopt);
}

TEST(nics, an_rdma_device_behind_an_interface_is_not_counted_twice) {
  const FakeTree fake;
  add_nic(fake, "eth0", "0000:5e:00.0", "1\n", "400000\n");
  fake.file(kPci + "0000:5e:00.0/infiniband/mlx5_0/fw_ver", "28.39.1002\n");
  fake.file(kPci + "0000:5e:00.0/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  fake.link(kPci + "0000:5e:00.0/infiniband/mlx5_0/device", kPci + "0000:5e:00.0");
  fake.link("sys/class/infiniband/mlx5_0", kPci + "0000:5e:00.0/infiniband/mlx5_0");
  const auto nics = read_nics(MachineTree(fake.path()));
  ASSERT_EQ(nics.size(), 1U);
  EXPECT_EQ(nics[0].rdma_device, "mlx5_0");
  EXPECT_EQ(nics[0].firmware, "28.39.1002");
}

TEST(drives, only_hardware_with_a_medium_is_a_drive) {
  const FakeTree fake;
  fake.file("sys/block/loop0/size", "2048\n");
  fake.file("sys/block/nvme0c0n1/hidden", "1\n");
  fake.directory("sys/block/nvme0c0n1/device");
  fake.file("sys/block/sr0/device/type", "5\n");
  fake.file("sys/block/sdb/removable", "1\n");
  fake.file("sys/block/sdb/size", "0\n");
  fake.directory("sys/block/sdb/device");
  fake.file("sys/block/sda/size", "7814037168\n");
  fake.file("sys/block/sda/queue/rotational", "1\n");
  fake.file("sys/block/sda/device/model", "ST4000NM0035    \n");
  fake.file("sys/block/sda/device/rev", "TN05\n");
  fake.file("sys/block/sda/device/vpd_pg80", std::string("\x00\x80\x00\x08", 4) + "ZC1ABCDE");
  const auto drives = read_drives(MachineTree(fake.path()));
  ASSERT_EQ(drives.size(), 1U);
  EXPECT_EQ(drives[0].name, "sda");
  EXPECT_EQ(drives[0].size, Bytes{7814037168ULL * 512});
  EXPECT_EQ(drives[0].rotational, true);
  EXPECT_EQ(drives[0].model, "ST4000NM0035");
  EXPECT_EQ(drives[0].firmware, "TN05");
  EXPECT_EQ(drives[0].serial, "ZC1ABCDE");
  EXPECT_EQ(drives[0].pci_address, std::nullopt);
}

TEST(drives, a_multipath_nvme_drive_sits_on_its_first_controller) {
  const FakeTree fake;
  fake.link("sys/block/nvme0n1/device", "sys/devices/virtual/nvme-subsystem/nvme-subsys0");
  fake.link("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0", kPci + "0000:c1:00.0/nvme/nvme0");
  fake.link("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme1", kPci + "0000:c2:00.0/nvme/nvme1");
  fake.file("sys/block/nvme0n1/size", "100\n");
  EXPECT_EQ(read_drives(MachineTree(fake.path())).at(0).pci_address, "0000:c1:00.0");
}

TEST(pcie, a_link_below_what_the_device_is_made_for_is_degraded) {
  const FakeTree fake;
  add_function(fake, "0000:01:00.0", "0x010802", "32.0 GT/s PCIe", "4");
  add_function(fake, "0000:02:00.0", "0x010802", "32.0 GT/s PCIe", "2");
  add_function(fake, "0000:03:00.0", "0x030200", "2.5 GT/s PCIe", "4");
  add_function(fake, "0000:04:00.0", "0x020000", "Unknown", "255");
  add_function(fake, "0000:05:00.0", "0x060400", "2.5 GT/s PCIe", "1");
  const auto devices = read_pcie_devices(MachineTree(fake.path()), {{"0000:02:00.0", {"drive", "nvme1n1"}}});
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_EQ(devices[0].degraded(), false);
  EXPECT_EQ(devices[0].subject, (Subject{"drive", "0000:01:00.0"}));
  EXPECT_EQ(devices[1].degraded(), true);
  EXPECT_EQ(devices[1].subject, (Subject{"drive", "nvme1n1"}));
  EXPECT_EQ(devices[1].current.width, 2);
  EXPECT_EQ(devices[2].degraded(), true);
  EXPECT_EQ(devices[2].subject.kind, "gpu");
  EXPECT_TRUE(devices[2].accelerator);
  EXPECT_EQ(devices[2].current.transfers_per_s, 2.5e9);
  EXPECT_EQ(devices[3].degraded(), std::nullopt);
  EXPECT_EQ(devices[3].current.width, std::nullopt);
}

}  // namespace assay::health
