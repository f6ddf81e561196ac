// amd_hbm_bandwidth: bandwidth of the memory of an AMD GPU, as a whole and slice by slice.
#include "probes/amd/device_record.h"
#include "probes/amd/gpu_watch.h"
#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/cuda/hbm_run.h"

namespace assay::amd {
namespace {

constexpr auto kConditions = join(cuda::kHbmConditions, cuda::kWalkConditions, kDeviceConditions, kGpuWatchConditions);
constexpr ProbeSpec kSpec{
    .name = "amd_hbm_bandwidth",
    .revision = 2,
    .sampled = true,
    .measures = "Bandwidth of an AMD GPU's memory by its compute units, and of every slice of that memory.",
    .method =
        "As cuda_hbm_bandwidth, line by line: STREAM's copy, scale, add and triad, BabelStream's dot, a plain read and "
        "write on arrays of doubles, ten passes a sample behind a gate, timed by events on the device; every element "
        "and every sum compared with its exact value; then all memory in slices, read in sweeps and walked through "
        "from content to content. The kernels are compiled on the node for the GPU that is there. The arrays are at "
        "least four times the largest cache before the memory, the Infinity Cache of GPUs that have one. Of a "
        "partitioned GPU each partition is a device of its own. It has run over a made-up runtime only, on no AMD GPU "
        "yet.",
    .source =
        "McCalpin, STREAM 5.10, www.cs.virginia.edu/stream; Deakin et al., BabelStream, IJCSE 17(3), 2018; patterns: "
        "NVIDIA DCGM, Memtest Diagnostic; the uncertainties are those of cuda_hbm_bandwidth, not measured yet.",
    .needs = "the driver amdgpu; the HIP runtime and hiprtc of ROCm 6.0 or newer; AMD SMI of ROCm 7.0 for the watch",
    .typical = {20},
    .loads = static_cast<int>(std::size(cuda::kHbmKernels)),
    .deadline = {1800},
    .parameters = cuda::kHbmParameters,
    .metrics = cuda::kHbmMetrics,
    .conditions = kConditions};

void measure(const Parameters& given, Recorder& record) { cuda::measure_hbm<GpuWatch>(given, record_device, record); }

}  // namespace
}  // namespace assay::amd

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::amd::kSpec, assay::amd::measure); }
