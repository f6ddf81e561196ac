// host_path: copies between host memory on one node and one GPU, in each direction and by each engine, and their check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "probes/core/units.h"
#include "probes/core/words.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_words.h"
#include "probes/host/buffer.h"

namespace assay::cuda {

/// How memory came to its node.
enum class MemoryPlacement { mbind, first_touch, none };

constexpr auto words_of(MemoryPlacement) { return names_as_words<MemoryPlacement>(); }

/// Zeroed memory on one node, in huge pages where the kernel has them.
class NodeBuffer {
 public:
  /// Takes the pages from `node` by mbind, or where the kernel refuses that, by touching them first from the calling
  /// thread, which must then run there (`thread_is_there`); without a node they lie wherever the kernel puts them.
  /// Locks them for all GPUs. Throws std::runtime_error with the size when memory or page locking is not to be had.
  NodeBuffer(Bytes size, std::optional<int> node, bool thread_is_there);
  ~NodeBuffer();
  NodeBuffer(NodeBuffer&& other) noexcept;
  NodeBuffer& operator=(NodeBuffer&&) = delete;
  NodeBuffer(const NodeBuffer&) = delete;
  NodeBuffer& operator=(const NodeBuffer&) = delete;

  /// The memory as words.
  [[nodiscard]] std::span<std::uint64_t> words() { return buffer_.as<std::uint64_t>(); }
  [[nodiscard]] std::span<std::byte> bytes() { return buffer_.as<std::byte>(); }
  /// Where the current GPU sees the memory.
  [[nodiscard]] std::byte* seen_by_gpu();
  [[nodiscard]] MemoryPlacement placement() const { return placement_; }
  /// Share of its pages on the node; nothing without a node or where the kernel does not report it.
  [[nodiscard]] std::optional<double> share_on_node() const;

 private:
  host::Buffer buffer_;
  std::optional<int> node_;
  MemoryPlacement placement_ = MemoryPlacement::none;
  bool locked_ = false;
};

/// Which way bytes go: host to device, device to host.
enum class Direction { h2d, d2h };

/// The mover: a copy engine, or the multiprocessors.
enum class Engine { copy_engine, multiprocessors };

/// One GPU, its payloads on both sides, and pinned buffers on the NUMA node next to it. Calls make the GPU current.
class HostPath {
 public:
  /// Payloads of `size` (a multiple of 16 B) in each direction; `index` distinguishes the payloads of GPUs.
  HostPath(const Device& device, Bytes size, std::size_t index);

  /// Overwrites the target of the copy, so that a copy that does not happen shows.
  void poison(Direction direction);
  /// Enqueues `copies` copies of the payload.
  void enqueue(Direction direction, Engine engine, std::size_t copies, const Stream& stream);
  /// Words that are not what the last copy must have left. For h2d the GPU looks, for d2h the host.
  std::uint64_t mismatches(Direction direction);

  /// Wall time of one copy from ordinary, pageable memory by a thread next to the GPU.
  Seconds pageable_copy();

  /// Enqueues `steps` dependent loads of pinned host memory by one thread.
  void enqueue_latency(std::uint64_t steps, const Stream& stream);
  /// 1 when the chase of `steps` steps in all is not where it must be, else 0.
  std::uint64_t lost_chases(std::uint64_t steps);

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] Bytes size() const { return size_; }
  /// NUMA node of the GPU, if the kernel knows it.
  [[nodiscard]] std::optional<int> node() const { return node_; }
  [[nodiscard]] MemoryPlacement placement() const { return source_.placement(); }
  /// Share of the pages of the pinned buffers that lie on the node.
  [[nodiscard]] std::optional<double> share_on_node() const;

 private:
  [[nodiscard]] std::uint64_t seed(Direction direction) const;

  Device device_;
  Bytes size_;
  std::size_t index_;
  std::optional<int> node_;
  NodeBuffer source_, target_, chase_;
  DeviceBuffer device_target_, device_source_;
  DeviceWords wrong_, at_;
  host::Buffer pageable_;
  std::vector<std::uint64_t> chase_words_;
  Stream stream_;
};

}  // namespace assay::cuda
