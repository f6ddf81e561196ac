// node_buffer: host memory on one NUMA node, page-locked so that every GPU reaches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "probes/core/units.h"
#include "probes/host/buffer.h"

namespace assay::cuda {

/// How memory came to its node.
enum class MemoryPlacement { mbind, first_touch, none };

/// "mbind", "first_touch" or "none".
std::string_view to_string(MemoryPlacement placement);

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

}  // namespace assay::cuda
