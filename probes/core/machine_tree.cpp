// machine_tree: file reading that never throws for missing facts of a machine.
#include "probes/core/machine_tree.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <system_error>

#include "probes/core/whole_number.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSmallFile = 1 << 20;  // /proc/cpuinfo of 256 CPUs is 400 kB; no sysfs text is over a page
constexpr int kMaxCpus = 65'536;             // eight times the largest NR_CPUS of a distribution kernel

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::optional<int> whole(std::string_view text) {
  const auto number = whole_number<int>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// Hexadecimal digits: four to eight of domain (VMD's begin at 10000), two of bus, two of device, one of function.
bool is_pci_address(std::string_view text) {
  constexpr std::string_view kForm = "hhhhhhhh:hh:hh.h";
  constexpr std::size_t kLeastDomain = 4, kMostDomain = 8;
  const auto domain = text.find(':');
  if (domain < kLeastDomain || domain > kMostDomain) return false;
  return std::ranges::equal(text, kForm.substr(kMostDomain - domain), [](char c, char form) {
    return form == 'h' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == form;
  });
}

}  // namespace

MachineTree::MachineTree(std::string root) : root_(std::move(root)) {
  while (root_.ends_with('/')) root_.pop_back();
}

std::optional<std::string> MachineTree::text(const std::string& path) const {
  const auto content = bytes(path, kSmallFile);
  return content ? told(*content) : std::nullopt;
}

std::optional<std::int64_t> MachineTree::number(const std::string& path) const {
  const auto content = text(path);
  return content ? whole_number(*content) : std::nullopt;
}

std::optional<std::string> MachineTree::bytes(const std::string& path, std::size_t max_bytes) const {
  std::ifstream file(full(path), std::ios::binary);
  std::string content;
  std::array<char, 4096> page = {};
  while (file.read(page.data(), page.size()) || file.gcount() > 0) {
    content.append(page.data(), static_cast<std::size_t>(file.gcount()));
    if (content.size() > max_bytes) return std::nullopt;
  }
  // A sysfs attribute that its driver refuses (EINVAL) opens well and then gives a bad read.
  if (!file.eof() || file.bad()) return std::nullopt;
  return content;
}

std::vector<std::string> MachineTree::names(const std::string& path) const {
  std::error_code error;
  std::vector<std::string> result;
  for (fs::directory_iterator entry(full(path), error), end; !error && entry != end; entry.increment(error)) {
    result.push_back(entry->path().filename());
  }
  std::ranges::sort(result);
  return result;
}

bool MachineTree::exists(const std::string& path) const {
  std::error_code ignored;
  return fs::exists(full(path), ignored);
}

std::optional<std::string> MachineTree::target_name(const std::string& path) const {
  std::error_code error;
  const fs::path target = fs::canonical(full(path), error);
  if (error) return std::nullopt;
  return target.filename().string();
}

std::vector<std::string> MachineTree::pci_route(const std::string& path) const {
  std::error_code error;
  const fs::path target = fs::canonical(full(path), error);
  std::vector<std::string> route;
  if (error) return route;
  std::string before;
  for (const auto& component : target) {
    if (!is_pci_address(component.string())) {
      if (route.empty()) before = component.string();
      continue;
    }
    if (route.empty() && before.starts_with("pci")) route.push_back(before);
    route.push_back(component.string());
  }
  return route;
}

std::optional<std::string> MachineTree::pci_address(const std::string& path) const {
  const auto route = pci_route(path);
  if (route.empty()) return std::nullopt;
  return route.back();
}

std::optional<std::string> told(std::string_view text) {
  while (!text.empty() && (is_space(text.back()) || text.back() == '\0')) text.remove_suffix(1);
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  constexpr std::array<std::string_view, 13> kPlaceholders = {"",
                                                              "unknown",
                                                              "not specified",
                                                              "none",
                                                              "n/a",
                                                              "no dimm",
                                                              "not available",
                                                              "default string",
                                                              "to be filled by o.e.m.",
                                                              "system serial number",
                                                              "system product name",
                                                              "system manufacturer",
                                                              "no module installed"};
  if (std::ranges::find(kPlaceholders, lower(text)) != kPlaceholders.end()) return std::nullopt;
  return std::string(text);
}

std::optional<std::string> core_of(const MachineTree& tree, int cpu) {
  const std::string topology = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  for (const char* threads : {"thread_siblings_list", "core_cpus_list"}) {
    if (auto list = tree.text(topology + threads)) return list;
  }
  const auto core = tree.text(topology + "core_id");
  if (!core) return std::nullopt;
  std::string path;
  for (const char* level : {"physical_package_id", "die_id", "cluster_id"})
    path += tree.text(topology + level).value_or("") + "/";
  return path + *core;
}

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::vector<int> cpus;
  for (const auto part : text | std::views::split(',')) {
    const std::string_view range(part.begin(), part.end());
    const auto dash = range.find('-');
    const auto first = whole(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMaxCpus) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (cpus.size() > kMaxCpus) return std::nullopt;
  }
  return cpus;
}

}  // namespace assay
