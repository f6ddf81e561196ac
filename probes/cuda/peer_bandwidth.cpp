// cuda_peer_bandwidth: bandwidth from each GPU of a node to each other, one pair at a time and all at once.
#include "probes/core/join.h"
#include "probes/cuda/device_record.h"
#include "probes/cuda/peer_run.h"
#include "probes/nvml/gpu_errors.h"
#include "probes/nvml/gpu_watch.h"

namespace assay::cuda {
namespace {

constexpr ConditionSpec kRankConditions[] = {
    {.name = "performance_rank", .meaning = "The CUDA runtime's relative rank of a pair's link; lower is better."},
};
constexpr ConditionSpec kErrorConditions[] = {nvml::kGpuErrorsCondition};
constexpr auto kConditions = join(kPeerWayConditions, kRankConditions, kPeerSampleConditions, kDeviceConditions,
                                  nvml::kGpuWatchConditions, kErrorConditions);
constexpr ProbeSpec kSpec{
    .name = "cuda_peer_bandwidth",
    .sampled = true,
    .measures =
        "Bandwidth and latency between the GPUs of one node: every ordered pair alone, one to all others, and all "
        "pairs at once.",
    .method =
        "The subject of a pair is \"source>target\"; bytes go from source to target, written by the source or read by "
        "the target. Copies are enqueued behind a gate, so that all of a sample start at once, and timed by events on "
        "the devices. Each bandwidth counts payload bytes in one direction; duplex_bandwidth alone is a sum of two. "
        "What is copied to is cleared before each sample, and what its last copy left is compared word by word. The "
        "latency is that of a random cycle of pointers, one in each 128 B of 16 MiB, which may lie in the source's "
        "second-level cache. A pair without peer access is measured through the host by copy engines, without a gate, "
        "and says so in the condition path.",
    .source =
        "NVIDIA nvbandwidth 0.8, README and testcases, for pairs, size, number of copies and gate; its bidirectional "
        "figures by copy engine are per direction and summed; the uncertainties are inferred from the resolution of "
        "CUDA events.",
    .needs = "NVIDIA driver for CUDA 13, two or more GPUs",
    .typical = {180},
    .deadline = {3600},
    .parameters = kPeerParameters,
    .metrics = kPeerMetrics,
    .conditions = kConditions};

void measure(const Parameters& given, Recorder& record) {
  measure_peers<nvml::GpuWatch, nvml::GpuErrors>(given, record_device, record);
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::cuda::kSpec, assay::cuda::measure); }
