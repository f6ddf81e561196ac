// memory_placement: the memory nodes that a probe's memory is meant for, and those that it is on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "probes/core/memory_nodes.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/host/buffer.h"
#include "probes/host/pinned_threads.h"

namespace assay::host {

/// Policy of a probe's memory. first_touch: the node of the thread that touches it first. The others are the kernel's
/// policies (mbind): the nearest of the nodes with room; page by page over the nodes in turn; in turn by weights.
enum class Policy { first_touch, bind, interleave, weighted_interleave };

constexpr auto words_of(Policy) { return names_as_words<Policy>(); }

/// The parameters of a placement.
inline constexpr Parameter kPlacementParameters[] = {
    parameter("memory_node", "", "local",
              "memory nodes: local, which the touching thread chooses; numbers \"0,2-3\"; cxl; gpu; tier: all without "
              "CPUs but GPUs'; all: all but GPUs'"),
    choice("policy", "bind", "bind interleave weighted_interleave",
           "how memory is placed on memory_node, unless that is local"),
    parameter("cpu_node", "", "all", "memory node whose cores work, by its number; all: every core"),
};

/// The conditions of a placement.
inline constexpr ConditionSpec kPlacementConditions[] = {
    {.name = "policy", .meaning = "How memory was placed: first_touch, bind, interleave or weighted_interleave."},
    {.name = "bare_metal",
     .meaning = "Whether no hypervisor shows itself; in a guest a memory node may be emulated, and its figures mean "
                "nothing of hardware."},
    if_reported("pages_by_node",
                "Pages of the memory by their node, as the kernel reports it, after the last "
                "sample."),
    if_reported("misplaced_pages",
                "Pages on another node than asked for; by first touch, than the thread's own; of an interleave, beyond "
                "the node's share."),
    if_reported("local_misplaced_pages",
                "The same of the local memory that was measured first, where nodes were named."),
    if_reported("memory_kind",
                "Kind of those nodes: with_cpus, gpu (the NVIDIA driver says that the memory is a GPU's), cxl (a CXL "
                "region decodes it), without_cpus (none of these)."),
    if_reported("memory_shown_by", "The fact behind the kind."),
    if_reported("memory_tier", "The kernel's number of the memory tier; smaller is faster."),
    if_asked("weights", "The kernel's weights of the nodes, of a weighted interleave."),
    if_reported("rated_read_bandwidth", "Bandwidth that the firmware rates the node at (ACPI HMAT), in B/s."),
    if_reported("rated_read_latency_s", "Latency that it rates the node at."),
    if_reported("rated_from", "Access class of those ratings, and the nodes that they hold for."),
};

/// A placement that was asked for, on one machine.
struct Placement {
  Policy policy = Policy::first_touch;
  std::vector<int> targets;       ///< ascending; empty by first touch
  std::vector<int> weights;       ///< of `targets`; all 1 unless weighted
  std::vector<MemoryNode> nodes;  ///< of the machine
  bool guest = false;

  /// Local memory of the same machine.
  [[nodiscard]] Placement local() const {
    return {.policy = Policy::first_touch, .targets = {}, .weights = {}, .nodes = nodes, .guest = guest};
  }
};

/// The placement that `given` asks for. Throws std::runtime_error for text that cannot be read, Skip for nodes that the
/// machine of `tree` does not have.
Placement placement_of(const Parameters& given, const MachineTree& tree);

/// One CPU for each of `threads` threads as cpus_for() chooses, of the node that `given` names as cpu_node.
std::vector<int> cpus_near(const Parameters& given, std::int64_t threads, const Placement& placement);

/// The size that affordable() gives, and that the nodes of `placement` have room for: a bound allocation beyond that
/// would call the kernel's killer. Half of a node, and of one without CPUs at most nine tenths of its free memory.
Bytes affordable(const Placement& placement, Bytes wanted, std::size_t count, Bytes granule);

/// Asks the kernel to place `memory`, of which nothing was touched yet. Throws Skip when it refuses.
void place(Buffer& memory, const Placement& placement);

/// Nodes of pages, as the kernel reports them (move_pages without a target).
class PageCheck {
 public:
  explicit PageCheck(const Placement& placement) : placement_(placement) {}

  /// Looks at every page of `memory`; by first touch at those in whole huge pages, which the thread on `cpu` touched.
  void add(std::span<const std::byte> memory, int cpu);

  /// Pages by node.
  [[nodiscard]] const std::map<int, std::uint64_t>& found() const { return found_; }
  /// Pages on another node than asked for; nothing if the kernel does not report them.
  [[nodiscard]] std::optional<std::uint64_t> misplaced() const;
  /// Records kPlacementConditions. Throws std::runtime_error when memory by first touch is on a node without CPUs,
  /// which is no memory of the host's processors.
  void record(Recorder& record) const;
  /// Records local_misplaced_pages.
  void record_local(Recorder& record) const;

 private:
  [[nodiscard]] std::uint64_t beyond_shares() const;
  void record_nodes(Recorder& record) const;

  const Placement& placement_;
  std::map<int, std::uint64_t> found_;
  std::uint64_t elsewhere_ = 0;
  bool refused_ = false;
};

}  // namespace assay::host
