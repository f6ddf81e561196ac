// nccl_collective: time and bandwidth of one NCCL collective over all GPUs of a node or of several, checked exactly.
#include "probes/core/join.h"
#include "probes/cuda/device_record.h"
#include "probes/nccl/collective_run.h"
#include "probes/nvml/gpu_errors.h"

namespace assay::nccl {
namespace {

constexpr Parameter kChoiceParameters[] = {
    choice("algorithm", "default", kAlgorithms, "algorithm to force, or NCCL's own choice"),
    kProtocolParameter,
    choice("nvls", "default", "default 0 1", "reduction in NVLink switches: NCCL's own choice, off or on"),
    choice("collnet", "default", "default 0 1",
           "reduction in the switches of the network (SHARP): NCCL's own choice, off or on"),
    choice("mnnvl", "default", "default 0 1", "NVLink between nodes: NCCL's own choice, off or on"),
    kGpudirectParameter,
};
constexpr auto kParameters = join(kMessageParameters, kChoiceParameters);
constexpr ConditionSpec kErrorConditions[] = {nvml::kGpuErrorsCondition};
constexpr auto kConditions = join(cuda::kDeviceConditions, kFactConditions, kPlacementConditions, kErrorConditions);
constexpr ProbeSpec kSpec{
    .name = "nccl_collective",
    .revision = 3,
    .scope = Scope::group,
    .sampled = true,
    .measures =
        "Time, algorithm bandwidth and bus bandwidth of an NCCL collective over GPUs of one node or of several, and "
        "the share of line rate that it takes of network adapters.",
    .method =
        "One process for each GPU; ranks count node by node in the order of PCI bus ids. The communicator is "
        "non-blocking and every wait has a deadline. Buffers come from ncclMemAlloc, are used out of place, and their "
        "place moves on with each iteration. Sums; all_to_all, scatter and send_recv (to the next rank, from the one "
        "before) are grouped sends and receives. A batch is enqueued behind a gate on each GPU, which then opens, so "
        "that no launch is in a time; after lead-in iterations (five at first, then one in each batch) each iteration "
        "is timed by two events on every rank, and its time is the longest of all ranks. algbw is size over time, size "
        "being the whole buffer as nccl-tests counts it; busbw is algbw times 2(n-1)/n for all_reduce, (n-1)/n for "
        "all_gather, reduce_scatter, all_to_all and scatter, 1 for broadcast and send_recv. Under NVLS and over two "
        "nodes by tree busbw is not the traffic of a link. Before and after the timing of each size one collective "
        "runs on whole numbers whose sums are exact in the type, or on random bits if none are added, and every "
        "received element is compared on the device. "
        "Algorithm, protocol, channels and transport are what NCCL's log says. Where a size ran over two nodes or more "
        "by rings with SIMPLE, every node sends at the rate of busbw, in equal parts by channel: an adapter of line "
        "rate r by which c of C channels leave the node is full at a busbw of r C / c. The least over all adapters is "
        "wire_rate; of other algorithms and protocols, of networks other than NET/IB, and where an adapter or its rate "
        "is unknown, there is none.",
    .source = "NVIDIA nccl-tests, doc/PERFORMANCE.md; NCCL 2.28 user guide and source for the lines of its log.",
    .needs = "NVIDIA GPUs, two or more over all nodes, with their driver, and libnccl.so.2 from 2.18 on",
    .typical = {120},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kCollectiveMetrics,
    .conditions = kConditions};

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  measure_collective<nvml::GpuErrors>(given, placement, record,
                                      {.product = kNccl,
                                       .forced = {.algorithm = given.text("algorithm"),
                                                  .protocol = given.text("protocol"),
                                                  .nvls = given.text("nvls"),
                                                  .collnet = given.text("collnet"),
                                                  .mnnvl = given.text("mnnvl"),
                                                  .gpudirect = given.text("gpudirect")},
                                       .record_device = cuda::record_device});
}

}  // namespace
}  // namespace assay::nccl

int main(int argc, char** argv) {
  if (const auto code = assay::nccl::rank_main(argc, argv, assay::nccl::kNccl)) return *code;
  return assay::probe_main(argc, argv, assay::nccl::kSpec, assay::nccl::measure);
}
