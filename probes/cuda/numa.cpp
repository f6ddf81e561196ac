// numa: /sys, sched_setaffinity, mbind and move_pages. System calls by number: libnuma would be one more library to
// carry to the nodes for two calls.
#include "probes/cuda/numa.h"

#include <algorithm>
#include <array>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/core/host_facts.h"
#include "probes/core/machine_tree.h"
#include "probes/core/whole_number.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kPagesAsked = 512;  // resolves a share to 0.2 % and costs one system call
constexpr int kNodesMax = 1024;           // Linux: MAX_NUMNODES at its largest (CONFIG_NODES_SHIFT=10)

}  // namespace

std::optional<int> numa_node_of(std::string_view pci_bus_id, const std::string& sys) {
  const auto text = read_fact(sys + "/bus/pci/devices/" + std::string(pci_bus_id) + "/numa_node");
  if (!text) return std::nullopt;
  const auto node = whole_number<int>(*text);
  return node && *node >= 0 ? node : std::nullopt;
}

std::vector<int> cpus_of_node(int node, const std::string& sys) {
  const auto text = read_fact(sys + "/devices/system/node/node" + std::to_string(node) + "/cpulist");
  if (!text) return {};
  return parse_cpu_list(*text).value_or(std::vector<int>{});
}

CpuBinding::CpuBinding(const std::vector<int>& cpus) {
  if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(cpu), &before_)) {
      CPU_SET(static_cast<std::size_t>(cpu), &wanted);
    }
  }
  bound_ = CPU_COUNT(&wanted) > 0 && sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}

CpuBinding::~CpuBinding() {
  if (bound_) (void)sched_setaffinity(0, sizeof before_, &before_);  // cannot fail: it was in force before
}

bool bind_memory(std::span<std::byte> memory, int node) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  if (node < 0 || node >= kNodesMax) return false;
  std::array<unsigned long, kNodesMax / kBits> nodes{};
  nodes[static_cast<std::size_t>(node) / kBits] = 1UL << (static_cast<std::size_t>(node) % kBits);
  return syscall(SYS_mbind, memory.data(), memory.size(), MPOL_BIND, nodes.data(), kNodesMax + 1UL, 0UL) == 0;
}

std::optional<double> share_on_node(std::span<const std::byte> memory, int node) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = memory.size() / page;
  if (pages == 0) return std::nullopt;
  const std::size_t asked = std::min(pages, kPagesAsked);
  std::vector<const void*> places(asked);
  for (std::size_t i = 0; i < asked; ++i) places[i] = memory.data() + i * pages / asked * page;
  std::vector<int> nodes(asked, -1);
  // Without target nodes move_pages moves nothing and reports where each page is.
  if (syscall(SYS_move_pages, 0, asked, places.data(), nullptr, nodes.data(), 0) != 0) return std::nullopt;
  return static_cast<double>(std::ranges::count(nodes, node)) / static_cast<double>(asked);
}

}  // namespace assay::cuda
