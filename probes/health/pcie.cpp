// pcie: class codes of the PCI Code and ID Assignment Specification 1.16, links from sysfs.
#include "probes/health/pcie.h"

#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/whole_number.h"

namespace assay::health {
namespace {

constexpr std::int64_t kWidthUnknown = 255;  // PCIE_LNK_WIDTH_UNKNOWN of the kernel

/// A sysfs number such as "0x030200".
std::optional<std::uint32_t> hexadecimal(const MachineTree& tree, const std::string& path) {
  const auto text = tree.text(path);
  if (!text || !text->starts_with("0x")) return std::nullopt;
  return whole_number<std::uint32_t>(std::string_view(*text).substr(2), 16);
}

std::optional<std::string> pci_id_of(const MachineTree& tree, const std::string& directory) {
  const auto vendor = hexadecimal(tree, directory + "/vendor");
  const auto device = hexadecimal(tree, directory + "/device");
  if (!vendor || !device) return std::nullopt;
  return fmt::format("{:04x}:{:04x}", *vendor, *device);
}

/// The kind of subject that a class of functions is; nothing for those of no interest.
const char* kind_of(std::uint32_t class_code) {
  constexpr std::uint32_t kNvme = 0x0108;
  constexpr std::uint32_t kDisplay = 0x03;
  constexpr std::uint32_t kNetwork = 0x02;
  constexpr std::uint32_t kAccelerator = 0x12;
  const std::uint32_t base = class_code >> 16;
  if (class_code >> 8 == kNvme) return "drive";
  if (base == kDisplay || base == kAccelerator) return "gpu";
  return base == kNetwork ? "nic" : nullptr;
}

/// The total in a list of counters by name: Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats.
std::optional<std::int64_t> total_of(const MachineTree& tree, const std::string& path, const std::string& name) {
  std::istringstream words(tree.text(path).value_or(""));
  std::int64_t value = 0;
  for (std::string word; words >> word >> value;) {
    if (word == name) return value;
  }
  return std::nullopt;
}

}  // namespace

// "32.0 GT/s PCIe" is a rate; a virtual machine writes "Unknown", and 0 or 255 lanes.
PcieLink read_pcie_link(const MachineTree& tree, const std::string& directory, const char* which) {
  PcieLink link;
  if (const auto text = tree.text(fmt::format("{}/{}_link_speed", directory, which))) {
    double rate = 0;
    const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), rate);
    if (error == std::errc{} && std::string_view(rest).starts_with(" GT/s") && rate > 0)
      link.transfers_per_s = rate * 1e9;
  }
  const auto width = tree.number(fmt::format("{}/{}_link_width", directory, which));
  if (width && *width > 0 && *width < kWidthUnknown) link.width = width;
  return link;
}

std::optional<bool> PcieDevice::degraded() const {
  const bool compares_rate = current.transfers_per_s && maximum.transfers_per_s;
  const bool compares_width = current.width && maximum.width;
  if (!compares_rate && !compares_width) return std::nullopt;
  return (compares_rate && *current.transfers_per_s < *maximum.transfers_per_s) ||
         (compares_width && *current.width < *maximum.width);
}

PcieErrors read_pcie_errors(const MachineTree& tree, const std::string& address) {
  const std::string directory = "sys/bus/pci/devices/" + address;
  return {.corrected = total_of(tree, directory + "/aer_dev_correctable", "TOTAL_ERR_COR"),
          .nonfatal = total_of(tree, directory + "/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
          .fatal = total_of(tree, directory + "/aer_dev_fatal", "TOTAL_ERR_FATAL")};
}

std::optional<std::int64_t> PcieErrors::uncorrected() const {
  if (!nonfatal && !fatal) return std::nullopt;
  return nonfatal.value_or(0) + fatal.value_or(0);
}

std::vector<PcieDevice> read_pcie_devices(const MachineTree& tree, const std::map<std::string, Subject>& known) {
  constexpr std::uint32_t k3dController = 0x0302;
  constexpr std::uint32_t kProcessingAccelerator = 0x1200;
  std::vector<PcieDevice> devices;
  for (const auto& address : tree.names("sys/bus/pci/devices")) {
    const std::string directory = "sys/bus/pci/devices/" + address;
    const auto class_code = hexadecimal(tree, directory + "/class");
    if (!class_code || tree.exists(directory + "/physfn")) continue;
    const char* kind = kind_of(*class_code);
    if (kind == nullptr) continue;
    const auto named = known.find(address);
    PcieDevice device{.address = address,
                      .subject = named == known.end() ? Subject{.kind = kind, .id = address} : named->second,
                      .pci_id = pci_id_of(tree, directory),
                      .driver = tree.target_name(directory + "/driver"),
                      .numa_node = tree.number(directory + "/numa_node"),
                      .accelerator = *class_code >> 8 == k3dController || *class_code >> 8 == kProcessingAccelerator,
                      .current = read_pcie_link(tree, directory, "current"),
                      .maximum = read_pcie_link(tree, directory, "max")};
    if (device.numa_node && *device.numa_node < 0) device.numa_node.reset();
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace assay::health
