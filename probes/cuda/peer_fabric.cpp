// peer_fabric: allocation, copies and comparison.
#include "probes/cuda/peer_fabric.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "probes/cuda/chase_words.h"
#include "probes/cuda/memory_kernels.h"

namespace assay::cuda {
namespace {

// 16 MiB in lines of 128 B: more lines than one sample visits.
constexpr std::size_t kChasePlaces = 131072;
constexpr std::uint64_t kChaseSeed = 0xc4a5e;

std::uint64_t seed_of(std::size_t device) { return (device + 1) << 48; }

}  // namespace

PeerFabric::PeerFabric(std::vector<Device> devices, Bytes size)
    : devices_(std::move(devices)), size_(size), words_(chase_words(kChasePlaces, kChaseSeed)) {
  for (std::size_t i = 0; i < devices_.size(); ++i) add_node(devices_[i], seed_of(i));
  facts_ = peer_facts(devices_);
  for (const DevicePair pair : ordered_pairs(devices_.size())) {
    if (direct(pair)) open_peer(devices_[pair.source], devices_[pair.target]);
  }
}

void PeerFabric::add_node(const Device& device, std::uint64_t seed) {
  use(device);
  const std::span<const std::byte> words = std::as_bytes(std::span(words_));
  const Bytes landing{size_.count * (devices_.size() - 1)};
  if (const Bytes free = free_memory(); free.count < size_.count + landing.count + words.size()) {
    constexpr std::uint64_t kGranule = std::uint64_t{1} << 20U;  // of --size
    const std::uint64_t room = free.count - std::min<std::uint64_t>(free.count, words.size());
    throw std::runtime_error(fmt::format(
        "size: {} payloads of {} B do not fit into the {} B of {} that are free; the nearest that fits: {}",
        devices_.size(), size_.count, free.count, device.uuid, room / devices_.size() / kGranule * kGranule));
  }
  Node node{.payload = DeviceBuffer(size_),
            .landing = DeviceBuffer(landing),
            .cycle = DeviceBuffer({words.size()}),
            .wrong = DeviceWords(1),
            .at = DeviceWords(1),
            .stream = make_stream()};
  copy_up(node.cycle.data(), words.data(), {words.size()}, node.stream);
  enqueue_fill(node.payload.data(), size_, seed, node.stream);
  wait(node.stream);
  nodes_.push_back(std::move(node));
}

std::byte* PeerFabric::landing(DevicePair pair) const {
  return nodes_[pair.target].landing.data() + landing_place(pair) * size_.count;
}

void PeerFabric::poison(DevicePair pair) {
  use(devices_[pair.target]);
  const Stream& stream = nodes_[pair.target].stream;
  clear(landing(pair), size_, stream);
  wait(stream);
}

void PeerFabric::enqueue_copies(DevicePair pair, std::size_t copies, const Stream& stream) const {
  for (std::size_t i = 0; i < copies; ++i) {
    copy_between(landing(pair), devices_[pair.target], nodes_[pair.source].payload.data(), devices_[pair.source], size_,
                 stream);
  }
}

void PeerFabric::enqueue_kernels(DevicePair pair, std::size_t copies, const Stream& stream) const {
  for (std::size_t i = 0; i < copies; ++i)
    enqueue_copy(landing(pair), nodes_[pair.source].payload.data(), size_, stream);
}

std::uint64_t PeerFabric::mismatches(DevicePair pair) {
  use(devices_[pair.target]);
  Node& node = nodes_[pair.target];
  node.wrong.clear(node.stream);
  enqueue_payload_check(landing(pair), size_, seed_of(pair.source), node.wrong.data(), node.stream);
  wait(node.stream);
  return node.wrong.total();
}

void PeerFabric::restart_chase(DevicePair pair) {
  use(devices_[pair.target]);
  Node& node = nodes_[pair.target];
  node.at.clear(node.stream);
  wait(node.stream);
}

void PeerFabric::enqueue_chase_steps(DevicePair pair, std::uint64_t steps, const Stream& stream) const {
  enqueue_chase(nodes_[pair.source].cycle.data(), nodes_[pair.target].at.data(), steps, stream);
}

std::uint64_t PeerFabric::lost_chases(DevicePair pair, std::uint64_t steps) {
  use(devices_[pair.target]);
  return nodes_[pair.target].at.total() == chase_end(words_, 0, steps) ? 0 : 1;
}

}  // namespace assay::cuda
