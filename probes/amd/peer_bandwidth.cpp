// amd_peer_bandwidth: bandwidth from each AMD GPU of a node to each other, one pair at a time and all at once.
#include "probes/amd/device_record.h"
#include "probes/amd/gpu_errors.h"
#include "probes/amd/gpu_watch.h"
#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/cuda/peer_run.h"

namespace assay::amd {
namespace {

constexpr ConditionSpec kOwnConditions[] = {
    if_reported("link_hops", "Links from one GPU of a pair to the other, where AMD SMI or the runtime counts them."),
    kGpuErrorsCondition,
};
constexpr auto kConditions =
    join(cuda::kPeerWayConditions, kOwnConditions, cuda::kPeerSampleConditions, kDeviceConditions, kGpuWatchConditions);
constexpr ProbeSpec kSpec{
    .name = "amd_peer_bandwidth",
    .sampled = true,
    .measures =
        "Bandwidth and latency between the AMD GPUs of one node, over XGMI or PCIe: every ordered pair, one to "
        "all others, and all pairs at once.",
    .method =
        "As cuda_peer_bandwidth, line by line: peer access opened wherever both GPUs of a pair may reach each other; "
        "copies behind a gate, timed by events on the devices; every word of the last copy of a sample compared; the "
        "latency that of a random cycle of pointers. AMD SMI reports whether a pair is linked by XGMI or PCIe; without "
        "it, the runtime. Copies by the copy engine are the runtime's own, which takes compute units where "
        "HSA_ENABLE_SDMA is 0; a metric that ends in _sm is of a kernel. Of a partitioned GPU each partition is a "
        "device of its own. It has run over a made-up runtime only, on no AMD GPU yet.",
    .source =
        "NVIDIA nvbandwidth 0.8, README and testcases, for pairs, size, number of copies and gate; ROCm, "
        "hip/hip_runtime_api.h and amd_smi/amdsmi.h; the uncertainties are those of cuda_peer_bandwidth, not measured "
        "yet.",
    .needs =
        "the driver amdgpu; two or more GPUs; the HIP runtime and hiprtc of ROCm 6.0 or newer; AMD SMI of ROCm 7.0 for "
        "the watch",
    .typical = {180},
    .deadline = {3600},
    .parameters = cuda::kPeerParameters,
    .metrics = cuda::kPeerMetrics,
    .conditions = kConditions};

void measure(const Parameters& given, Recorder& record) {
  cuda::measure_peers<GpuWatch, GpuErrors>(given, record_device, record);
}

}  // namespace
}  // namespace assay::amd

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::amd::kSpec, assay::amd::measure); }
