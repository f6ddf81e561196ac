// peer_link: probes/cuda/peer_link.h by the HIP runtime and AMD SMI.
#include "probes/cuda/peer_link.h"

#include <fmt/format.h>

#include "probes/amd/hip.h"
#include "probes/cuda/figures.h"

namespace assay::cuda {
namespace {

namespace api = amd::hip_api;
using amd::hip;

bool may_access(const Device& device, const Device& peer) {
  int can = 0;
  check(hip().can_access(&can, device.ordinal, peer.ordinal), "asking whether GPUs reach each other");
  return can != 0;
}

/// Nothing if AMD SMI is absent, or does not list both.
std::optional<amd::LinkFacts> known_to_smi(const Device& source, const Device& target) {
  const amd::AmdSmi* smi = amd::smi_beside();
  if (smi == nullptr) return std::nullopt;
  const auto from = smi->gpu_at(source.pci_bus_id), to = smi->gpu_at(target.pci_bus_id);
  return from && to ? from->link_to(*to).value : std::nullopt;
}

PeerFacts facts_of(const Device& source, const Device& target) {
  PeerFacts facts;
  unsigned type = 0, hops = 0;
  const bool told = hip().link(source.ordinal, target.ordinal, &type, &hops) == api::kSuccess;
  const auto known = known_to_smi(source, target);
  const bool is_xgmi = known ? known->is_xgmi : told && type == api::kXgmiLink;
  facts.access = is_xgmi ? PeerAccess::xgmi : PeerAccess::pcie;
  if (known || told) facts.hops = known ? known->hops : std::int64_t{hops};
  return facts;
}

}  // namespace

std::vector<PeerFacts> peer_facts(const std::vector<Device>& devices) {
  std::vector<PeerFacts> facts(devices.size() * devices.size());
  for (const DevicePair pair : ordered_pairs(devices.size())) {
    const Device& source = devices[pair.source];
    const Device& target = devices[pair.target];
    PeerFacts& own = facts[pair.source * devices.size() + pair.target] = facts_of(source, target);
    // Pushing needs the source to reach the target, pulling the reverse: a pair is direct when both do.
    if (!may_access(source, target) || !may_access(target, source)) own.access = PeerAccess::none;
  }
  return facts;
}

void open_peer(const Device& device, const Device& peer) {
  use(device);
  check(hip().open_access(peer.ordinal, 0), fmt::format("opening the memory of {} to {}", peer.uuid, device.uuid));
}

void copy_between(std::byte* target, const Device& target_device, const std::byte* source, const Device& source_device,
                  Bytes size, const Stream& stream) {
  check(hip().copy_between(target, target_device.ordinal, source, source_device.ordinal, size.count, stream.get()),
        "copying between GPUs");
}

}  // namespace assay::cuda
