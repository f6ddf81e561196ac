// peer_link: pairs of NVIDIA GPUs by the CUDA runtime and NVML.
#include "probes/cuda/peer_link.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/cuda/figures.h"
#include "probes/nvml/nvml.h"
#include "probes/nvml/nvml_gpu.h"

namespace assay::cuda {
namespace {

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

std::vector<PeerFacts> peer_facts(const std::vector<Device>& devices) {
  const auto nvlink = nvlink_pairs(devices);
  std::vector<PeerFacts> facts(devices.size() * devices.size());
  for (const DevicePair pair : ordered_pairs(devices.size())) {
    const Device& source = devices[pair.source];
    const Device& target = devices[pair.target];
    const std::size_t place = pair.source * devices.size() + pair.target;
    // Pushing needs the source to reach the target, pulling the reverse: a pair is direct when both do.
    const bool both = may_access(source, target) && may_access(target, source);
    const bool atomics = both && attribute(cudaDevP2PAttrNativeAtomicSupported, source, target) != 0;
    facts[place] = {.access = peer_access(both, nvlink[place], atomics),
                    .performance_rank = attribute(cudaDevP2PAttrPerformanceRank, source, target),
                    .hops = std::nullopt};
  }
  return facts;
}

void open_peer(const Device& device, const Device& peer) {
  use(device);
  check(cudaDeviceEnablePeerAccess(peer.ordinal, 0),
        fmt::format("opening the memory of {} to {}", peer.uuid, device.uuid));
}

void copy_between(std::byte* target, const Device& target_device, const std::byte* source, const Device& source_device,
                  Bytes size, const Stream& stream) {
  check(cudaMemcpyPeerAsync(target, target_device.ordinal, source, source_device.ordinal, size.count, stream.get()),
        "copying between GPUs");
}

}  // namespace assay::cuda
