// port_choice: which port, GPU and GID a measurement uses, and the reason.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "probes/core/units.h"
#include "probes/cuda/driver.h"
#include "probes/health/pci_way.h"
#include "probes/verbs/port_facts.h"

namespace assay::verbs {

using health::Nearness;
using health::pci_numa_node;
using health::pci_way;
using health::PciWay;

/// A port, and if the payload is in a GPU's memory, that GPU.
struct PortAndGpu {
  PortFacts port;
  std::optional<cuda::DriverGpu> gpu = {};
  PciWay way = {};  ///< between the two
};

/// The port that `device` names (see candidate_ports()) and the GPU that `gpu` names: "affine", a UUID, a PCI bus id,
/// or two of these for rank 0 and rank 1, separated by a comma. Where either leaves a choice it is the fastest ports,
/// of these the pair with the shortest way (by nearness, then by bridges), and among equals the first port and then the
/// first GPU by name. `gpus` is not empty. Throws as candidate_ports() and gpu_named(), and BadParameter for more than
/// two GPUs.
PortAndGpu choose_port_and_gpu(const MachineTree& tree, const std::vector<PortFacts>& ports, std::string_view device,
                               const std::vector<cuda::DriverGpu>& gpus, std::string_view gpu, int rank);

/// The ports that `wanted` names, by name and never none: "auto": the fastest active ones; "numa:1": the fastest active
/// ones on that NUMA node; a device ("mlx5_0": its first port) or a port ("mlx5_0/2"): that one. Throws Skip when there
/// is no port at all, or with "auto" none is active; std::runtime_error with the existing ones when the named one is
/// not there or not active, or no port of the NUMA node is.
std::vector<PortFacts> candidate_ports(const std::vector<PortFacts>& ports, std::string_view wanted);

/// The GID that `wanted` names: an index, or "auto": on Ethernet RoCE v2 with an IPv4 address, then RoCE v2 with
/// another address that is not link-local, then any RoCE v2, then RoCE v1; on InfiniBand the first. Throws BadParameter
/// for text that is neither, std::runtime_error with the table when there is no such entry.
const Gid& choose_gid(const PortFacts& port, std::string_view wanted);

/// The path MTU for two ports whose active MTUs are `mine` and `other`, B: the smaller one, or `wanted` ("auto" or B).
/// Throws std::runtime_error when more is wanted than both have.
int choose_mtu(int mine, int other, std::string_view wanted);

/// The largest payload rate of `rate` when messages travel in packets of `mtu` bytes with `headers` bytes each.
constexpr BytesPerSecond payload_limit(BytesPerSecond rate, int mtu, int headers) {
  return {rate.count * mtu / (mtu + headers)};
}
static_assert(payload_limit({1000}, 900, 100).count == 900);

/// RoCE v2 over IPv4: Ethernet 14 + FCS 4 + preamble and gap 20, IPv4 20, UDP 8, BTH 12, ICRC 4 (InfiniBand
/// Architecture Specification, Annex A17). RETH comes once a message and is left out, so the limit is an upper bound.
inline constexpr int kRoceHeaders = 14 + 4 + 20 + 20 + 8 + 12 + 4;
/// InfiniBand within a subnet: LRH 8, BTH 12, ICRC 4, VCRC 2.
inline constexpr int kInfinibandHeaders = 8 + 12 + 4 + 2;

}  // namespace assay::verbs
