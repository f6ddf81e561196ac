// cxl: sysfs (Linux Documentation/ABI/testing/sysfs-bus-cxl), the link of the PCI function behind a device, and one
// mailbox command (linux/cxl_mem.h), whose answer is laid out as in libcxl of ndctl.
#include "probes/health/cxl.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/cxl_mem.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"
#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

constexpr std::size_t kAnswer = 18;

constexpr std::array<std::string_view, 3> kStatusBits = {"maintenance needed", "performance degraded",
                                                         "replacement needed"};
constexpr std::array<std::string_view, 10> kMediaStates = {"",
                                                           "media not ready",
                                                           "media persistence lost",
                                                           "media data lost",
                                                           "media persistence lost at power loss",
                                                           "media persistence lost at shutdown",
                                                           "media persistence loss imminent",
                                                           "media data lost at power loss",
                                                           "media data lost at shutdown",
                                                           "media data loss imminent"};

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Counts a two-bit field of the additional status: 1 is a warning, 2 is critical.
void add_level(CxlHealth& health, unsigned level, std::string_view of) {
  if (level == 0) return;
  health.states += fmt::format("{}{} {}", health.states.empty() ? "" : ", ", of, level == 1 ? "warning" : "critical");
  if (level > 1) ++health.faults;
}

void add_fault(CxlHealth& health, std::string_view what) {
  health.states += fmt::format("{}{}", health.states.empty() ? "" : ", ", what);
  ++health.faults;
}

void ask_device(CxlMemory& device) {
  const std::string path = "/dev/cxl/" + device.name;
  const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) {
    device.health_absent = fmt::format("{} cannot be opened: {}", path, std::strerror(errno));
    return;
  }
  std::array<char, kAnswer> answer = {};
  cxl_send_command command = {};
  command.id = CXL_MEM_COMMAND_ID_GET_HEALTH_INFO;
  command.out.size = kAnswer;
  command.out.payload = reinterpret_cast<std::uintptr_t>(answer.data());
  if (ioctl(file.number(), CXL_MEM_SEND_COMMAND, &command) != 0) {
    device.health_absent = fmt::format("{} refuses Get Health Info: {}", path, std::strerror(errno));
  } else if (command.retval != 0) {
    device.health_absent = fmt::format("{} answers Get Health Info with error {}", path, command.retval);
  } else {
    device.health = parse_cxl_health({answer.data(), std::min<std::size_t>(command.out.size, kAnswer)});
    if (!device.health) device.health_absent = fmt::format("{} answers with {} bytes", path, command.out.size);
  }
}

}  // namespace

std::optional<bool> CxlMemory::narrow() const {
  if (!current.width || !maximum.width) return std::nullopt;
  return *current.width < *maximum.width;
}

std::optional<bool> CxlMemory::slow() const {
  if (!current.transfers_per_s || !maximum.transfers_per_s) return std::nullopt;
  return *current.transfers_per_s < *maximum.transfers_per_s;
}

std::optional<CxlHealth> parse_cxl_health(std::string_view answer) {
  if (answer.size() < kAnswer) return std::nullopt;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(answer[at]); };
  CxlHealth health;
  for (std::size_t bit = 0; bit < kStatusBits.size(); ++bit) {
    if ((byte(0) >> bit & 1U) != 0) add_fault(health, kStatusBits[bit]);
  }
  if (byte(1) != 0)
    add_fault(health, byte(1) < kMediaStates.size() ? std::string(kMediaStates[byte(1)])
                                                    : fmt::format("media status {}", byte(1)));
  add_level(health, byte(2) & 3U, "life used");
  add_level(health, byte(2) >> 2 & 3U, "temperature");
  add_level(health, byte(2) >> 4 & 1U, "corrected volatile errors");
  add_level(health, byte(2) >> 5 & 1U, "corrected persistent errors");
  constexpr unsigned char kNoLife = 0xff;
  constexpr std::uint32_t kNoTemperature = 0xffff;
  if (byte(3) != kNoLife) health.life_used = byte(3) / 100.0;  // the device reports per cent
  if (const auto temperature = little_endian(answer.substr(4, 2)); temperature != kNoTemperature)
    health.temperature_c = static_cast<std::int16_t>(temperature);
  health.dirty_shutdowns = little_endian(answer.substr(6, 4));
  health.corrected_volatile = little_endian(answer.substr(10, 4));
  health.corrected_persistent = little_endian(answer.substr(14, 4));
  return health;
}

std::vector<CxlMemory> read_cxl_memory(const MachineTree& tree) {
  constexpr const char* kDevices = "sys/bus/cxl/devices";
  std::vector<CxlMemory> devices;
  for (const auto& name : tree.names(kDevices)) {
    if (!name.starts_with("mem")) continue;
    const std::string path = fmt::format("{}/{}", kDevices, name);
    CxlMemory device;
    device.name = name;
    const auto size = [&](const char* part) -> std::optional<std::int64_t> {
      const auto text = tree.text(fmt::format("{}/{}/size", path, part));  // "0x1000000000"
      if (!text || !text->starts_with("0x")) return std::nullopt;
      return static_cast<std::int64_t>(std::strtoull(text->c_str() + 2, nullptr, 16));
    };
    device.volatile_b = size("ram");
    device.persistent_b = size("pmem");
    device.serial = tree.text(path + "/serial");
    device.firmware = tree.text(path + "/firmware_version");
    device.numa_node = tree.number(path + "/numa_node");
    device.pci_address = tree.pci_address(path);
    if (device.pci_address) {
      const std::string function = "sys/bus/pci/devices/" + *device.pci_address;
      device.current = read_pcie_link(tree, function, "current");
      device.maximum = read_pcie_link(tree, function, "max");
      device.errors = read_pcie_errors(tree, *device.pci_address);
    }
    if (tree.is_this_machine()) {
      ask_device(device);
    } else if (const auto answer = tree.bytes(fmt::format("saved/{}.health", name), kAnswer)) {
      device.health = parse_cxl_health(*answer);
    }
    if (!device.health && device.health_absent.empty()) device.health_absent = "it was not saved";
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace assay::health
