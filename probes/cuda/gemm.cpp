// cuda_gemm: sustained rate of a GPU on dense matrix products, by cuBLASLt.
#include <fmt/format.h>

#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/cuda/detection.h"
#include "probes/cuda/device_record.h"
#include "probes/cuda/gemm_measure.h"

namespace assay::cuda {
namespace {

// The same kernel on one GPU repeats within 0.1 % (docs/MEASUREMENTS.md).
constexpr double kCycleInstrument = 1e-3;

constexpr Parameter kType[] = {
    choice("type", "bf16", kGemmTypeNames, "element type of A and B"),
};
constexpr Parameter kOwnParameters[] = {
    parameter("fast_accumulation", "1", "0", "1 lets FP8 products accumulate with less precision"),
};
constexpr Parameter kLibraryParameter[] = {
    parameter("library_path", "", "", "folders with libcublasLt, separated by colons, searched before the usual ones"),
};
constexpr auto kParameters =
    join(kGemmGpuParameters, kType, kGemmShapeParameters, kOwnParameters, kGemmLoadParameters, kLibraryParameter);
constexpr Metric kCycles[] = {
    higher("flop_per_cycle", "1",
           "FLOPs of throughput for each multiprocessor and cycle of it, by the multiprocessors' own counters, which "
           "power and clock do not change, where all of them were read",
           Recorded::if_reported, kCycleInstrument),
    higher("flop_per_cycle_first", "1", "the same of throughput_first", Recorded::if_reported, kCycleInstrument),
};
constexpr auto kMetrics = join(kGemmRates, kCycles, kGemmChecks);
constexpr ConditionSpec kOwnConditions[] = {
    if_asked("fast_accumulation",
             "Whether products may accumulate with less precision, where the type is fp8_e4m3 or fp8_e5m2."),
    {.name = "emulated", .meaning = "Whether algorithms that emulate the type by narrower ones were allowed."},
};
constexpr ConditionSpec kCycleConditions[] = {
    if_reported("sm_clock_counted_hz",
                "Mean SM clock while throughput was measured, by the multiprocessors' own counters, where all of them "
                "were read; NVML's readings may be 10 % away under a power cap."),
};
constexpr auto kConditions =
    join(kProductConditions, kOwnConditions, kAlgorithmConditions, kCycleConditions, kCheckConditions,
         kResultFaultConditions, kDeviceConditions, nvml::kGpuWatchConditions);
constexpr ProbeSpec kSpec{
    .name = "cuda_gemm",
    .revision = 6,
    .sampled = true,
    .measures = "Sustained rate of an NVIDIA GPU on dense matrix products of one element type.",
    .method =
        "D = op(A) op(B) with A stored transposed (TN), by cuBLASLt with a workspace of 32 MiB. A and B hold standard "
        "normal numbers rounded to the type on the GPU; mxfp8 and nvfp4 carry a scale for each block of 32 or 16 "
        "elements, FP8 one device scale for each matrix. Sets of operands that together pass twice the second-level "
        "cache are used in turn. Every algorithm that the library's heuristic returns is timed for 20 ms after a "
        "second of warm-up; those near the fastest are tried under a load that does not pause, there and back again, "
        "and the one with the highest mean rate, summed over the GPUs of a model that are measured at once, is taken "
        "by all of them. It and the library's first choice are then measured alike, once if they are the same. A "
        "sample is the mean rate over sample_length of CUDA graphs of products that last at least 100 ms, between two "
        "events, with the next one already in the queue. 2 m n k FLOPs are counted for each product, integer "
        "operations alike. FP64 and FP32 are never emulated by narrower types. After each graph the results of all "
        "sets are summed to 64 bits on the GPU and compared with the first ones; at the end 4096 elements of up to 8 "
        "sets, one in every tile of a 64 by 64 grid, are recomputed on the host from the operands as the GPU stores "
        "them, in FP64 or wider, and compared within the accumulator's precision (FP8: 14 bits) and, of algorithms "
        "that split k, that of the partial sums they store. Last, both algorithms multiply operands of -1, 0 and 1, "
        "and operands with all bits of the type (20 at most) by single ones, whose results are exact in every type, "
        "and every line of the whole result is compared with A (B x) for random weights x, modulo 2^64 (Freivalds "
        "1979). Before, faults of published classes are put into results, and those that their sums show are counted. "
        "Energy is the difference of the GPU's counter.",
    .source =
        "cuBLAS manual (cublasLtMatmul, block scaling layouts); OCP Microscaling 1.0; FP8 accumulation: arXiv "
        "2412.19437, section 3.3.2.",
    .needs = "NVIDIA driver for CUDA 13, libcublasLt 13",
    .typical = {35},
    .deadline = {1800},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0.005,
                     .source = "Two runs of one H100, 2026-11-27: 0.24 % (docs/records/2026-11-27-gpus/h100)."},
};

const GemmType* type_on(const Device& device, const GemmType* type) {
  if (10 * device.compute_major + device.compute_minor >= type->compute) return type;
  throw Skip(fmt::format("type {} needs compute capability {}.{}; {} ({}) has {}", type->name, type->compute / 10,
                         type->compute % 10, device.uuid, device.name, device.compute_capability()));
}

void measure(const Parameters& given, Recorder& record) {
  const GemmType& type = measure_gemm(given,
                                      {.type_on = type_on,
                                       .watch = [](const std::string& address) { return nvml::GpuWatch(address); },
                                       .record_device = record_device,
                                       .has_fast_accumulation = true},
                                      record);
  if (type.scaling == Scaling::tensor) record.condition("fast_accumulation", given.count("fast_accumulation") != 0);
  record.condition("emulated", false);
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::cuda::kSpec, assay::cuda::measure); }
