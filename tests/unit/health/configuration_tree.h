// configuration_tree: a healthy node of two GPUs and two RDMA ports behind two switches, as host_configuration reads
// it.
#pragma once

#include <cstdint>
#include <string>

#include "tests/unit/fake_tree.h"

namespace assay::health {

/// What a configuration space holds; the defaults are those of a healthy GPU or RDMA function.
struct Space {
  unsigned control = 0x5030;  ///< Device Control: relaxed ordering, payload 256, reads of 4096
  int acs = -1;               ///< ACS Control; -1: no such capability
  std::size_t size = 4096;    ///< bytes that the kernel shows
};

/// Its bytes: the PCI Express capability at 0x40, ACS behind another extended capability at 0x148.
inline std::string space_of(const Space& given) {
  std::string bytes(4096, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i) & 0xFF);
  };
  put(0x00, 0x10DE, 2);
  put(0x06, 0x0010, 2);  // it has capabilities
  put(0x34, 0x60, 1);
  put(0x60, 0x4001, 2);  // power management, next at 0x40
  put(0x40, 0x0010, 2);  // PCI Express, the last
  put(0x44, 0x1, 4);     // payloads of 256
  put(0x48, given.control, 2);
  put(0x100, 0x00010001 | (given.acs < 0 ? 0U : 0x148U << 20), 4);  // error reporting
  if (given.acs >= 0) {
    put(0x148, 0x0001000D, 4);
    put(0x14E, static_cast<std::uint32_t>(given.acs), 2);
  }
  bytes.resize(given.size);
  return bytes;
}

inline constexpr const char* kDevices = "sys/devices/";
inline constexpr const char* kGpu0 = "0000:1b:00.0";
inline constexpr const char* kNic0 = "0000:1c:00.0";
inline constexpr const char* kSwitch0 = "0000:17:01.0";

/// Writes the configuration space of a function.
inline void set_space(const FakeTree& tree, const std::string& address, const Space& space) {
  tree.file("sys/bus/pci/devices/" + address + "/config", space_of(space));
}

/// One function below `route`, and the ports above it that are not there yet.
inline void add_pci_function(const FakeTree& tree, const std::string& route, const std::string& address,
                             const std::string& class_code, const std::string& node) {
  const std::string place = kDevices + route + "/" + address;
  tree.link("sys/bus/pci/devices/" + address, place);
  tree.file(place + "/class", class_code + "\n");
  tree.file(place + "/numa_node", node + "\n");
  set_space(tree, address, {});
}

/// The attributes of an answer to DCB_CMD_IEEE_GET: flow control on `lossless`, DSCP 26 on priority 3.
inline std::string dcb_of(unsigned char lossless) {
  const auto attribute = [](unsigned type, std::string bytes) {
    const std::size_t size = bytes.size() + 4;
    bytes.resize((bytes.size() + 3) / 4 * 4);
    return std::string{static_cast<char>(size), static_cast<char>(size >> 8), static_cast<char>(type), '\0'} + bytes;
  };
  std::string flow(136, '\0');  // struct ieee_pfc
  flow[1] = static_cast<char>(lossless);
  const std::string app = {5, 3, 26, 0};  // struct dcb_app: selector DSCP, priority 3, DSCP 26
  return attribute(1, std::string("eth0", 5)) + attribute(13, attribute(2, flow) + attribute(3, attribute(1, app)));
}

