// cuda_gemm: sustained rate of a GPU on dense matrix products, by cuBLASLt.
#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/cuda/detection.h"
#include "probes/cuda/device_record.h"
#include "probes/cuda/gemm_run.h"

namespace assay::cuda {
namespace {

// Events resolve half a microsecond in a window of 100 ms or more.
constexpr double kInstrument = 1e-5;
// The energy counter moves every 20 to 100 ms in a window of seconds; inferred, NVIDIA states no accuracy.
// The same kernel on one GPU repeats within 0.1 % (docs/MEASUREMENTS.md).
constexpr double kCycleInstrument = 1e-3;
constexpr double kEnergyInstrument = 0.05;

constexpr Parameter kParameters[] = {
    kDeviceParameter,
    kScheduleParameter,
    {.name = "type", .unit = "", .fallback = "bf16", .meaning = "element type of A and B", .choices = kGemmTypeNames},
    {.name = "m", .unit = "1", .fallback = "8192", .quick = "4096", .meaning = "rows of the result"},
    {.name = "n", .unit = "1", .fallback = "8192", .quick = "4096", .meaning = "columns of the result"},
    {.name = "k", .unit = "1", .fallback = "8192", .quick = "4096", .meaning = "terms of each sum"},
    {.name = "data",
     .unit = "",
     .fallback = "gaussian",
     .meaning = "values of the operands; constant: ones, which overstate the rate",
     .choices = "gaussian constant"},
    {.name = "fast_accumulation",
     .unit = "1",
     .fallback = "0",
     .meaning = "1 lets FP8 products accumulate with less precision"},
    {.name = "sample_length",
     .unit = "s",
     .fallback = "1s",
     .quick = "200ms",
     .meaning =
         "a sample is the mean rate over this time at least; under a power cap anything below a second is noise"},
    {.name = "trials",
     .unit = "1",
     .fallback = "8",
     .quick = "1",
     .meaning = "algorithms that are tried under load at most, the library's first among them: as many as warmup_least "
                "has time for, but two; 1: the library's first is taken"},
    {.name = "load_least",
     .unit = "s",
     .fallback = "0s",
     .quick = "0s",
     .meaning = "throughput is measured for this long at least, despite max_samples and time_limit"},
    {.name = "seed",
     .unit = "1",
     .fallback = "0",
     .meaning =
         "of the numbers of the operands and the places of the samples; 0: by the clock, another in every run, and "
         "recorded"},
    {.name = "library_path",
     .unit = "",
     .fallback = "",
     .meaning = "folders with libcublasLt, separated by colons, searched before the usual ones"},
};
constexpr Metric kMetrics[] = {
    higher("throughput", "FLOP/s",
           "2 m n k for each product over the time of a sample, with the algorithm that was fastest under load",
           Recorded::always, kInstrument),
    higher("throughput_first", "FLOP/s",
           "the same with the algorithm that the library ranks first, which applications get, measured after it "
           "without load_least and warmup_least: on a GPU as warm as the longer measurement has left it",
           Recorded::always, kInstrument),
    higher("throughput_best", "FLOP/s", "the fastest single sample of throughput, warm-up included", Recorded::always,
           kInstrument),
    higher("flop_per_cycle", "1",
           "FLOPs of throughput for each multiprocessor and cycle of it, by the multiprocessors' own counters, which "
           "power and clock do not change, where all of them were read",
           Recorded::if_reported, kCycleInstrument),
    higher("flop_per_cycle_first", "1", "the same of throughput_first", Recorded::if_reported, kCycleInstrument),
    fault("mismatches", "sampled elements outside the tolerance of the FP64 reference, of both algorithms"),
    lower("largest_error_share", "1",
          "largest difference of a sampled element from the reference over its tolerance; 0 for whole numbers"),
    fault("whole_mismatches",
          "lines of whole results of small and of wide whole numbers that are not exact in every element, of both "
          "algorithms"),
    fault("checksum_changes", "results that differ in any bit from the first of the same operands and algorithm"),
    higher("energy_efficiency", "FLOP/J",
           "mean rate over mean power while throughput is measured, where NVML has an energy counter",
           Recorded::if_present, kEnergyInstrument),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "layout", .meaning = "How A and B are stored: TN is A transposed, B not, all column-major."},
    {.name = "data", .meaning = "Values of the operands."},
    {.name = "result_type", .meaning = "Element type of the result."},
    if_asked("fast_accumulation",
             "Whether products may accumulate with less precision, where the type is fp8_e4m3 or fp8_e5m2."),
    {.name = "emulated", .meaning = "Whether algorithms that emulate the type by narrower ones were allowed."},
    {.name = "library_version", .meaning = "Version of cuBLASLt."},
    {.name = "library_path", .meaning = "File of cuBLASLt."},
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
    if_reported("sm_clock_counted_hz",
                "Mean SM clock while throughput was measured, by the multiprocessors' own counters, where all of them "
                "were read; NVML's readings may be 10 % away under a power cap."),
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
    if_present("energy_window_s", "Time over which energy was counted, in s, where NVML has an energy counter."),
};
constexpr auto kConditions =
    join_conditions(kOwnConditions, kResultFaultConditions, kDeviceConditions, nvml::kGpuWatchConditions);
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
        "and operands with all bits of the type (20 at most) by single ones, "
        "whose results are exact in every type, and every line of the whole result is compared with A (B x) for random "
        "weights x, modulo 2^64 (Freivalds 1979). Before, faults of published classes are put into results, and those "
        "that their "
        "sums show are counted. Energy is the difference of the GPU's counter.",
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

constexpr Seconds kTrialsOfOne = {2.4};  // all trials of one algorithm, with those thrown away

/// As many algorithms as warmup_least has time for; two at least, since one is no choice.
std::size_t trials_of(const Parameters& given) {
  const auto most = static_cast<std::size_t>(given.count("trials"));
  const auto fit = static_cast<std::size_t>(given.seconds("warmup_least").count / kTrialsOfOne.count);
  return std::min(most, std::max<std::size_t>(2, fit));
}

/// A lasting error of one place that the samples of a run miss is found by those of another: nights add up.
std::uint64_t seed_of(const Parameters& given) {
  if (given.count("seed") != 0) return static_cast<std::uint64_t>(given.count("seed"));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

GemmPlan read_plan(const Parameters& given) {
  const auto size = [&](const char* name) { return static_cast<std::size_t>(given.count(name)); };
  GemmPlan plan{.type = gemm_type(given.text("type")),
                .shape = {.m = size("m"), .n = size("n"), .k = size("k")},
                .pattern = given.text("data") == "gaussian" ? Pattern::gaussian : Pattern::constant,
                .fast_accumulation = given.count("fast_accumulation") != 0,
                .seed = seed_of(given),
                .trials = trials_of(given),
                .sample_length = given.seconds("sample_length"),
                .sampling = sampling_plan(given),
                .sampling_first = sampling_plan(given)};
  if (plan.trials == 0) throw std::runtime_error("trials: give 1 or more");
  plan.sampling.load_least = given.seconds("load_least");
  plan.sampling_first.warmup_least = {0};
  if (const auto problem = shape_problem(plan.type, plan.shape)) throw std::runtime_error(*problem);
  if (given.count("fast_accumulation") > 1) throw std::runtime_error("fast_accumulation: give 0 or 1");
  if (plan.fast_accumulation && plan.type.scaling != Scaling::tensor) {
    throw std::runtime_error(
        fmt::format("fast_accumulation: type {} has no such choice; hint: fp8_e4m3 and fp8_e5m2 have", plan.type.name));
  }
  return plan;
}

void require_type(const Device& device, const GemmType& type) {
  if (10 * device.compute_major + device.compute_minor >= type.compute) return;
  throw Skip(fmt::format("type {} needs compute capability {}.{}; {} ({}) has {}", type.name, type.compute / 10,
                         type.compute % 10, device.uuid, device.name, device.compute_capability()));
}

std::string words(const AlgorithmRates& rates) {
  std::vector<std::string> texts;
  for (const auto& one : rates) texts.push_back(fmt::format("{}: {:.5g}", one.algorithm, one.rate));
  return fmt::format("{}", fmt::join(texts, "; "));
}

void record_cycles(Recorder& record, const char* metric, const GemmFigures& figures, const Device& device) {
  if (figures.counted) record.measurement(metric, figures.flop / figures.counted->cycles, device.subject());
}

void record_detection(Recorder& record, const GemmShape& shape, const GemmOutcome& outcome, const Subject& subject) {
  constexpr double kHour_s = 3600;
  const auto share = [](std::size_t part, std::size_t whole) {
    return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
  };
  const double compared = share(outcome.sets, outcome.products);
  record.condition("detects_sampled_share", share(kSampledElements, shape.m * shape.n), subject);
  record.condition("detects_compared_share", compared, subject);
  record.condition("detects_wrong_rate", rate_seen(compared * outcome.chosen.flop / outcome.chosen.mean_rate / kHour_s),
                   subject);
  const double products = kHour_s * outcome.chosen.mean_rate / shape.flop();
  record_faults(record, subject, kResultFaults, outcome.faults,
                hour_of_results(compared, products, static_cast<double>(outcome.sets)));
}

void record_outcome(Recorder& record, const Device& device, const GemmShape& shape, const GemmOutcome& outcome) {
  const Subject subject = device.subject();
  record.measurement("throughput", outcome.chosen.throughput, subject);
  record.measurement("throughput_first", outcome.first.throughput, subject);
  double fastest_sample = 0;
  for (const auto* values : {&outcome.chosen.throughput.warmup, &outcome.chosen.throughput.samples}) {
    for (const double value : *values) fastest_sample = std::max(fastest_sample, value);
  }
  record.measurement("throughput_best", fastest_sample, subject);
  record_cycles(record, "flop_per_cycle", outcome.chosen, device);
  record_cycles(record, "flop_per_cycle_first", outcome.first, device);
  record.measurement("mismatches", static_cast<double>(outcome.errors.wrong), subject);
  record.measurement("largest_error_share", outcome.errors.largest_share, subject);
  record.measurement("whole_mismatches", static_cast<double>(outcome.whole_mismatches), subject);
  record.measurement("checksum_changes", static_cast<double>(outcome.changes), subject);
  if (outcome.efficiency) record.measurement("energy_efficiency", *outcome.efficiency, subject);
  record.condition("algorithm", outcome.choice.algorithm, subject);
  record.condition("algorithm_first", outcome.algorithm_first, subject);
  record.condition("algorithms_timed", static_cast<std::int64_t>(outcome.algorithms), subject);
  record.condition("algorithms_refused", static_cast<std::int64_t>(outcome.refused), subject);
  record.condition("operand_sets", static_cast<std::int64_t>(outcome.sets), subject);
  record.condition("operand_bytes", static_cast<std::int64_t>(outcome.operands.count), subject);
  record.condition("products_per_batch", static_cast<std::int64_t>(outcome.products), subject);
  if (!outcome.choice.tried.empty()) record.condition("trial_rates", words(outcome.choice.tried), subject);
  if (outcome.choice.margin) record.condition("choice_margin", *outcome.choice.margin, subject);
  if (outcome.chosen.counted) record.condition("sm_clock_counted_hz", outcome.chosen.counted->clock_hz, subject);
  record.condition("elements_checked", outcome.checked, subject);
  record_detection(record, shape, outcome, subject);
  if (outcome.energy_window_s) record.condition("energy_window_s", *outcome.energy_window_s, subject);
  record_device(record, device);
  outcome.watch->record(record, subject);
}

const char* result_type(Format format) {
  switch (format) {
    case Format::bf16:
      return "bf16";
    case Format::fp16:
      return "fp16";
    case Format::fp64:
      return "fp64";
    case Format::int32:
      return "int32";
    default:
      return "fp32";
  }
}

void measure(const Parameters& given, Recorder& record) {
  const GemmPlan plan = read_plan(given);
  const auto devices = chosen_devices(given);
  for (const auto& device : devices) require_type(device, plan.type);
  const CublasLt library(given.text("library_path"));
  std::vector<GemmOutcome> outcomes(devices.size());
  TrialBoard board(devices.size(), given.text("schedule") == "together");
  for_each_device(devices, given.text("schedule"), [&](const Device& device, Barrier& barrier) {
    const auto place = static_cast<std::size_t>(&device - devices.data());
    outcomes[place] = measure_device(device, place, barrier, board, library, plan);
  });
  for (std::size_t i = 0; i < devices.size(); ++i) record_outcome(record, devices[i], plan.shape, outcomes[i]);
  record.condition("layout", std::string("TN"));
  record.condition("data", given.text("data"));
  record.condition("seed", static_cast<std::int64_t>(plan.seed));
  record.condition("result_type", std::string(result_type(plan.type.d)));
  if (plan.type.scaling == Scaling::tensor) record.condition("fast_accumulation", plan.fast_accumulation);
  record.condition("emulated", false);
  record.condition("library_version", library.version());
  record.condition("library_path", library.path());
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::cuda::kSpec, assay::cuda::measure); }
