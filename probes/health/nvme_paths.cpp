// nvme_paths: names as the kernel gives them (drivers/nvme/host/multipath.c): nvme<subsystem>n<namespace> for the
// drive, nvme<subsystem>c<controller>n<namespace> for a hidden path; only that has an ANA state.
#include "probes/health/nvme_paths.h"

#include <algorithm>
#include <cctype>
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

}  // namespace assay::health
