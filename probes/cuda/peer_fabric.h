// peer_fabric: the GPUs of a node, what each may reach of the others, and payloads that go between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "probes/core/units.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_words.h"
#include "probes/cuda/figures.h"
#include "probes/cuda/peer_link.h"

namespace assay::cuda {

/// Who copies: the source's GPU pushes, or the target's pulls.
enum class Initiator { source, target };

/// All GPUs with one payload each, a landing place for every other GPU's payload, and a cycle to be chased.
class PeerFabric {
 public:
  /// Allocates `size` (a multiple of 16 B) on each of `devices` once for every GPU, and opens peer access wherever
  /// there is any. Throws std::runtime_error when memory does not suffice.
  PeerFabric(std::vector<Device> devices, Bytes size);

  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }
  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] const PeerFacts& facts(DevicePair pair) const { return facts_[place(pair)]; }
  /// Whether the pair copies without the host in between.
  [[nodiscard]] bool direct(DevicePair pair) const { return facts(pair).access != PeerAccess::none; }

  /// Overwrites the landing place of `pair`.
  void poison(DevicePair pair);
  /// Enqueues `copies` copies by a copy engine, on a stream of the GPU that initiates.
  void enqueue_copies(DevicePair pair, std::size_t copies, const Stream& stream) const;
  /// The same by the multiprocessors of the GPU that `stream` belongs to. The pair must be direct.
  void enqueue_kernels(DevicePair pair, std::size_t copies, const Stream& stream) const;
  /// Words that did not land.
  std::uint64_t mismatches(DevicePair pair);

  /// Has the next chase of `pair` begin at its first place.
  void restart_chase(DevicePair pair);
  /// Enqueues `steps` dependent loads of the source's memory by one thread of the target. The pair must be direct.
  void enqueue_chase_steps(DevicePair pair, std::uint64_t steps, const Stream& stream) const;
  /// 1 when the chase is not where `steps` steps from its restart lead, else 0.
  std::uint64_t lost_chases(DevicePair pair, std::uint64_t steps);

 private:
  struct Node {
    DeviceBuffer payload, landing, cycle;
    DeviceWords wrong, at;
    Stream stream;
  };
  [[nodiscard]] std::size_t place(DevicePair pair) const { return pair.source * devices_.size() + pair.target; }
  [[nodiscard]] std::byte* landing(DevicePair pair) const;
  void add_node(const Device& device, std::uint64_t seed);

  std::vector<Device> devices_;
  Bytes size_;
  std::vector<std::uint64_t> words_;  ///< of the cycle
  std::vector<Node> nodes_;
  std::vector<PeerFacts> facts_;  ///< n x n, row = source
};

}  // namespace assay::cuda
