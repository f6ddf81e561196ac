// memory_nodes: /sys/devices/system/node, joined with the kernel's memory tiers, CXL regions and GPUs of the NVIDIA
// driver. Linux Documentation/ABI/stable/sysfs-devices-node, testing/sysfs-kernel-mm-memory-tiers, sysfs-bus-cxl,
// admin-guide/mm/numaperf.rst; numa_status of kernel-open/nvidia/nv-procfs.c.
#include "probes/core/memory_nodes.h"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/machine_tree.h"
#include "probes/core/whole_number.h"

namespace assay {
namespace {

constexpr const char* kNodes = "sys/devices/system/node";

std::vector<int> numbers_in(const MachineTree& tree, const std::string& path) {
  const auto text = tree.text(path);
  return text ? parse_cpu_list(*text).value_or(std::vector<int>{}) : std::vector<int>{};
}

/// A hexadecimal number, with or without 0x.
std::optional<std::uint64_t> hexadecimal(const MachineTree& tree, const std::string& path) {
  auto text = tree.text(path);
  if (!text) return std::nullopt;
  if (text->starts_with("0x")) text->erase(0, 2);
  return whole_number<std::uint64_t>(*text, 16);
}

/// The number after `prefix` in `name`, if it is one.
std::optional<std::uint64_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return whole_number<std::uint64_t>(name.substr(prefix.size()));
}

/// "Node 1 MemTotal:  1024 kB" of the node's meminfo, in bytes; 0 without one.
std::int64_t meminfo(const MachineTree& tree, const std::string& node, std::string_view key) {
  std::istringstream words(tree.text(node + "/meminfo").value_or(""));
  for (std::string word; words >> word;) {
    std::int64_t kib = 0;
    if (word == key && words >> kib) return kib * 1024;
  }
  return 0;
}

/// GPUs whose memory is a node of its own, by that node: "Node:      1" of their numa_status.
std::map<int, std::string> gpus_by_node(const MachineTree& tree) {
  constexpr const char* kGpus = "proc/driver/nvidia/gpus";
  std::map<int, std::string> gpus;
  for (const auto& address : tree.names(kGpus)) {
    std::istringstream words(tree.text(fmt::format("{}/{}/numa_status", kGpus, address)).value_or(""));
    std::string word;
    int node = -1;
    if (words >> word >> node && word == "Node:" && node >= 0) gpus.emplace(node, address);
  }
  return gpus;
}

/// A stretch of physical addresses that a CXL region decodes.
struct Region {
  std::string name;
  std::uint64_t begin = 0, size = 0;
};

std::vector<Region> cxl_regions(const MachineTree& tree) {
  constexpr const char* kDevices = "sys/bus/cxl/devices";
  std::vector<Region> regions;
  for (const auto& name : tree.names(kDevices)) {
    if (!number_after(name, "region")) continue;
    const auto begin = hexadecimal(tree, fmt::format("{}/{}/resource", kDevices, name));
    const auto size = hexadecimal(tree, fmt::format("{}/{}/size", kDevices, name));
    if (begin && size && *size > 0) regions.push_back({.name = name, .begin = *begin, .size = *size});
  }
  return regions;
}

/// The region in which a block of the node's memory begins; nothing if none does.
std::optional<std::string> region_of(const MachineTree& tree, const std::string& node,
                                     const std::vector<Region>& regions) {
  const auto block = hexadecimal(tree, "sys/devices/system/memory/block_size_bytes");
  if (regions.empty() || !block) return std::nullopt;
  for (const auto& name : tree.names(node)) {
    const auto number = number_after(name, "memory");
    if (!number) continue;
    for (const auto& region : regions) {
      if (*number * *block - region.begin < region.size)
        return region.name;  // below `begin` it wraps to a large number
    }
  }
  return std::nullopt;
}

/// The access class of CPUs, else the nearest of any initiator; nothing if the firmware has no such table.
std::optional<MemoryRating> rating_of(const MachineTree& tree, const std::string& node) {
  for (const int access : {1, 0}) {
    const std::string path = fmt::format("{}/access{}/initiators", node, access);
    const auto scaled = [&](const char* name, double unit) -> std::optional<double> {
      const auto number = tree.number(path + "/" + name);
      if (!number || *number <= 0) return std::nullopt;  // the kernel shows an unknown one as 0
      return static_cast<double>(*number) * unit;
    };
    constexpr double kMegabyte = 1e6, kNanosecond = 1e-9;
    MemoryRating rating{.access_class = access,
                        .initiators = "",
                        .read_rate = scaled("read_bandwidth", kMegabyte),
                        .write_rate = scaled("write_bandwidth", kMegabyte),
                        .read_latency_s = scaled("read_latency", kNanosecond),
                        .write_latency_s = scaled("write_latency", kNanosecond)};
    std::vector<std::uint64_t> from;
    for (const auto& name : tree.names(path)) {
      if (const auto number = number_after(name, "node")) from.push_back(*number);
    }
    std::ranges::sort(from);
    rating.initiators = fmt::format("{}", fmt::join(from, ","));
    if (rating.read_rate || rating.write_rate || rating.read_latency_s || rating.write_latency_s) return rating;
  }
  return std::nullopt;
}

/// N of the memory_tierN that names the node.
std::optional<int> tier_of(const MachineTree& tree, int node) {
  constexpr const char* kTiers = "sys/devices/virtual/memory_tiering";
  for (const auto& name : tree.names(kTiers)) {
    const auto number = number_after(name, "memory_tier");
    if (!number) continue;
    const auto nodes = numbers_in(tree, fmt::format("{}/{}/nodelist", kTiers, name));
    if (std::ranges::find(nodes, node) != nodes.end()) return static_cast<int>(*number);
  }
  return std::nullopt;
}

}  // namespace

