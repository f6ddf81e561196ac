// peer_fabric: allocation, peer access, copies and comparison.
#include "probes/cuda/peer_fabric.h"

#include <span>
#include <stdexcept>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/cuda/chase_words.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/nvml/nvml.h"
#include "probes/nvml/nvml_gpu.h"

namespace assay::cuda {
namespace {

// 16 MiB in lines of 128 B: more lines than one sample visits.
constexpr std::size_t kChasePlaces = 131072;
constexpr std::uint64_t kChaseSeed = 0xc4a5e;

std::uint64_t seed_of(std::size_t device) { return (device + 1) << 48; }

bool may_access(const Device& device, const Device& peer) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device.ordinal, peer.ordinal), "asking whether GPUs reach each other");
  return can != 0;
}

int attribute(cudaDeviceP2PAttr name, const Device& source, const Device& target) {
  int value = 0;
  check(cudaDeviceGetP2PAttribute(&value, name, source.ordinal, target.ordinal), "asking about the link of two GPUs");
  return value;
}

void open_peer(const Device& device, const Device& peer) {
  use(device);
  check(cudaDeviceEnablePeerAccess(peer.ordinal, 0),
        fmt::format("opening the memory of {} to {}", peer.uuid, device.uuid));
}

/// Row = source: whether NVML says that the pair reaches each other over NVLink; nothing where it does not say.
std::vector<std::optional<bool>> nvlink_pairs(const std::vector<Device>& devices) {
  std::vector<std::optional<bool>> pairs(devices.size() * devices.size());
  try {
    const nvml::Nvml nvml;
    for (std::size_t source = 0; source < devices.size(); ++source) {
      for (std::size_t target = 0; target < devices.size(); ++target) {
        const auto one = nvml.gpu_at(devices[source].pci_bus_id), other = nvml.gpu_at(devices[target].pci_bus_id);
        if (source == target || !one.value || !other.value) continue;
        pairs[source * devices.size() + target] = one.value->reaches_over_nvlink(*other.value).value;
      }
    }
  } catch (const Skip&) {
    return pairs;  // the runtime's answers are all there is, and GpuWatch records why NVML is absent
  }
  return pairs;
}

}  // namespace

PeerFabric::PeerFabric(std::vector<Device> devices, Bytes size)
    : devices_(std::move(devices)), size_(size), words_(chase_words(kChasePlaces, kChaseSeed)) {
  for (std::size_t i = 0; i < devices_.size(); ++i) add_node(devices_[i], seed_of(i));
  open_access();
}

void PeerFabric::add_node(const Device& device, std::uint64_t seed) {
  use(device);
  const std::span<const std::byte> words = std::as_bytes(std::span(words_));
  const Bytes landing{size_.count * (devices_.size() - 1)};
  if (free_memory().count < size_.count + landing.count + words.size()) {
    throw std::runtime_error(
        fmt::format("size: {} has no room for {} payloads of {} B; hint: free the GPU, or choose a smaller --size",
                    device.uuid, devices_.size(), size_.count));
  }
  Node node{.payload = DeviceBuffer(size_),
            .landing = DeviceBuffer(landing),
            .cycle = DeviceBuffer({words.size()}),
            .wrong = DeviceWords(1),
            .at = DeviceWords(1),
            .stream = make_stream()};
  check(cudaMemcpy(node.cycle.data(), words.data(), words.size(), cudaMemcpyHostToDevice),
        "copying the cycle to the GPU");
  enqueue_fill(node.payload.data(), size_, seed, node.stream);
  wait(node.stream);
  nodes_.push_back(std::move(node));
}

void PeerFabric::open_access() {
  const auto nvlink = nvlink_pairs(devices_);
  facts_.resize(devices_.size() * devices_.size());
  for (const DevicePair pair : ordered_pairs(devices_.size())) {
    const Device& source = devices_[pair.source];
    const Device& target = devices_[pair.target];
    // Pushing needs the source to reach the target, pulling the reverse: a pair is direct when both do.
    const bool both = may_access(source, target) && may_access(target, source);
    if (both) open_peer(source, target);
    const bool atomics = both && attribute(cudaDevP2PAttrNativeAtomicSupported, source, target) != 0;
    facts_[place(pair)] = {.access = peer_access(both, nvlink[place(pair)], atomics),
                           .performance_rank = attribute(cudaDevP2PAttrPerformanceRank, source, target)};
  }
}

std::byte* PeerFabric::landing(DevicePair pair) const {
  return nodes_[pair.target].landing.data() + landing_place(pair) * size_.count;
}

void PeerFabric::poison(DevicePair pair) {
  use(devices_[pair.target]);
  const Stream& stream = nodes_[pair.target].stream;
  check(cudaMemsetAsync(landing(pair), 0, size_.count, stream.get()), "clearing memory of the GPU");
  wait(stream);
}

void PeerFabric::enqueue_copies(DevicePair pair, std::size_t copies, const Stream& stream) const {
  for (std::size_t i = 0; i < copies; ++i) {
    check(cudaMemcpyPeerAsync(landing(pair), devices_[pair.target].ordinal, nodes_[pair.source].payload.data(),
                              devices_[pair.source].ordinal, size_.count, stream.get()),
          "copying between GPUs");
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
