// affinity: which ports and GPUs belong together.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "probes/cuda/driver.h"
#include "probes/health/pci_way.h"
#include "probes/verbs/port_facts.h"

namespace assay {
class MachineTree;
}  // namespace assay

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

}  // namespace assay::verbs
