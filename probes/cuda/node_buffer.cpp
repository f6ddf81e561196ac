// node_buffer: pages are placed and touched before the driver locks them, so that their node can be checked.
#include "probes/cuda/node_buffer.h"

#include <algorithm>
#include <utility>

#include "probes/cuda/device.h"
#include "probes/cuda/numa.h"

namespace assay::cuda {

std::string_view to_string(MemoryPlacement placement) {
  switch (placement) {
    case MemoryPlacement::mbind:
      return "mbind";
    case MemoryPlacement::first_touch:
      return "first_touch";
    case MemoryPlacement::none:
      return "none";
  }
  return "none";
}

NodeBuffer::NodeBuffer(Bytes size, std::optional<int> node, bool thread_is_there)
    : buffer_(size, host::Pages::huge), node_(node) {
  if (node_ && bind_memory(bytes(), *node_)) {
    placement_ = MemoryPlacement::mbind;
  } else if (node_ && thread_is_there) {
    placement_ = MemoryPlacement::first_touch;
  }
  std::ranges::fill(words(), 0);
  lock_pages(bytes());
  locked_ = true;
}

NodeBuffer::~NodeBuffer() {
  if (locked_) unlock_pages(bytes());
}

NodeBuffer::NodeBuffer(NodeBuffer&& other) noexcept
    : buffer_(std::move(other.buffer_)),
      node_(other.node_),
      placement_(other.placement_),
      locked_(std::exchange(other.locked_, false)) {}

std::byte* NodeBuffer::seen_by_gpu() { return place_on_device(bytes().data()); }

std::optional<double> NodeBuffer::share_on_node() const {
  if (!node_) return std::nullopt;
  return assay::cuda::share_on_node(buffer_.as<std::byte>(), *node_);
}

}  // namespace assay::cuda
