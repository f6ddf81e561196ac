// memory_placement: mbind before the first touch, move_pages after the last sample. The kernel's headers of old
// distributions lack the weighted policy, and no library is needed for two system calls.
#include "probes/host/memory_placement.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/machine_tree.h"

namespace assay::host {
namespace {

// Modes of include/uapi/linux/mempolicy.h; the last is of Linux 6.9.
constexpr int kBind = 2, kInterleave = 3, kWeightedInterleave = 6;
constexpr std::size_t kMaskBits = 1024;  // MAX_NUMNODES of distribution kernels

bool has_kind(const MemoryNode& node, std::string_view word) {
  if (word == "all") return node.kind != MemoryKind::gpu;  // a GPU's is named on purpose
  if (word == "tier") return node.kind == MemoryKind::cxl || node.kind == MemoryKind::without_cpus;
  return word_of(node.kind) == word;
}

std::vector<int> numbers_of(std::span<const MemoryNode> nodes, std::string_view kind) {
  std::vector<int> numbers;
  for (const auto& node : nodes) {
    if (has_kind(node, kind)) numbers.push_back(node.number);
  }
  return numbers;
}

/// "0 (with_cpus), 2 (cxl)".
std::string list_of(std::span<const MemoryNode> nodes) {
  std::string list;
  for (const auto& node : nodes)
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", node.number, word_of(node.kind));
  return list.empty() ? "none that the kernel shows" : list;
}

std::vector<int> targets_of(const std::string& wanted, std::span<const MemoryNode> nodes) {
  for (const std::string_view kind : {"all", "tier", "cxl", "gpu"}) {
    if (wanted != kind) continue;
    auto numbers = numbers_of(nodes, kind);
    if (numbers.empty())
      throw Skip(
          fmt::format("memory_node: this machine has no memory of kind {}; its nodes are {}", wanted, list_of(nodes)));
    return numbers;
  }
  auto numbers = parse_cpu_list(wanted);
  if (!numbers)
    throw std::runtime_error(fmt::format(
        "memory_node: '{}' is not local, all, tier, cxl, gpu or numbers\nhint: write 2, 0,2 or 0-1", wanted));
  std::ranges::sort(*numbers);
  numbers->erase(std::ranges::unique(*numbers).begin(), numbers->end());
  for (const int number : *numbers) {
    if (memory_node(nodes, number) == nullptr)
      throw Skip(
          fmt::format("memory_node: node {} has no memory; the nodes with memory are {}", number, list_of(nodes)));
  }
  return *numbers;
}

/// The node of a CPU; nothing if the kernel shows none, or one without memory.
std::optional<int> node_of_cpu(std::span<const MemoryNode> nodes, int cpu) {
  for (const auto& node : nodes) {
    if (std::ranges::binary_search(node.cpus, cpu)) return node.number;
  }
  return std::nullopt;
}

/// The part of `memory` in whole huge pages: one that two threads share belongs to the first that touches it.
std::span<const std::byte> whole_huge_pages(std::span<const std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t skip = (kHugePage - begin % kHugePage) % kHugePage;
  if (memory.size() < skip + kHugePage) return {};
  return memory.subspan(skip, (memory.size() - skip) / kHugePage * kHugePage);
}

}  // namespace

Placement placement_of(const Parameters& given, const MachineTree& tree) {
  Placement placement{.policy = Policy::first_touch,
                      .targets = {},
                      .weights = {},
                      .nodes = read_memory_nodes(tree),
                      .guest = is_guest(tree)};
  const Policy policy = from_word<Policy>(given.text("policy")).value_or(Policy::bind);
  const std::string& wanted = given.text("memory_node");
  if (wanted == "local") {
    if (policy != Policy::bind)
      throw std::runtime_error(
          fmt::format("policy: {} over the local node places nothing\nhint: name nodes with --memory-node, such as all",
                      word_of(policy)));
    return placement;
  }
  placement.policy = policy;
  placement.targets = targets_of(wanted, placement.nodes);
  if (policy != Policy::bind && placement.targets.size() == 1)
    throw Skip(fmt::format("policy: {} over one node shares nothing out; the nodes with memory are {}", word_of(policy),
                           list_of(placement.nodes)));
  for (const int number : placement.targets) {
    const auto weight = tree.number(fmt::format("sys/kernel/mm/mempolicy/weighted_interleave/node{}", number));
    placement.weights.push_back(policy == Policy::weighted_interleave ? static_cast<int>(weight.value_or(1)) : 1);
  }
  return placement;
}

std::vector<int> cpus_near(const Parameters& given, std::int64_t threads, const Placement& placement) {
  const std::string& wanted = given.text("cpu_node");
  if (wanted == "all") return cpus_for(threads);
  const auto numbers = parse_cpu_list(wanted);
  if (!numbers || numbers->size() != 1)
    throw std::runtime_error(fmt::format("cpu_node: '{}' is neither all nor the number of one node", wanted));
  const MemoryNode* const node = memory_node(placement.nodes, numbers->front());
  if (node == nullptr || node->cpus.empty())
    throw Skip(fmt::format("cpu_node: node {} has no CPUs; the nodes with memory are {}", numbers->front(),
                           list_of(placement.nodes)));
  auto cpus = cpus_for(0);
  std::erase_if(cpus, [&](int cpu) { return !std::ranges::binary_search(node->cpus, cpu); });
  if (cpus.empty())
    throw Skip(fmt::format("cpu_node: this process may use no CPU of node {}; check its cpuset", node->number));
  if (threads < 0 || static_cast<std::size_t>(threads) > cpus.size())
    throw std::runtime_error(
        fmt::format("{} threads do not fit the {} physical cores of node {} that this process may "
                    "use; give 0 for one on each",
                    threads, cpus.size(), node->number));
  if (threads > 0) cpus.resize(static_cast<std::size_t>(threads));
  return cpus;
}

Bytes affordable(const Placement& placement, Bytes wanted, std::size_t count, Bytes granule) {
  const Bytes size = affordable(wanted, count, granule);
  if (placement.targets.empty()) return size;
  double room = 0, weights = 0;
  for (const int weight : placement.weights) weights += weight;
  for (std::size_t i = 0; i < placement.targets.size(); ++i) {
    const MemoryNode& node = *memory_node(placement.nodes, placement.targets[i]);
    constexpr double kHalf = 0.5, kOfFree = 0.9;
    double here = kHalf * static_cast<double>(node.size_b);
    if (node.kind != MemoryKind::with_cpus) here = std::min(here, kOfFree * static_cast<double>(node.free_b));
    const double all = here * weights / placement.weights[i];  // when this node has its share
    room = placement.policy == Policy::bind ? room + here : i == 0 ? all : std::min(room, all);
  }
  const auto most = static_cast<std::uint64_t>(room) / count / granule.count * granule.count;
  if (most == 0) throw Skip(fmt::format("memory nodes {} have no room left", fmt::join(placement.targets, ",")));
  return {std::min(size.count, most)};
}

void place(Buffer& memory, const Placement& placement) {
  if (placement.policy == Policy::first_touch) return;
  constexpr std::size_t kWord = 8 * sizeof(unsigned long);
  std::array<unsigned long, kMaskBits / kWord> mask = {};
  for (const int number : placement.targets) {
    const auto bit = static_cast<std::size_t>(number);
    if (bit < kMaskBits) mask[bit / kWord] |= 1UL << bit % kWord;
  }
  const int mode = placement.policy == Policy::bind         ? kBind
                   : placement.policy == Policy::interleave ? kInterleave
                                                            : kWeightedInterleave;
  const auto bytes = memory.as<std::byte>();
  // The kernel reads one bit less than the number given.
  if (syscall(SYS_mbind, bytes.data(), bytes.size(), mode, mask.data(), kMaskBits + 1, 0U) == 0) return;
  const int error = errno;
  const char* const hint = error != EINVAL ? "a container may forbid it (seccomp)"
                           : placement.policy == Policy::weighted_interleave
                               ? "it is of Linux 6.9, and the nodes must be among Mems_allowed_list of the process"
                               : "the nodes must be among Mems_allowed_list of the process (/proc/self/status)";
  throw Skip(fmt::format("the kernel refuses the policy {} on memory nodes {}: {}; {}", word_of(placement.policy),
                         fmt::join(placement.targets, ","), std::strerror(error), hint));
}

void PageCheck::add(std::span<const std::byte> memory, int cpu) {
  constexpr std::size_t kAtOnce = 16'384;
  const bool first_touch = placement_.policy == Policy::first_touch;
  if (placement_.nodes.empty()) return;  // a kernel without NUMA, or a tree that hides it
  const auto own = node_of_cpu(placement_.nodes, cpu);
  const auto seen = first_touch ? whole_huge_pages(memory) : memory;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<const std::byte*> pages;
  std::vector<int> where(kAtOnce);
  for (std::size_t at = 0; at < seen.size() && !refused_;) {
    pages.clear();
    for (; pages.size() < kAtOnce && at < seen.size(); at += page) pages.push_back(seen.data() + at);
    if (syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, where.data(), 0) != 0) {
      refused_ = true;
      return;
    }
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (where[i] < 0) continue;  // not in memory: never touched, or swapped
      ++found_[where[i]];
      const bool meant =
          first_touch ? !own || where[i] == *own : std::ranges::binary_search(placement_.targets, where[i]);
      if (!meant) ++elsewhere_;
    }
  }
}

