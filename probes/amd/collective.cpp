// rccl_collective: time and bandwidth of one RCCL collective over all AMD GPUs of a node or of several, checked
// exactly.
#include "probes/amd/device_record.h"
#include "probes/amd/gpu_errors.h"
#include "probes/core/join.h"
#include "probes/nccl/collective_run.h"

namespace assay::amd {
namespace {

constexpr Parameter kChoiceParameters[] = {
    choice("algorithm", "default", "default ring tree", "algorithm to force, or RCCL's own choice"),
    nccl::kProtocolParameter,
    nccl::kGpudirectParameter,
};
constexpr auto kParameters = join(nccl::kMessageParameters, kChoiceParameters);
constexpr ConditionSpec kErrorConditions[] = {kGpuErrorsCondition};
constexpr auto kConditions =
    join(kDeviceConditions, nccl::kRcclFactConditions, nccl::kPlacementConditions, kErrorConditions);
constexpr ProbeSpec kSpec{
    .name = "rccl_collective",
    .scope = Scope::group,
    .sampled = true,
    .measures =
        "Time, algorithm bandwidth and bus bandwidth of an RCCL collective over AMD GPUs of one node or of several.",
    .method =
        "As nccl_collective, line by line: one process for each GPU, in the order of PCI addresses; every wait with a "
        "deadline; batches behind a gate, timed by events on every rank, the longest of all ranks; algbw and busbw as "
        "rccl-tests counts them; before and after the timing of each size every received element compared with its "
        "exact value on the device. Of a partitioned GPU each partition is a rank. Algorithm and channels are those of "
        "RCCL's log; older ones have none. It has run over made-up libraries only, on no AMD GPU yet.",
    .source =
        "NVIDIA nccl-tests, doc/PERFORMANCE.md, as ROCm/rccl-tests has it; RCCL's nccl.h and source for the lines of "
        "its log (ROCm/rccl 0cbce2a; ROCm/rocm-systems, projects/rccl).",
    .needs =
        "AMD GPUs, two or more over all nodes, with the driver amdgpu; the HIP runtime and hiprtc of ROCm 6.0 or "
        "newer; librccl.so.1 from 2.18 on; AMD SMI of ROCm 7.0 for errors meanwhile",
    .typical = {120},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = nccl::kCollectiveMetrics,
    .conditions = kConditions};

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  nccl::measure_collective<GpuErrors>(given, placement, record,
                                      {.product = nccl::kRccl,
                                       .forced = {.algorithm = given.text("algorithm"),
                                                  .protocol = given.text("protocol"),
                                                  .gpudirect = given.text("gpudirect")},
                                       .record_device = record_device});
}

}  // namespace
}  // namespace assay::amd

int main(int argc, char** argv) {
  if (const auto code = assay::nccl::rank_main(argc, argv, assay::nccl::kRccl)) return *code;
  return assay::probe_main(argc, argv, assay::amd::kSpec, assay::amd::measure);
}
