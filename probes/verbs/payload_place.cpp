// payload_place: the driver is opened only where a GPU's memory is asked for.
#include "probes/verbs/payload_place.h"

#include <string>

#include <sched.h>

#include "probes/core/machine_tree.h"
#include "probes/cuda/gpu_memory.h"
#include "probes/cuda/numa.h"
#include "probes/verbs/port_choice.h"

namespace assay::verbs {

void check_place(const Parameters& given) {
  if (given.text("memory") == "host" && given.text("gpu") != "affine") {
    throw BadParameter("gpu: the memory is the host's; hint: --memory gpu");
  }
}

PayloadPlace::PayloadPlace(const Parameters& given, const MachineTree& tree, int rank) {
  const auto ports = read_ports(tree);
  chosen_.port = candidate_ports(ports, given.text("device")).front();
  if (given.text("memory") != "gpu") return;
  driver_.emplace();
  chosen_ = choose_port_and_gpu(tree, ports, given.text("device"), driver_->gpus(), given.text("gpu"), rank);
}

RegisteredMemory PayloadPlace::make(const Adapter& adapter, std::size_t size, Ordering ordering, bool staged) const {
  if (!chosen_.gpu) return adapter.memory(size, ordering);
  cuda::GpuMemory of_gpu(*driver_, *chosen_.gpu, {size});
  return staged ? adapter.staged(std::move(of_gpu), ordering) : adapter.memory(std::move(of_gpu), ordering);
}

void PayloadPlace::record(Recorder& record, const MachineTree& tree, const RegisteredMemory& memory) const {
  record.condition("memory", std::string(chosen_.gpu ? "gpu" : "host"));
  record.condition("registration", std::string(to_string(memory.registration())));
  unsigned cpu = 0, node = 0;
  if (getcpu(&cpu, &node) == 0) record.condition("thread_numa_node", std::int64_t{node});
  if (!chosen_.gpu) {
    if (!port().numa_node) return;
    if (const auto share = cuda::share_on_node(memory.bytes(), *port().numa_node))
      record.condition("memory_numa_share", *share);
    return;
  }
  const cuda::DriverGpu& gpu = *chosen_.gpu;
  if (!memory.dma_buf_refused().empty()) record.condition("dma_buf_refused", memory.dma_buf_refused());
  record.condition("gpu", gpu.uuid);
  record.condition("gpu_pci_bus_id", gpu.pci_bus_id);
  record.condition("gpu_name", gpu.name);
  if (const auto of_gpu = pci_numa_node(tree, gpu.pci_bus_id)) record.condition("gpu_numa_node", std::int64_t{*of_gpu});
  record.condition("gpu_nic_path", std::string(to_string(chosen_.way.nearness)));
  if (chosen_.way.nearness != Nearness::unknown) record.condition("gpu_nic_bridges", std::int64_t{chosen_.way.bridges});
  record.condition("cuda_driver", driver_->version());
}

}  // namespace assay::verbs