std::vector<int> online_nodes(const MachineTree& tree) { return numbers_in(tree, std::string(kNodes) + "/online"); }

std::vector<MemoryNode> read_memory_nodes(const MachineTree& tree) {
  const auto gpus = gpus_by_node(tree);
  const auto regions = cxl_regions(tree);
  std::vector<MemoryNode> nodes;
  for (const int number : online_nodes(tree)) {
    const std::string path = fmt::format("{}/node{}", kNodes, number);
    MemoryNode node;
    node.number = number;
    node.cpus = numbers_in(tree, path + "/cpulist");
    node.size_b = meminfo(tree, path, "MemTotal:");
    node.free_b = meminfo(tree, path, "MemFree:");
    if (node.size_b == 0) continue;
    const auto gpu = gpus.find(number);
    const auto region = region_of(tree, path, regions);
    if (!node.cpus.empty()) {
      node.shown_by = "CPUs " + tree.text(path + "/cpulist").value_or("");
    } else if (gpu != gpus.end()) {
      node.kind = MemoryKind::gpu;
      node.shown_by = "GPU " + gpu->second;
    } else if (region) {
      node.kind = MemoryKind::cxl;
      node.shown_by = *region;
    } else {
      node.kind = MemoryKind::without_cpus;
      node.shown_by = "no CPU, GPU or CXL region";
    }
    node.tier = tier_of(tree, number);
    std::istringstream distances(tree.text(path + "/distance").value_or(""));
    for (int distance = 0; distances >> distance;) node.distances.push_back(distance);
    node.rating = rating_of(tree, path);
    node.poisoned_pages = tree.number(path + "/memory_failure/total");
    nodes.push_back(std::move(node));
  }
  return nodes;
}

const MemoryNode* memory_node(std::span<const MemoryNode> nodes, int number) {
  const auto found = std::ranges::find(nodes, number, &MemoryNode::number);
  return found == nodes.end() ? nullptr : &*found;
}

std::string kinds_of(std::span<const MemoryNode> nodes, std::span<const int> numbers) {
  std::string kinds;
  for (const auto& [kind, word] : words_of(MemoryKind{})) {
    const bool is_there = std::ranges::any_of(numbers, [&](int number) {
      const MemoryNode* const node = memory_node(nodes, number);
      return node != nullptr && node->kind == kind;
    });
    if (is_there) kinds += fmt::format("{}{}", kinds.empty() ? "" : "+", word);
  }
  return kinds;
}

bool is_guest(const MachineTree& tree) {
  if (tree.text("sys/class/dmi/id/sys_vendor") == "QEMU") return true;  // processors of Arm have no such flag
  std::istringstream lines(tree.text("proc/cpuinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("flags")) return (line + " ").find(" hypervisor ") != std::string::npos;
  }
  return false;
}

}  // namespace assay