/// Pages that a node has beyond its share of an interleave. A hundredth, and one round of huge pages, are the end of a
/// round and no fault.
std::uint64_t PageCheck::beyond_shares() const {
  std::uint64_t total = 0, weights = 0, beyond = 0;
  for (const auto& [node, pages] : found_) total += pages;
  for (const int weight : placement_.weights) weights += static_cast<std::uint64_t>(weight);
  const std::uint64_t slack = total / 100 + weights * (kHugePage / static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  for (std::size_t i = 0; i < placement_.targets.size(); ++i) {
    const auto found = found_.find(placement_.targets[i]);
    const std::uint64_t share = total * static_cast<std::uint64_t>(placement_.weights[i]) / weights;
    if (found != found_.end() && found->second > share + slack) beyond += found->second - share;
  }
  return beyond;
}

std::optional<std::uint64_t> PageCheck::misplaced() const {
  if (refused_ || found_.empty()) return std::nullopt;
  const bool shared = placement_.policy == Policy::interleave || placement_.policy == Policy::weighted_interleave;
  return elsewhere_ + (shared ? beyond_shares() : 0);
}

void PageCheck::record_nodes(Recorder& record) const {
  std::vector<int> numbers;
  std::string pages, shown_by, tiers;
  for (const auto& [number, count] : found_) {
    numbers.push_back(number);
    pages += fmt::format("{}{}: {}", pages.empty() ? "" : ", ", number, count);
    const MemoryNode* const node = memory_node(placement_.nodes, number);
    if (node == nullptr) continue;
    shown_by += fmt::format("{}{}: {}", shown_by.empty() ? "" : "; ", number, node->shown_by);
    if (node->tier) tiers += fmt::format("{}{}", tiers.empty() ? "" : ",", *node->tier);
  }
  record.condition("pages_by_node", pages);
  if (!shown_by.empty()) record.condition("memory_shown_by", shown_by);
  if (!tiers.empty()) record.condition("memory_tier", tiers);
  if (const auto kinds = kinds_of(placement_.nodes, numbers); !kinds.empty()) record.condition("memory_kind", kinds);
  const MemoryNode* const only = numbers.size() == 1 ? memory_node(placement_.nodes, numbers.front()) : nullptr;
  if (only == nullptr || !only->rating) return;
  if (only->rating->read_rate) record.condition("rated_read_bandwidth", *only->rating->read_rate);
  if (only->rating->read_latency_s) record.condition("rated_read_latency_s", *only->rating->read_latency_s);
  record.condition("rated_from",
                   fmt::format("access{} of nodes {}", only->rating->access_class, only->rating->initiators));
}

void PageCheck::record(Recorder& record) const {
  record.condition("policy", std::string(word_of(placement_.policy)));
  record.condition("bare_metal", !placement_.guest);
  if (placement_.policy == Policy::weighted_interleave)
    record.condition("weights", fmt::format("{}", fmt::join(placement_.weights, ":")));
  const auto wrong = misplaced();
  if (!wrong) return;
  record.condition("misplaced_pages", static_cast<std::int64_t>(*wrong));
  record_nodes(record);
  if (placement_.policy != Policy::first_touch) return;
  for (const auto& [number, count] : found_) {
    const MemoryNode* const node = memory_node(placement_.nodes, number);
    if (node == nullptr || node->kind == MemoryKind::with_cpus) continue;
    throw std::runtime_error(fmt::format(
        "{} pages are on memory node {}, which is {} ({}) and no memory of the host's processors\nhint: free "
        "memory of their own node; to measure that one give --memory-node {}",
        count, number, word_of(node->kind), node->shown_by, number));
  }
}

void PageCheck::record_local(Recorder& record) const {
  if (const auto wrong = misplaced()) record.condition("local_misplaced_pages", static_cast<std::int64_t>(*wrong));
}

}  // namespace assay::host
