// memory_nodes: the memory nodes (NUMA) of a machine, and the kind of memory of each, by facts of the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/core/words.h"

namespace assay {

class MachineTree;

/// Kind of a node's memory, by facts and never by its number. with_cpus: the node has CPUs. gpu: the NVIDIA driver
/// says that it is a GPU's (GH200, GB200). cxl: a CXL region decodes a block of it. without_cpus: none of these, such
/// as memory of high bandwidth, a persistent module or an emulated node.
enum class MemoryKind { with_cpus, gpu, cxl, without_cpus };

constexpr auto words_of(MemoryKind) { return names_as_words<MemoryKind>(); }

/// Rated figures of a node's memory, by the firmware's table of memory attributes (ACPI HMAT).
struct MemoryRating {
  int access_class = 0;              ///< 0: from the nearest initiators of any kind; 1: from the nearest CPUs
  std::string initiators;            ///< nodes that the figures hold for: "0,1"
  std::optional<double> read_rate;   ///< B/s; the kernel's MB/s as 10^6
  std::optional<double> write_rate;  ///< B/s
  std::optional<double> read_latency_s, write_latency_s;
};

/// One node that has memory.
struct MemoryNode {
  int number = 0;
  MemoryKind kind = MemoryKind::with_cpus;
  std::string shown_by;        ///< the fact behind its kind: "region0", "GPU 0009:01:00.0", "CPUs 0-71"
  std::vector<int> cpus;       ///< empty without
  std::int64_t size_b = 0;     ///< MemTotal of the node
  std::int64_t free_b = 0;     ///< MemFree of the node
  std::optional<int> tier;     ///< N of the kernel's memory_tierN; smaller is faster
  std::vector<int> distances;  ///< of the firmware (SLIT), to the online nodes in their order; may be empty
  std::optional<MemoryRating> rating;
  std::optional<std::int64_t> poisoned_pages;  ///< pages that the kernel took out of use for errors
};

/// Every node of `tree` with memory, by number; a kernel without NUMA shows none.
std::vector<MemoryNode> read_memory_nodes(const MachineTree& tree);

/// The numbers of the online nodes, with memory or not, in the order of the columns of MemoryNode::distances.
std::vector<int> online_nodes(const MachineTree& tree);

/// The node of `nodes` with this number, or nullptr.
const MemoryNode* memory_node(std::span<const MemoryNode> nodes, int number);

/// The kinds of the nodes with these numbers, each once, "with_cpus+cxl".
std::string kinds_of(std::span<const MemoryNode> nodes, std::span<const int> numbers);

/// Whether a hypervisor shows itself, by the processor's flag or by QEMU as the maker of the machine: its memory nodes
/// and links may then be made up.
bool is_guest(const MachineTree& tree);

}  // namespace assay
