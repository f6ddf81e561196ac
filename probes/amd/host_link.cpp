// amd_host_link: bandwidth and latency between host memory and an AMD GPU, by copy engine and by compute units.
#include "probes/amd/device_record.h"
#include "probes/amd/gpu_watch.h"
#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/cuda/host_link_run.h"

namespace assay::amd {
namespace {

constexpr auto kConditions = join(cuda::kLinkConditions, kDeviceConditions, kGpuWatchConditions);
constexpr ProbeSpec kSpec{
    .name = "amd_host_link",
    .sampled = true,
    .measures = "Bandwidth and latency between host memory and each AMD GPU, one by one or all at once.",
    .method =
        "As cuda_host_link, line by line: pinned buffers on the GPU's NUMA node, 16 copies a sample behind a gate, "
        "timed by events on the device; every word of the last copy is compared, and the latency is that of a random "
        "cycle of pointers. Copies by the copy engine are the runtime's own, which takes compute units where "
        "HSA_ENABLE_SDMA is 0; a metric that ends in _sm is of a kernel. It has run over a made-up runtime only, on no "
        "AMD GPU yet.",
    .source =
        "NVIDIA nvbandwidth 0.8, README and testcases, for size, number of copies and gate; the uncertainties are "
        "those of cuda_host_link, not measured yet.",
    .needs = "the driver amdgpu; the HIP runtime and hiprtc of ROCm 6.0 or newer; AMD SMI of ROCm 7.0 for the watch",
    .typical = {60},
    .deadline = {1800},
    .parameters = cuda::kLinkParameters,
    .metrics = cuda::kLinkMetrics,
    .conditions = kConditions};

void measure(const Parameters& given, Recorder& record) {
  cuda::measure_host_link<GpuWatch>(given, record_device, record);
}

}  // namespace
}  // namespace assay::amd

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::amd::kSpec, assay::amd::measure); }
