// cuda_host_link: bandwidth and latency between host memory and a GPU, by copy engine and by multiprocessors.
#include "probes/core/probe.h"
#include "probes/cuda/device_record.h"
#include "probes/cuda/host_link_run.h"
#include "probes/nvml/gpu_watch.h"

namespace assay::cuda {
namespace {

constexpr auto kConditions = join_conditions(kLinkConditions, kDeviceConditions, nvml::kGpuWatchConditions);
constexpr ProbeSpec kSpec{
    .name = "cuda_host_link",
    .revision = 3,
    .sampled = true,
    .measures = "Bandwidth and latency between host memory and each GPU, one by one or all at once.",
    .method =
        "Pinned host buffers lie on the GPU's NUMA node. A sample is 16 copies of the payload, enqueued behind a gate, "
        "so that all GPUs and directions of it start at once, and timed by events on the device. Each bandwidth counts "
        "payload bytes; one direction is one metric, and duplex_bandwidth alone is a sum of two. What is copied to is "
        "overwritten before each sample, and what its last copy left is compared word by word. The latency is that of "
        "a random cycle of pointers, one in each 128 B of 16 MiB, past the GPU's caches. PCIe generation and width are "
        "read while copies run both ways, because a link at rest may lower both, and left out where copies ended "
        "before the last reading; the watch's conditions span the whole measurement.",
    .source =
        "NVIDIA nvbandwidth 0.8, README and testcases, for size, number of copies and gate; it times one direction of "
        "two where duplex_bandwidth adds both; the uncertainties are inferred from the resolution of CUDA events.",
    .needs = "NVIDIA driver for CUDA 13",
    .typical = {60},
    .deadline = {1800},
    .parameters = kLinkParameters,
    .metrics = kLinkMetrics,
    .conditions = kConditions};

void measure(const Parameters& given, Recorder& record) {
  measure_host_link<nvml::GpuWatch>(given, record_device, record);
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::cuda::kSpec, assay::cuda::measure); }
