// host_path: buffers on the right node, copies, and comparison on whichever side the bytes arrive.
#include "probes/cuda/host_path.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "probes/cuda/chase_words.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/numa.h"
#include "probes/cuda/payload.h"

namespace assay::cuda {
namespace {

// 16 MiB in lines of 128 B: some hundred pages of any size, far more lines than one sample visits.
constexpr std::size_t kChasePlaces = 131072;
constexpr std::uint64_t kChaseSeed = 0xc4a5e;

/// The CPUs next to the GPU; none if its node is not known.
std::vector<int> cpus_near(std::optional<int> node) { return node ? cpus_of_node(*node) : std::vector<int>{}; }

/// Made and touched by a thread on `node`, which may go anywhere afterwards.
NodeBuffer buffer_on(Bytes size, std::optional<int> node) {
  const CpuBinding binding(cpus_near(node));
  return {size, node, binding.bound()};
}

}  // namespace

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

HostPath::HostPath(const Device& device, Bytes size, std::size_t index)
    : device_(made_current(device)),
      size_(size),
      index_(index),
      node_(numa_node_of(device.pci_bus_id)),
      source_(buffer_on(size, node_)),
      target_(buffer_on(size, node_)),
      chase_(buffer_on({kChasePlaces * kChaseLine}, node_)),
      device_target_(size),
      device_source_(size),
      wrong_(1),
      at_(1),
      pageable_(size, host::Pages::huge),
      chase_words_(chase_words(kChasePlaces, kChaseSeed)),
      stream_(make_stream()) {
  const CpuBinding binding(cpus_near(node_));
  fill_payload(source_.words(), seed(Direction::h2d));
  fill_payload(pageable_.as<std::uint64_t>(), seed(Direction::h2d));
  std::ranges::copy(chase_words_, chase_.words().begin());
  enqueue_fill(device_source_.data(), size_, seed(Direction::d2h), stream_);
  at_.clear(stream_);
  wait(stream_);
}

std::uint64_t HostPath::seed(Direction direction) const {
  // Far apart, so that no word of one payload is at the same place in another.
  return (std::uint64_t{2} * index_ + (direction == Direction::h2d ? 1 : 2)) << 48;
}

void HostPath::poison(Direction direction) {
  use(device_);
  if (direction == Direction::d2h) return poison_payload(target_.words(), seed(direction));
  clear(device_target_.data(), size_, stream_);
  wait(stream_);
}

void HostPath::enqueue(Direction direction, Engine engine, std::size_t copies, const Stream& stream) {
  const bool up = direction == Direction::h2d;
  NodeBuffer& host = up ? source_ : target_;
  std::byte* const device = (up ? device_target_ : device_source_).data();
  // A copy engine is given the host's address, a kernel the GPU's; where both are one address space they are equal.
  std::byte* const there = engine == Engine::copy_engine ? host.bytes().data() : host.seen_by_gpu();
  for (std::size_t i = 0; i < copies; ++i) {
    if (engine == Engine::multiprocessors) {
      enqueue_copy(up ? device : there, up ? there : device, size_, stream);
    } else if (up) {
      copy_up(device, there, size_, stream);
    } else {
      copy_down(there, device, size_, stream);
    }
  }
}

std::uint64_t HostPath::mismatches(Direction direction) {
  if (direction == Direction::d2h) return payload_mismatches(target_.words(), seed(direction));
  use(device_);
  wrong_.clear(stream_);
  enqueue_payload_check(device_target_.data(), size_, seed(direction), wrong_.data(), stream_);
  wait(stream_);
  return wrong_.total();
}

Seconds HostPath::pageable_copy() {
  use(device_);
  const CpuBinding binding(cpus_near(node_));
  const auto begin = std::chrono::steady_clock::now();
  copy_up(device_target_.data(), pageable_.as<std::byte>().data(), size_, stream_);
  wait(stream_);
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

void HostPath::enqueue_latency(std::uint64_t steps, const Stream& stream) {
  enqueue_chase(chase_.seen_by_gpu(), at_.data(), steps, stream);
}

std::uint64_t HostPath::lost_chases(std::uint64_t steps) {
  use(device_);
  return at_.total() == chase_end(chase_words_, 0, steps) ? 0 : 1;
}

std::optional<double> HostPath::share_on_node() const {
  const auto source = source_.share_on_node(), target = target_.share_on_node();
  if (!source || !target) return std::nullopt;
  return (*source + *target) / 2;
}

}  // namespace assay::cuda
