// hca_choice: filters by the rules of NCCL's documentation, distances by pci_way.
#include "probes/health/hca_choice.h"

#include <algorithm>
#include <charconv>
#include <ranges>
#include <sstream>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

std::optional<int> port_number(std::string_view text) {
  constexpr int kMost = 255;
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size() || number < 1 || number > kMost) return std::nullopt;
  return number;
}

}  // namespace

std::vector<Hca> active_hcas(const MachineTree& tree) {
  std::vector<Hca> hcas;
  for (const auto& name : tree.names("sys/class/infiniband")) {
    const std::string directory = "sys/class/infiniband/" + name;
    const auto address = tree.pci_address(directory + "/device");
    if (!address) continue;
    for (const auto& port : tree.names(directory + "/ports")) {
      const auto number = port_number(port);
      if (number && tree.text(directory + "/ports/" + port + "/state").value_or("").ends_with("ACTIVE"))
        hcas.push_back({.name = name, .port = *number, .pci_address = *address});
    }
  }
  return hcas;
}

bool is_left_by(std::string_view filter, const Hca& hca) {
  const bool excludes = filter.starts_with('^');
  if (excludes) filter.remove_prefix(1);
  const bool is_exact = filter.starts_with('=');
  if (is_exact) filter.remove_prefix(1);
  if (filter.empty()) return true;
  const auto names = [&](std::string_view one) {
    const auto colon = one.find(':');
    const auto name = one.substr(0, colon);
    if (colon != std::string_view::npos && port_number(one.substr(colon + 1)) != hca.port) return false;
    return is_exact ? hca.name == name : !name.empty() && hca.name.starts_with(name);
  };
  const auto is_named = std::ranges::any_of(filter | std::views::split(','), [&](const auto& part) {
    return names(std::string_view(part.begin(), part.end()));
  });
  return is_named != excludes;
}

std::optional<std::string> hca_filter_in(const std::string& configuration) {
  constexpr std::string_view kKey = "NCCL_IB_HCA=";
  std::istringstream lines(configuration);
  std::optional<std::string> filter;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kKey)) filter = told(std::string_view(line).substr(kKey.size()));
  }
  return filter;
}

std::optional<NearestHca> nearest_hca(const MachineTree& tree, const std::string& gpu, const std::vector<Hca>& hcas) {
  std::optional<NearestHca> nearest;
  for (const Hca& hca : hcas) {
    const PciWay way = pci_way(tree, gpu, hca.pci_address);
    if (way.nearness != Nearness::unknown && (!nearest || way < nearest->way)) nearest = {.hca = hca, .way = way};
  }
  return nearest;
}

}  // namespace assay::health
