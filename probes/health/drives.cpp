// drives: NVMe, SCSI and virtio keep the same facts in different files of sysfs; the first that exists is read.
#include "probes/health/drives.h"

#include <initializer_list>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

constexpr std::int64_t kSector = 512;     // unit of sys/block/*/size for any sector size of the drive
constexpr std::int64_t kScsiOptical = 5;  // peripheral device type, SPC-5 table 146
constexpr std::size_t kPageLimit = 4096;  // a vital product data page is shorter

std::optional<std::string> first_of(const MachineTree& tree, const std::string& directory,
                                    std::initializer_list<const char*> files) {
  for (const char* file : files) {
    if (auto text = tree.text(directory + "/" + file)) return text;
  }
  return std::nullopt;
}

/// The serial number of a SCSI or SATA drive from its vital product data page 80h: four bytes of header, then text.
std::optional<std::string> scsi_serial(const MachineTree& tree, const std::string& directory) {
  constexpr std::size_t kPageHeader = 4;
  const auto page = tree.bytes(directory + "/device/vpd_pg80", kPageLimit);
  if (!page || page->size() < kPageHeader) return std::nullopt;
  const auto length =
      static_cast<std::size_t>(static_cast<unsigned char>((*page)[2])) << 8 | static_cast<unsigned char>((*page)[3]);
  return told(std::string_view(*page).substr(kPageHeader, length));
}

/// The controller's PCI function. A multipath NVMe drive hangs on a subsystem that lists its controllers (nvme0,
/// nvme1); the first represents them.
std::optional<std::string> controller_address(const MachineTree& tree, const std::string& directory) {
  if (auto address = tree.pci_address(directory + "/device")) return address;
  for (const auto& name : tree.names(directory + "/device")) {
    if (!name.starts_with("nvme")) continue;
    if (auto address = tree.pci_address(fmt::format("{}/device/{}", directory, name))) return address;
  }
  return std::nullopt;
}

bool is_hardware(const MachineTree& tree, const std::string& directory) {
  return tree.exists(directory + "/device") && tree.number(directory + "/hidden").value_or(0) == 0 &&
         tree.number(directory + "/device/type").value_or(0) != kScsiOptical;
}

}  // namespace

std::vector<Drive> read_drives(const MachineTree& tree) {
  std::vector<Drive> drives;
  for (const auto& name : tree.names("sys/block")) {
    const std::string directory = "sys/block/" + name;
    if (!is_hardware(tree, directory)) continue;
    const auto sectors = tree.number(directory + "/size").value_or(0);
    if (sectors <= 0 && tree.number(directory + "/removable").value_or(0) != 0) continue;
    Drive drive{.name = name,
                .model = first_of(tree, directory, {"device/model"}),
                .serial = first_of(tree, directory, {"device/serial", "serial"}),
                .firmware = first_of(tree, directory, {"device/firmware_rev", "device/rev"}),
                .pci_address = controller_address(tree, directory)};
    if (sectors > 0) drive.size = Bytes{static_cast<std::uint64_t>(sectors) * kSector};
    if (const auto rotational = tree.number(directory + "/queue/rotational")) drive.rotational = *rotational != 0;
    if (!drive.serial) drive.serial = scsi_serial(tree, directory);
    drives.push_back(std::move(drive));
  }
  return drives;
}

}  // namespace assay::health
