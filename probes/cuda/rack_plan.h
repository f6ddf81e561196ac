// rack_plan: decisions about a rack before any load, and figures from its rates. Needs neither CUDA nor a rack.
//
// A rack is GPUs, ranks here, in trays. Which pairs are measured is drawn: of each GPU as the source, some peers in
// each tray, as nvloom's gpu-to-rack has it, whose runtime so grows with the number of GPUs and not with its square.
// Pairs that have no GPU in common run at the same time, a round; in a rack whose switches block nothing they are
// measured as one pair at a time would be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/cuda/figures.h"
#include "probes/cuda/shared_memory.h"

namespace assay::cuda {

/// One GPU of the rack as its rank sees it, before any load.
struct RackGpu {
  std::string tray, uuid;
  std::string state = "unknown";  ///< of its registration in the fabric: fabric_state_word(), "unknown" without NVML
  std::string cluster = {};       ///< UUID of the cluster; empty for all zeros
  std::optional<unsigned> clique = {};
  bool fabric_handles = false, posix_handles = false, multicast = false;

  /// "tray07/GPU-8f2…": its name in results.
  [[nodiscard]] std::string name() const { return tray + "/" + uuid; }
};

/// How the ranks share memory, and if it is not by fabric handles, why not.
struct Sharing {
  HandleKind kind = HandleKind::fabric;
  std::string reason = {};
};

/// Decides that before any load. Over several trays every GPU must be registered in the fabric, under one UUID that is
/// not all zeros and in one clique (number 0 is one), and offer fabric handles; within one tray POSIX descriptors do
/// where the fabric is absent. Throws std::runtime_error with the trays that differ from most, and Skip where no GPU
/// offers the handles.
Sharing check_fabric(const std::vector<RackGpu>& gpus);

/// The trays of `gpus`, by first appearance, and of each GPU the place of its tray.
struct Trays {
  std::vector<std::string> names;
  std::vector<std::size_t> of_rank;
};
Trays trays_of(const std::vector<RackGpu>& gpus);

/// Of each rank as the source, `peers` ranks of each tray or all that it has, drawn by `seed`; by source, then target.
std::vector<DevicePair> sampled_pairs(const Trays& trays, std::size_t peers, std::uint64_t seed);

/// `pairs` in rounds in which no rank occurs twice.
std::vector<std::vector<DevicePair>> rounds_of(const std::vector<DevicePair>& pairs);

/// Every rank to the one that is half of the ranks further on (nvloom, README, bisect).
std::vector<DevicePair> bisection_pairs(std::size_t ranks);

/// All others to `target`.
std::vector<DevicePair> pairs_to(std::size_t target, std::size_t ranks);

/// B that each of `senders` writes to one rank whose landing place has `size` B; whole pieces of 4 KiB. Throws
/// std::runtime_error when that is none.
std::size_t share_of_landing(std::size_t size, std::size_t senders);

/// An NVLink of one GPU, from before the load to after it.
struct LinkSeen {
  unsigned number = 0;
  bool at_fault = false;  ///< down, slower than the fastest of its GPU, or recovered during the load
};

/// Links at fault: by link number how many GPUs, where more than half of the GPUs with that link have it, and three at
/// least; the others by rank. Link n of every GPU of an NVL72 is taken to lead to the same switch, the plane n; no
/// public document says so, and if it is not so, a plane shows as single links of many GPUs.
struct LinkFaults {
  std::map<unsigned, std::size_t> planes;            ///< every number that any GPU has; mostly 0
  std::vector<std::vector<unsigned>> links_of_rank;  ///< numbers that are no plane's
};

/// Sorts `seen`, the links of each rank; a rank that reports none has none at fault.
LinkFaults link_faults(const std::vector<std::vector<LinkSeen>>& seen);

/// Medians of `rates` of `pairs`, by GPU, by tray and of all.
struct RackFigures {
  std::vector<std::optional<double>> sent, received;  ///< by rank, as source and as target
  std::vector<std::optional<double>> of_tray;         ///< pairs with an end in the tray
  double middle = 0, least = 0;                       ///< of all pairs
};
RackFigures rack_figures(const Trays& trays, const std::vector<DevicePair>& pairs, std::span<const double> rates);

}  // namespace assay::cuda
