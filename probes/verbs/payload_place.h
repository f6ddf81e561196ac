// payload_place: where a rank's payload is, in this host's memory or in a GPU's, and the port near it.
#pragma once

#include <optional>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/cuda/driver.h"
#include "probes/verbs/adapter.h"
#include "probes/verbs/port_choice.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::verbs {

/// The parameters that say so, besides `device`.
inline constexpr Parameter kPlaceParameters[] = {
    choice("memory", "host", "host gpu",
           "where the payload is; gpu: in the memory of an NVIDIA GPU, never of the host in its place"),
    parameter("gpu", "", "affine",
              "with memory gpu: affine (the one nearest to the port), a UUID or a PCI bus id; two, separated by a "
              "comma: of rank 0 and of rank 1"),
};

/// The conditions that record() records.
inline constexpr ConditionSpec kPlaceConditions[] = {
    {.name = "memory", .meaning = "where this rank's payload is: host or gpu"},
    {.name = "registration",
     .meaning = "how the adapter came to that memory: host; dma_buf (ibv_reg_dmabuf_mr); peermem (ibv_reg_mr of the "
                "GPU's address)"},
    {.name = "dma_buf_refused",
     .meaning = "why the GPU's memory was not registered as a dma-buf, with registration peermem"},
    {.name = "gpu", .meaning = "UUID of the GPU that holds the payload, with memory gpu"},
    {.name = "gpu_pci_bus_id", .meaning = "of that GPU"},
    {.name = "gpu_name", .meaning = "model of that GPU"},
    if_reported("gpu_numa_node", "NUMA node of that GPU, where the kernel reports it"),
    {.name = "gpu_nic_path",
     .meaning =
         "how near GPU and port are: same_switch, same_root (host bridge), same_numa_node, other_numa_node or unknown"},
    if_reported("gpu_nic_bridges", "PCI bridges between GPU and port, where their path is known"),
    {.name = "cuda_driver", .meaning = "CUDA version that the driver supports at most, with memory gpu"},
    {.name = "thread_numa_node", .meaning = "NUMA node that the measuring thread ran on at the end"},
    if_reported("memory_numa_share",
                "share of the host memory's pages on the port's NUMA node, where the kernel reports it"),
};

/// Throws BadParameter when `gpu` is given and memory is host.
void check_place(const Parameters& given);

/// One rank's port and, with memory gpu, its GPU.
class PayloadPlace {
 public:
  /// Chooses them as the parameters device, memory and gpu say. Throws Skip when port, driver or GPU are not here, and
  /// as choose_port_and_gpu(). Memory that make() returns must be gone before this is.
  PayloadPlace(const Parameters& given, const MachineTree& tree, int rank);
  PayloadPlace(const PayloadPlace&) = delete;
  PayloadPlace& operator=(const PayloadPlace&) = delete;

  [[nodiscard]] const PortFacts& port() const { return chosen_.port; }
  /// `size` bytes at this place that `adapter` and peers reach.
  /// A GPU's memory is reached itself, or `staged` through pages of this host.
  [[nodiscard]] RegisteredMemory make(const Adapter& adapter, std::size_t size, Ordering ordering,
                                      bool staged = false) const;
  /// Records kPlaceConditions of `memory`, from the thread that measured.
  void record(Recorder& record, const MachineTree& tree, const RegisteredMemory& memory) const;

 private:
  std::optional<cuda::CudaDriver> driver_;
  PortAndGpu chosen_;
};

}  // namespace assay::verbs
