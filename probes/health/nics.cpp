// nics: reads sysfs; the firmware version of an Ethernet port comes from an ioctl.
#include "probes/health/nics.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <sstream>

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"
#include "probes/core/link_modes.h"
#include "probes/core/machine_tree.h"
#include "probes/core/parameters.h"

namespace assay::health {
namespace {

constexpr double kBitsPerByte = 8;

/// Firmware version of a network interface as its driver reports it to ethtool.
std::optional<std::string> ethtool_firmware(const std::string& name) {
  const Descriptor control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));  // for the ioctl only
  if (!control || name.size() >= IFNAMSIZ) return std::nullopt;
  ethtool_drvinfo answer = {};
  answer.cmd = ETHTOOL_GDRVINFO;
  ifreq request = {};
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_data = reinterpret_cast<char*>(&answer);
  if (ioctl(control.number(), SIOCETHTOOL, &request) != 0) return std::nullopt;
  return told({answer.fw_version, strnlen(answer.fw_version, sizeof answer.fw_version)});
}

/// Bytes a second from sys/class/net/*/speed in Mbit/s; unknown is written as -1 or as its unsigned form.
std::optional<BytesPerSecond> ethernet_rate(const MachineTree& tree, const std::string& directory) {
  const auto speed = tree.number(directory + "/speed");
  if (!speed || *speed <= 0 || *speed >= std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return BytesPerSecond{static_cast<double>(*speed) * 1e6 / kBitsPerByte};
}

/// Bytes a second from the rate of an RDMA port, "400 Gb/sec (4X NDR)".
std::optional<BytesPerSecond> rdma_rate(const MachineTree& tree, const std::string& port) {
  const auto text = tree.text(port + "/rate");
  if (!text) return std::nullopt;
  double rate = 0;
  const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), rate);
  if (error != std::errc{} || !std::string_view(rest).starts_with(" Gb/sec") || !(rate > 0)) return std::nullopt;
  return BytesPerSecond{rate * 1e9 / kBitsPerByte};
}

/// The names of the entries of `directory`, as one text.
std::optional<std::string> listed(const MachineTree& tree, const std::string& directory) {
  std::string all;
  for (const auto& name : tree.names(directory)) all += (all.empty() ? "" : " ") + name;
  return told(all);
}

Nic ethernet_port(const MachineTree& tree, const std::string& name) {
  const std::string directory = "sys/class/net/" + name;
  Nic nic{.name = name,
          .up = tree.number(directory + "/carrier") == 1,
          .driver = tree.target_name(directory + "/device/driver"),
          .mac_address = tree.text(directory + "/address"),
          .rdma_device = listed(tree, directory + "/device/infiniband"),
          .pci_address = tree.pci_address(directory + "/device")};
  if (nic.up) nic.link_rate = ethernet_rate(tree, directory);
  if (tree.is_this_machine()) nic.link_rate_max = fastest_mode_of(name);
  if (nic.rdma_device) {
    const std::string device = fmt::format("{}/device/infiniband/{}/", directory, *nic.rdma_device);
    nic.firmware = tree.text(device + "fw_ver");
    nic.guid = tree.text(device + "node_guid");
  }
  if (!nic.firmware && tree.is_this_machine()) nic.firmware = ethtool_firmware(name);
  return nic;
}

/// One port of an RDMA device. A port without a link still reports a rate (the slowest there is), so the state is
/// asked.
Nic rdma_port(const MachineTree& tree, const std::string& device, const std::string& port, bool only_port) {
  const std::string directory = "sys/class/infiniband/" + device;
  const std::string port_directory = fmt::format("{}/ports/{}", directory, port);
  Nic nic{.name = only_port ? device : fmt::format("{}/{}", device, port),
          .up = tree.text(port_directory + "/state").value_or("").ends_with("ACTIVE"),
          .driver = tree.target_name(directory + "/device/driver"),
          .firmware = tree.text(directory + "/fw_ver"),
          .rdma_device = device,
          .guid = tree.text(directory + "/node_guid"),
          .pci_address = tree.pci_address(directory + "/device")};
  if (nic.up) nic.link_rate = rdma_rate(tree, port_directory);
  return nic;
}

}  // namespace

std::vector<Nic> read_nics(const MachineTree& tree) {
  const auto is_port = [&](const std::string& directory) {
    return tree.exists(directory + "/device") && !tree.exists(directory + "/device/physfn");
  };
  std::vector<Nic> nics;
  for (const auto& name : tree.names("sys/class/net")) {
    if (is_port("sys/class/net/" + name)) nics.push_back(ethernet_port(tree, name));
  }
  for (const auto& device : tree.names("sys/class/infiniband")) {
    const std::string directory = "sys/class/infiniband/" + device;
    if (!is_port(directory) || !tree.names(directory + "/device/net").empty()) continue;
    const auto ports = tree.names(directory + "/ports");
    for (const auto& port : ports) nics.push_back(rdma_port(tree, device, port, ports.size() == 1));
  }
  return nics;
}

std::vector<std::string> port_names(const std::string& row) {
  std::vector<std::string> names;
  std::istringstream list(row);
  for (std::string name; std::getline(list, name, ',');) {
    if (name.empty() || name.find('/') != std::string::npos)
      throw BadParameter(fmt::format("interface: '{}' is no name of a port", name));
    names.push_back(name);
  }
  if (names.empty()) throw BadParameter("interface: names no port");
  return names;
}

}  // namespace assay::health
