// cuda_hbm_bandwidth: bandwidth of the memory of a GPU, as a whole and slice by slice.
#include "probes/core/probe.h"
#include "probes/cuda/device_record.h"
#include "probes/cuda/hbm_run.h"
#include "probes/nvml/gpu_watch.h"

namespace assay::cuda {
namespace {

constexpr auto kConditions =
    join_conditions(kHbmConditions, kWalkConditions, kDeviceConditions, nvml::kGpuWatchConditions);
constexpr ProbeSpec kSpec{
    .name = "cuda_hbm_bandwidth",
    .revision = 5,
    .sampled = true,
    .measures = "Bandwidth of a GPU's memory by its multiprocessors, and of every slice of that memory.",
    .method =
        "STREAM's copy, scale, add and triad, BabelStream's dot, and a plain read and write, on arrays of doubles that "
        "are filled anew before each kernel. Each thread moves 16 bytes; read and dot take pieces of 32 KiB a block. "
        "The arrays are at least four times the second-level cache and take at most 80 % of memory. A sample is ten "
        "passes, enqueued behind a gate and timed by events on the device. Bytes are those that the kernel asks to "
        "read and write; the best of the samples is what BabelStream quotes. After each kernel every element of every "
        "array is compared with its exact value, and every sum with the exact sum; in read and dot a second sum of "
        "mixed bits, in which no errors cancel, is compared with that of words made anew. Then memory is taken in "
        "slices until 256 MiB are left; each is filled with a payload of its own, read ten times in sweeps over all of "
        "them, so that no read finds it in the cache, and compared word by word while its complement is written, which "
        "is compared in turn, so that every bit has held 0 and 1, and every word, being different from all others, "
        "proves its address. In each pass moving inversions of twelve patterns follow: address, random bits, solid, "
        "stripes of 1 to 32 bits, a walking bit, checkerboards of words; upwards and downwards. A wrong word is read "
        "again and recorded. Last, faults of published classes are put into slices between a write and its comparison, "
        "and those that it finds are counted. A copy engine is not used: it does not measure this memory.",
    .source =
        "McCalpin, STREAM 5.10, www.cs.virginia.edu/stream; Deakin et al., BabelStream, IJCSE 17(3), 2018; patterns: "
        "NVIDIA DCGM, Memtest Diagnostic; the uncertainties are inferred from the resolution of CUDA events.",
    .needs = "NVIDIA driver for CUDA 13",
    .typical = {10},
    .loads = static_cast<int>(std::size(kHbmKernels)),
    .deadline = {1800},
    .parameters = kHbmParameters,
    .metrics = kHbmMetrics,
    .conditions = kConditions};

void measure(const Parameters& given, Recorder& record) { measure_hbm<nvml::GpuWatch>(given, record_device, record); }

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::cuda::kSpec, assay::cuda::measure); }
