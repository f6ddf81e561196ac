// amd_gemm: sustained rate of an AMD GPU on dense matrix products, by hipBLASLt.
#include <fmt/format.h>

#include "probes/amd/device_record.h"
#include "probes/amd/gpu_watch.h"
#include "probes/core/join.h"
#include "probes/core/recorder.h"
#include "probes/cuda/detection.h"
#include "probes/cuda/gemm_measure.h"

namespace assay::amd {
namespace {

constexpr Parameter kOwnParameters[] = {
    {.name = "type",
     .unit = "",
     .fallback = "bf16",
     .meaning = "element type of A and B; FP8 is stored as FNUZ on gfx942, as OCP on gfx950; tf32 is XF32",
     .choices = "fp8_e4m3 fp8_e5m2 bf16 fp16 tf32 fp32 fp64 int8"},
};
constexpr Parameter kLibraryParameter[] = {
    parameter("library_path", "", "", "folders with libhipblaslt, separated by colons, searched before the usual ones"),
};
constexpr auto kParameters = join(cuda::kGemmGpuParameters, kOwnParameters, cuda::kGemmShapeParameters,
                                  cuda::kGemmLoadParameters, kLibraryParameter);
constexpr auto kMetrics = join(cuda::kGemmRates, cuda::kGemmChecks);
constexpr ConditionSpec kOwnConditions[] = {
    if_asked("fp8_encoding", "How elements of 8 bits are stored, fnuz or ocp, where the type is fp8_e4m3 or fp8_e5m2."),
};
constexpr auto kConditions =
    join(cuda::kProductConditions, kOwnConditions, cuda::kAlgorithmConditions, cuda::kCheckConditions,
         cuda::kResultFaultConditions, kDeviceConditions, kGpuWatchConditions);
constexpr ProbeSpec kSpec{
    .name = "amd_gemm",
    .sampled = true,
    .measures = "Sustained rate of an AMD GPU on dense matrix products of one element type.",
    .method =
        "As cuda_gemm, line by line, by hipBLASLt with a workspace of 76 MiB: operands of normal numbers made on the "
        "GPU, sets of them in turn that pass twice the last cache, the library's algorithms in trials under load, "
        "samples of HIP graphs of products, 4096 elements of up to 8 sets recomputed on the host, whole products of "
        "whole numbers, results compared bit by bit. An algorithm is named by the number of its solution, which "
        "belongs to one version of the library; one that adds up partial sums in no fixed order counts as changed "
        "results. FP8 has one device scale for each matrix. Types that a GPU has no instructions for are skipped: FP8 "
        "before gfx942, XF32 on all but gfx942. Cycles of the compute units are not counted. It has run over made-up "
        "libraries only, on no AMD GPU yet.",
    .source =
        "hipblaslt.h (ROCm/hipBLASLt); hipBLASLt release notes of ROCm 7.0 (TF32 is emulated on gfx950); HIP "
        "documentation, Low precision floating point types; FNUZ: arXiv 2206.02915; the uncertainties are those of "
        "cuda_gemm, not measured yet.",
    .needs =
        "the driver amdgpu; the HIP runtime, hiprtc and hipBLASLt of ROCm 6.0 or newer; AMD SMI of ROCm 7.0 for "
        "the watch",
    .typical = {35},
    .deadline = {1800},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// As the architectures gfx90a (9.0), gfx942 (9.4) and gfx950 (9.5) multiply.
const cuda::GemmType* type_on(const cuda::Device& device, const cuda::GemmType* type) {
  constexpr int kCdna3 = 94, kCdna4 = 95;
  const int architecture = 10 * device.compute_major + device.compute_minor;
  const bool is_fp8 = type->scaling == cuda::Scaling::tensor, is_xf32 = type->a == cuda::Format::tf32;
  if (is_fp8 ? architecture >= kCdna3 : is_xf32 ? architecture == kCdna3 : true)
    return architecture >= kCdna4 ? type : &cuda::fnuz_type(*type);
  throw Skip(fmt::format("type {}: {} ({}, architecture {}) has no instruction for it; {}", type->name, device.uuid,
                         device.name, device.compute_capability(),
                         is_fp8 ? "MI300 (9.4) and later have" : "only MI300 (9.4) has, others emulate it"));
}

void measure(const Parameters& given, Recorder& record) {
  const cuda::GemmType& type =
      cuda::measure_gemm(given,
                         {.type_on = type_on,
                          .watch = [](const std::string& address) -> nvml::GpuWatch { return GpuWatch(address); },
                          .record_device = record_device},
                         record);
  if (type.scaling == cuda::Scaling::tensor)
    record.condition("fp8_encoding", std::string(type.b == cuda::Format::e4m3_fnuz ? "fnuz" : "ocp"));
}

}  // namespace
}  // namespace assay::amd

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::amd::kSpec, assay::amd::measure); }
