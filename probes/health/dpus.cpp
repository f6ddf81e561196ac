// dpus: device ids of the PCI ID Repository (pci-ids.ucw.cz) of 2025; MFT documentation 4.30, mlxprivhost (a host whose
// RShim is closed has no such function) and mlxconfig; DOCA 2.9, BlueField Modes of Operation.
#include "probes/health/dpus.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

constexpr const char* kDevices = "sys/bus/pci/devices";
constexpr std::string_view kVendor = "0x15b3";
constexpr std::array<std::pair<std::string_view, const char*>, 5> kControllers = {{{"0xa2d2", "BlueField"},
                                                                                   {"0xa2d6", "BlueField-2"},
                                                                                   {"0xa2d9", "BlueField-3 Lx"},
                                                                                   {"0xa2dc", "BlueField-3"},
                                                                                   {"0xa2df", "BlueField-4"}}};
constexpr std::array<std::string_view, 5> kManagement = {"0xc2d2", "0xc2d3", "0xc2d4", "0xc2d5", "0xc2d6"};

/// "0000:17" of "0000:17:00.0".
std::string bus_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

/// The value in force of a setting; nothing where its row does not have the three columns.
std::optional<std::string> current(std::string_view text, std::string_view name) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string word;
    std::vector<std::string> words;
    while (fields >> word) words.push_back(word);
    if (!words.empty() && words.front() == "*") words.erase(words.begin());  // the row differs from the default
    if (words.size() == 4 && words.front() == name) return words[2];
  }
  return std::nullopt;
}

}  // namespace

std::vector<Dpu> read_dpus(const MachineTree& tree) {
  std::map<std::string, Dpu> by_bus;
  std::vector<std::string> management;
  for (const auto& address : tree.names(kDevices)) {
    const std::string directory = std::string(kDevices) + "/" + address;
    if (tree.text(directory + "/vendor") != std::string(kVendor)) continue;
    const auto device = tree.text(directory + "/device");
    if (!device) continue;
    if (std::ranges::find(kManagement, *device) != kManagement.end()) management.push_back(bus_of(address));
    const auto* const known = std::ranges::find(kControllers, *device, [](const auto& row) { return row.first; });
    if (known != kControllers.end())
      by_bus.try_emplace(bus_of(address), Dpu{.address = address, .model = known->second});
  }
  std::vector<Dpu> dpus;
  for (auto& [bus, dpu] : by_bus) {
    dpu.rshim = std::ranges::find(management, bus) != management.end();
    dpus.push_back(dpu);
  }
  return dpus;
}

bool is_dpu(const MachineTree& tree) {
  return std::ranges::any_of(tree.names("sys/bus/platform/devices"),
                             [](const auto& name) { return name.starts_with("MLNXBF"); });
}

std::optional<std::string> mode_in(std::string_view text) {
  const auto model = current(text, "INTERNAL_CPU_MODEL"), engine = current(text, "INTERNAL_CPU_OFFLOAD_ENGINE");
  if (!model) return std::nullopt;
  if (model->ends_with("(0)")) return "separated";
  if (!model->ends_with("(1)") || !engine) return std::nullopt;
  if (engine->ends_with("(0)")) return "dpu";
  return engine->ends_with("(1)") ? std::optional<std::string>("nic") : std::nullopt;
}

}  // namespace assay::health