/// A GPU and an RDMA port behind switch `i`, on NUMA node `i`.
inline void add_half(const FakeTree& tree, int i) {
  const std::string bus = i == 0 ? "17" : "97", below = i == 0 ? "1" : "9", number = std::to_string(i);
  const std::string root = "pci0000:" + bus + "/0000:" + bus + ":01.0";
  const std::string port = root + "/0000:" + bus + ":02.0";
  for (const auto& [route, address] : {std::pair{root, "0000:" + bus + ":01.0"}, {port, "0000:" + bus + ":02.0"}}) {
    tree.link("sys/bus/pci/devices/" + address, kDevices + route);
    tree.file(kDevices + route + "/class", "0x060400\n");
    set_space(tree, address, {.acs = 0});
  }
  const std::string gpu = "0000:" + below + "b:00.0", nic = "0000:" + below + "c:00.0", device = "mlx5_" + number;
  add_pci_function(tree, port, gpu, "0x030200", number);
  add_pci_function(tree, port, nic, "0x020000", number);
  const std::string place = kDevices + port + "/" + nic, name = "eth" + number;
  tree.link("sys/class/net/" + name, place + "/net/" + name);
  tree.link(place + "/net/" + name + "/device", place);
  tree.file(place + "/net/" + name + "/carrier", "1\n");
  tree.link("sys/class/infiniband/" + device, place + "/infiniband/" + device);
  tree.link(place + "/infiniband/" + device + "/device", place);
  tree.file(place + "/infiniband/" + device + "/fw_ver", "28.46.3008\n");
  tree.file(place + "/infiniband/" + device + "/ports/1/link_layer", "Ethernet\n");
  tree.file(place + "/infiniband/" + device + "/ports/1/state", "4: ACTIVE\n");
  tree.file(place + "/infiniband/" + device + "/tc/1/traffic_class", "Global tclass=106\n");
  for (const auto* direction : {"roce_np", "roce_rp"})
    tree.file(place + "/net/" + name + "/ecn/" + direction + "/enable/3", "1\n");
  tree.file("saved/" + name + ".dcb", dcb_of(0x08));
  for (const auto& address : {gpu, nic}) {
    const std::string group = "sys/kernel/iommu_groups/" + address.substr(5, 2);
    tree.file(group + "/type", "identity\n");
    tree.link("sys/bus/pci/devices/" + address + "/iommu_group", group);
  }
}

/// The whole node.
inline void add_healthy_node(const FakeTree& tree) {
  for (int i = 0; i < 2; ++i) add_half(tree, i);
  tree.directory("sys/class/iommu/dmar0");
  tree.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 intel_iommu=on iommu=pt\n");
  tree.file("proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
  tree.file("proc/sys/kernel/numa_balancing", "0\n");
  tree.file("proc/self/smaps",
            "00400000-0040b000 r-xp 00000000 fe:00 1 /bin/x\nSize: 44 kB\nKernelPageSize:        4 kB\n");
  tree.file("proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n"
            "Max open files            1048576              1048576              files     \n"
            "Max locked memory         unlimited            unlimited            bytes     \n");
  tree.file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  tree.file("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n");
  tree.file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n");
  tree.file("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  tree.file("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n");
  tree.file("sys/devices/system/cpu/vulnerabilities/spectre_v1", "Mitigation: usercopy/swapgs barriers\n");
  tree.file("sys/devices/system/cpu/smt/active", "1\n");
  for (const std::string cpu : {"0", "1"}) {
    tree.file("sys/devices/system/cpu/cpufreq/policy" + cpu + "/scaling_governor", "performance\n");
    const std::string states = "sys/devices/system/cpu/cpu" + cpu + "/cpuidle/";
    const char* latencies[] = {"0\n", "2\n", "190\n"};
    const char* names[] = {"POLL\n", "C1\n", "C6\n"};
    for (int i = 0; i < 3; ++i) {
      tree.file(states + "state" + std::to_string(i) + "/name", names[i]);
      tree.file(states + "state" + std::to_string(i) + "/latency", latencies[i]);
      tree.file(states + "state" + std::to_string(i) + "/disable", i == 2 ? "1\n" : "0\n");
    }
  }
  tree.file("sys/module/nvidia/version", "580.159.03\n");
  tree.directory("sys/module/nvidia_peermem");
  tree.file("sys/module/mlx5_core/parameters/prof_sel", "2\n");
  tree.file("sys/module/ib_core/parameters/send_queue_size", "128\n");
  tree.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03\n");
  tree.file("proc/driver/nvidia/params", "EnableStreamMemOPs: 0\nRegistryDwords: \"PeerMappingOverride=1;\"\n");
  tree.file("var/lib/dpkg/status",
            "Package: containerd.io\nStatus: install ok installed\nVersion: 1.7.27-1\n\n"
            "Package: docker-ce\nStatus: deinstall ok config-files\nVersion: 5:20.1-1\n\n"
            "Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: 1.19.1-1\n");
}

}  // namespace assay::health
