// gemm_measure: the method of the probes of matrix products, whatever runtime and library it is linked with:
// parameters, metrics, conditions, and all GPUs in turn or at once.
#pragma once

#include <string>

#include "probes/core/probe.h"
#include "probes/cuda/choice.h"
#include "probes/cuda/gemm_type.h"
#include "probes/nvml/gpu_watch.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::cuda {

namespace gemm {

// Events resolve half a microsecond in a window of 100 ms or more.
inline constexpr double kInstrument = 1e-5;
// The energy counter moves every 20 to 100 ms in a window of seconds; inferred, NVIDIA and AMD state no accuracy.
inline constexpr double kEnergyInstrument = 0.05;

}  // namespace gemm

/// Parameters before and after those of one vendor: which GPUs, which type (kGemmTypeNames or some of them), which
/// shape, which load.
inline constexpr Parameter kGemmGpuParameters[] = {kDeviceParameter, kScheduleParameter};
inline constexpr Parameter kGemmShapeParameters[] = {
    parameter("m", "1", "8192", "rows of the result", "4096"),
    parameter("n", "1", "8192", "columns of the result", "4096"),
    parameter("k", "1", "8192", "terms of each sum", "4096"),
    choice("data", "gaussian", "gaussian constant", "values of the operands; constant: ones, which overstate the rate"),
};
inline constexpr Parameter kGemmLoadParameters[] = {
    parameter("sample_length", "s", "1s",
              "a sample is the mean rate over this time at least; under a power cap anything below a second is noise",
              "200ms"),
    parameter("trials", "1", "8",
              "algorithms that are tried under load at most, the library's first among them: as many as warmup_least "
              "has time for, but two; 1: the library's first is taken",
              "1"),
    spent("load_least", "0s", "throughput is measured for this long at least, despite max_samples and time_limit",
          "0s"),
    parameter(
        "seed", "1", "0",
        "of the numbers of the operands and the places of the samples; 0: by the clock, another in every run, and "
        "recorded"),
};
inline constexpr Metric kGemmRates[] = {
    higher("throughput", "FLOP/s",
           "2 m n k for each product over the time of a sample, with the algorithm that was fastest under load",
           Recorded::always, gemm::kInstrument),
    higher("throughput_first", "FLOP/s",
           "the same with the algorithm that the library ranks first, which applications get, measured after it "
           "without load_least and warmup_least: on a GPU as warm as the longer measurement has left it",
           Recorded::always, gemm::kInstrument),
    higher("throughput_best", "FLOP/s", "the fastest single sample of throughput, warm-up included", Recorded::always,
           gemm::kInstrument),
};
inline constexpr Metric kGemmChecks[] = {
    fault("mismatches", "sampled elements outside the tolerance of the FP64 reference, of both algorithms"),
    lower("largest_error_share", "1",
          "largest difference of a sampled element from the reference over its tolerance; 0 for whole numbers"),
    fault("whole_mismatches",
          "lines of whole results of small and of wide whole numbers that are not exact in every element, of both "
          "algorithms"),
    fault("checksum_changes", "results that differ in any bit from the first of the same operands and algorithm"),
    higher("energy_efficiency", "FLOP/J",
           "mean rate over mean power while throughput is measured, where the GPU counts its energy",
           Recorded::if_present, gemm::kEnergyInstrument),
};
/// Of the products, of the library and its algorithms, of operands and checks: between them stand those of one vendor.
inline constexpr ConditionSpec kProductConditions[] = {
    {.name = "layout", .meaning = "How A and B are stored: TN is A transposed, B not, all column-major."},
    {.name = "data", .meaning = "Values of the operands."},
    {.name = "result_type", .meaning = "Element type of the result."},
};
inline constexpr ConditionSpec kAlgorithmConditions[] = {
    {.name = "library_version", .meaning = "Version of the library of products."},
    {.name = "library_path", .meaning = "File of that library."},
    {.name = "algorithm",
     .meaning = "The algorithm of throughput, in the library's numbers; the same on all GPUs of a model."},
    {.name = "algorithm_first", .meaning = "The first of the library's ranking that it runs, in the same numbers."},
    {.name = "algorithms_refused", .meaning = "Algorithms that the library proposed and then did not run."},
    {.name = "algorithms_timed", .meaning = "Algorithms that the library proposed and short trials timed."},
    if_occurred("trial_rates",
                "Mean rates of the algorithms that were tried under load, in FLOP/s, summed over the GPUs of the model "
                "that were measured at once, where several were."),
    if_occurred("choice_margin",
                "Rate of the chosen algorithm in those trials over that of the best other, less 1: under 0.005 there "
                "is no difference."),
};
inline constexpr ConditionSpec kCheckConditions[] = {
    {.name = "operand_sets", .meaning = "Sets of matrices used in turn."},
    {.name = "operand_bytes", .meaning = "Size of all sets together, in B."},
    {.name = "products_per_batch", .meaning = "Products between two comparisons of the results."},
    {.name = "elements_checked", .meaning = "Elements that were compared with the reference, of both algorithms."},
    {.name = "detects_sampled_share",
     .meaning = "Share of the elements of a result that are compared with the reference: an error of one place that "
                "only such operands show is found with this probability, one that whole numbers show always."},
    {.name = "detects_compared_share",
     .meaning =
         "Share of the products of throughput whose results are compared with the first of their operands, every "
         "bit of them."},
    {.name = "detects_wrong_rate",
     .meaning = "Wrong results in an hour of products, in any bits, of which throughput would have shown one with a "
                "probability of 0.95."},
    {.name = "seed", .meaning = "Numbers of the operands and places of the samples follow from it."},
    if_present("energy_window_s", "Time over which energy was counted, in s, where the GPU counts its energy."),
};

/// What differs between vendors.
struct GemmVendor {
  /// How a device multiplies elements of a type; throws Skip where it does not.
  const GemmType* (*type_on)(const Device&, const GemmType*);
  nvml::GpuWatch (*watch)(const std::string& pci_bus_id);
  void (*record_device)(Recorder&, const Device&);
  bool has_fast_accumulation = false;  ///< whether that is a parameter
};

/// Measures what `given` asks for, and returns the type as the GPUs multiplied it.
const GemmType& measure_gemm(const Parameters& given, const GemmVendor& vendor, Recorder& record);

}  // namespace assay::cuda
