// drives: NVMe, SCSI and virtio keep the same facts in different files of sysfs; the first that exists is read.
// Names as the kernel gives them (drivers/nvme/host/multipath.c): nvme<subsystem>n<namespace> for the
// drive, nvme<subsystem>c<controller>n<namespace> for a hidden path; only that has an ANA state.
#include "probes/health/drives.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

constexpr const char* kClass = "sys/class/nvme";

/// "nvme0c1n2" in the form "nvmecn"; empty if it is no such name.
std::string form_of(std::string_view name) {
  std::string form;
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) form += c;
  }
  return name.empty() || std::isdigit(static_cast<unsigned char>(name.back())) == 0 ? "" : form;
}

bool is_controller(std::string_view name) { return form_of(name) == "nvme"; }

/// Subsystem of each controller that the kernel lists under one.
std::map<std::string, std::string> subsystems(const MachineTree& tree) {
  std::map<std::string, std::string> of;
  for (const auto& subsystem : tree.names("sys/class/nvme-subsystem")) {
    for (const auto& name : tree.names("sys/class/nvme-subsystem/" + subsystem)) {
      if (is_controller(name)) of[name] = subsystem;
    }
  }
  return of;
}

void add_controller(const MachineTree& tree, const std::string& controller, NvmeDrive& drive) {
  const std::string directory = fmt::format("{}/{}", kClass, controller);
  const auto text = [&](const char* name) { return tree.text(directory + "/" + name); };
  const NvmePath way{.controller = controller,
                     .transport = text("transport").value_or(""),
                     .address = text("address").value_or(""),
                     .state = text("state").value_or(""),
                     .ana_state = {}};
  drive.controllers.push_back(controller);
  if (!drive.model) drive.model = text("model");
  if (!drive.serial) drive.serial = text("serial");
  if (!drive.firmware) drive.firmware = text("firmware_rev");
  if (!drive.pci_address) drive.pci_address = tree.pci_address(directory + "/device");
  bool any = false;
  for (const auto& name : tree.names(directory)) {
    const std::string form = form_of(name);
    if (form == "nvmen") drive.namespaces.push_back(name);
    if (form != "nvmen" && form != "nvmecn") continue;
    drive.paths.push_back(way);
    drive.paths.back().ana_state = tree.text(fmt::format("{}/{}/ana_state", directory, name));
    any = true;
  }
  if (!any) drive.paths.push_back(way);
}

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

bool NvmePath::usable() const {
  return state == "live" && (!ana_state || *ana_state == "optimized" || *ana_state == "non-optimized");
}

bool NvmePath::optimized() const { return usable() && (!ana_state || *ana_state == "optimized"); }

bool NvmeDrive::many_ways() const {
  return controllers.size() > 1 || std::ranges::any_of(paths, [](const NvmePath& path) {
           return !path.transport.empty() && path.transport != "pcie";
         });
}

std::vector<NvmeDrive> read_nvme_drives(const MachineTree& tree) {
  const auto subsystem_of = subsystems(tree);
  std::map<std::string, NvmeDrive> by_group;  // by subsystem, or by controller where the kernel lists none
  for (const auto& controller : tree.names(kClass)) {
    if (!is_controller(controller)) continue;
    const auto subsystem = subsystem_of.find(controller);
    NvmeDrive& drive = by_group[subsystem == subsystem_of.end() ? controller : subsystem->second];
    add_controller(tree, controller, drive);
  }
  for (auto& [group, drive] : by_group) {
    for (const auto& name : tree.names("sys/class/nvme-subsystem/" + group)) {
      if (form_of(name) == "nvmen") drive.namespaces.push_back(name);
    }
  }
  std::vector<NvmeDrive> drives;
  for (auto& [group, drive] : by_group) {
    std::ranges::sort(drive.namespaces);
    const auto twice = std::ranges::unique(drive.namespaces);
    drive.namespaces.erase(twice.begin(), twice.end());
    drive.name = drive.namespaces.empty() ? drive.controllers.front() : drive.namespaces.front();
    drives.push_back(std::move(drive));
  }
  std::ranges::sort(drives, {}, &NvmeDrive::name);
  return drives;
}

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
