// cuda_gemm: sustained rate of a GPU on dense matrix products, by cuBLASLt.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/cuda/device_record.h"
#include "probes/cuda/gemm_bench.h"
#include "probes/nvml/gpu_watch.h"

namespace assay::cuda {
namespace {

// Events resolve half a microsecond in a window of 100 ms or more.
constexpr double kInstrument = 1e-5;
// The energy counter moves every 20 to 100 ms in a window of seconds; inferred, NVIDIA states no accuracy.
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
     .meaning = "what the operands hold; constant: ones, which overstate the rate",
     .choices = "gaussian constant"},
    {.name = "fast_accumulation",
     .unit = "1",
     .fallback = "0",
     .meaning = "1 lets FP8 products accumulate with less precision"},
    {.name = "load_least",
     .unit = "s",
     .fallback = "0s",
     .quick = "0s",
     .meaning = "throughput is measured for this long at least, whatever max_samples and time_limit say"},
    {.name = "library_path",
     .unit = "",
     .fallback = "",
     .meaning = "folders with libcublasLt, separated by colons, searched before the usual ones"},
};
constexpr Metric kMetrics[] = {
    {.name = "throughput",
     .unit = "FLOP/s",
     .better = Better::higher,
     .meaning = "2 m n k for each product over the time of a sample, with the algorithm that was fastest in trials",
     .instrument = kInstrument},
    {.name = "throughput_first",
     .unit = "FLOP/s",
     .better = Better::higher,
     .meaning = "the same with the algorithm that the library ranks first, which applications get, measured after it "
                "without load_least and warmup_least: on a GPU as warm as the longer measurement has left it",
     .instrument = kInstrument},
    {.name = "throughput_best",
     .unit = "FLOP/s",
     .better = Better::higher,
     .meaning = "the fastest single sample of throughput, warm-up included",
     .instrument = kInstrument},
    {.name = "mismatches",
     .unit = "1",
     .better = Better::lower,
     .meaning = "sampled elements outside the tolerance of the FP64 reference, of both algorithms",
     .kind = MetricKind::fault},
    {.name = "whole_mismatches",
     .unit = "1",
     .better = Better::lower,
     .meaning =
         "lines of a whole result of small whole numbers that are not exact in every element, of both algorithms",
     .kind = MetricKind::fault},
    {.name = "checksum_changes",
     .unit = "1",
     .better = Better::lower,
     .meaning = "results that differ in any bit from the first of the same operands and algorithm",
     .kind = MetricKind::fault},
    {.name = "energy_efficiency",
     .unit = "FLOP/J",
     .better = Better::higher,
     .meaning = "mean rate over mean power while throughput is measured, where NVML has an energy counter",
     .instrument = kEnergyInstrument,
     .recorded = Recorded::if_present},
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "layout", .meaning = "How A and B are stored: TN is A transposed, B not, all column-major."},
    {.name = "data", .meaning = "What the operands hold."},
    {.name = "result_type", .meaning = "Element type of the result."},
    {.name = "fast_accumulation",
     .meaning = "Whether products may accumulate with less precision, where the type is fp8_e4m3 or fp8_e5m2.",
     .recorded = Recorded::if_asked},
    {.name = "emulated", .meaning = "Whether algorithms that emulate the type by narrower ones were allowed."},
    {.name = "library_version", .meaning = "Version of cuBLASLt."},
    {.name = "library_path", .meaning = "File of cuBLASLt."},
    {.name = "algorithm", .meaning = "The fastest algorithm, in the library's numbers."},
    {.name = "algorithm_first", .meaning = "The first of the library's ranking that it runs, in the same numbers."},
    {.name = "algorithms_refused", .meaning = "Algorithms that the library proposed and then did not run."},
    {.name = "algorithms_timed", .meaning = "Algorithms that the library proposed and the trials timed."},
    {.name = "operand_sets", .meaning = "Sets of matrices used in turn."},
    {.name = "operand_bytes", .meaning = "Size of all sets together, in B."},
    {.name = "products_per_sample", .meaning = "Products in one sample of throughput."},
    {.name = "elements_checked", .meaning = "Elements that were compared with the reference, of both algorithms."},
    {.name = "energy_window_s",
     .meaning = "Time over which energy was counted, in s, where NVML has an energy counter.",
     .recorded = Recorded::if_present},
};
constexpr auto kConditions = join_conditions(kOwnConditions, kDeviceConditions, nvml::kGpuWatchConditions);
constexpr ProbeSpec kSpec{
    .name = "cuda_gemm",
    .revision = 3,
    .sampled = true,
    .measures = "Sustained rate of an NVIDIA GPU on dense matrix products of one element type.",
    .method =
        "D = op(A) op(B) with A stored transposed (TN), by cuBLASLt with a workspace of 32 MiB. A and B hold standard "
        "normal numbers rounded to the type on the GPU; mxfp8 and nvfp4 carry a scale for each block of 32 or 16 "
        "elements, FP8 one device scale for each matrix. Sets of operands that together pass twice the second-level "
        "cache are used in turn. Every algorithm that the library's heuristic returns is timed after a second of "
        "warm-up; those near the fastest three times in turn; the fastest and the library's first choice are then "
        "measured alike, once where they are the same. A sample is a CUDA graph of products that last at least 100 "
        "ms, between two events, with the next one already in the queue. 2 m n k FLOPs are counted for each product, "
        "integer operations alike. FP64 and FP32 are never emulated by narrower types. After each sample the results "
        "of all sets are summed to 64 bits on the GPU and compared with the first ones; at the end 4096 elements of "
        "up to 8 sets, one in every tile of a 64 by 64 grid, are recomputed on the host from the operands as the GPU "
        "stores them, in FP64 or wider, and compared within the accumulator's precision (FP8: 14 bits) and, of "
        "algorithms that split k, that of the partial sums they store. Last, both algorithms multiply operands of -1, "
        "0 "
        "and 1, whose results are exact in every type, and every line of the whole result is compared with A (B x) "
        "for random weights x, modulo 2^64 (Freivalds 1979). Energy is the difference of the GPU's counter.",
    .source =
        "cuBLAS manual (cublasLtMatmul, block scaling layouts); OCP Microscaling 1.0; FP8 accumulation: arXiv "
        "2412.19437, section 3.3.2.",
    .needs = "NVIDIA driver for CUDA 13, libcublasLt 13",
    .typical = {60},
    .deadline = {1800},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

/// What one device gave.
struct Outcome {
  Sampling throughput, first;
  std::uint64_t mismatches = 0, changes = 0, whole_mismatches = 0;
  std::int64_t checked = 0;
  std::size_t products = 0, algorithms = 0, refused = 0, sets = 0;
  Bytes operands;
  std::string algorithm, algorithm_first;
  std::optional<double> efficiency, energy_window_s;
  std::optional<nvml::GpuWatch> watch;
};

struct Plan {
  const GemmType& type;
  GemmShape shape;
  Pattern pattern;
  bool fast_accumulation;
  SamplingPlan sampling;        ///< of throughput
  SamplingPlan sampling_first;  ///< of throughput_first: without the long load
};

/// At least as many samples as last `load`, of at least GemmSeries::kSample each.
SamplingPlan with_load(SamplingPlan plan, Seconds load) {
  const auto samples = static_cast<std::size_t>(std::ceil(load.count / GemmSeries::kSample.count));
  plan.min_samples = std::max(plan.min_samples, samples);
  return plan;
}

SamplingPlan without_warmup_least(SamplingPlan plan) {
  plan.warmup_least = {0};
  return plan;
}

Plan read_plan(const Parameters& given) {
  const auto size = [&](const char* name) { return static_cast<std::size_t>(given.count(name)); };
  Plan plan{.type = gemm_type(given.text("type")),
            .shape = {.m = size("m"), .n = size("n"), .k = size("k")},
            .pattern = given.text("data") == "gaussian" ? Pattern::gaussian : Pattern::constant,
            .fast_accumulation = given.count("fast_accumulation") != 0,
            .sampling = with_load(sampling_plan(given), given.seconds("load_least")),
            .sampling_first = without_warmup_least(sampling_plan(given))};
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

/// Measures one candidate; with `watch`, what the GPU does meanwhile. The load runs before the watch begins and until
/// after it ends, so that its mean power is that of the load. The watch's questions may take longer than what is in the
/// queue, so another sample is taken before the mean rate begins.
Sampling measure_candidate(GemmSeries& series, const SamplingPlan& plan, nvml::GpuWatch* watch) {
  series.next();
  if (watch != nullptr) {
    watch->start();
    series.next();
  }
  series.restart_mean();
  Sampling result = sample(plan, [&] { return series.next(); });
  if (watch != nullptr) watch->stop();
  series.drain();
  return result;
}

std::uint64_t wrong(const std::vector<SampledProduct>& samples, const GemmType& type, std::size_t parts,
                    std::int64_t& checked) {
  std::uint64_t count = 0;
  for (const auto& product : samples) {
    count += wrong_elements(product, type.exactness, parts);
    checked += static_cast<std::int64_t>(product.d.size());
  }
  return count;
}

Outcome measure_device(const Device& device, Barrier& barrier, const CublasLt& library, const Plan& plan) {
  GemmBench bench(device, library, plan.type, plan.shape, plan.pattern, plan.fast_accumulation);
  Outcome outcome;
  outcome.watch.emplace(device.pci_bus_id);
  const std::size_t best = bench.try_all();
  barrier.wait_for_all();
  GemmSeries series(bench, best);
  outcome.throughput = measure_candidate(series, plan.sampling, &*outcome.watch);
  outcome.changes = series.changes();
  const auto energy_j = outcome.watch->energy_j(), window_s = outcome.watch->window_s();
  if (energy_j && window_s && *energy_j > 0) {
    outcome.efficiency = series.mean_rate() / (*energy_j / *window_s);
    outcome.energy_window_s = window_s;
  }
  const auto samples = take_samples(bench);
  std::vector<SampledProduct> samples_first;
  outcome.first = outcome.throughput;
  if (best != 0) {
    GemmSeries series_first(bench, 0);
    outcome.first = measure_candidate(series_first, plan.sampling_first, nullptr);
    outcome.changes += series_first.changes();
    samples_first = take_samples(bench);
  }
  barrier.finish();
  while (!barrier.all_finished()) series.next();  // company for those that are still measured
  series.drain();
  outcome.whole_mismatches = bench.wrong_whole_lines(best);
  if (best != 0) outcome.whole_mismatches += bench.wrong_whole_lines(0);
  outcome.mismatches = wrong(samples, plan.type, bench.stored_parts(best), outcome.checked) +
                       wrong(samples_first, plan.type, bench.stored_parts(0), outcome.checked);
  outcome.products = series.products();
  outcome.algorithms = bench.candidates().size();
  outcome.refused = bench.refused();
  outcome.sets = bench.operands().sets();
  outcome.operands = bench.operands().size();
  outcome.algorithm = bench.text(best);
  outcome.algorithm_first = bench.text(0);
  return outcome;
}

void record_outcome(Recorder& record, const Device& device, const Outcome& outcome) {
  const Subject subject = device.subject();
  record.measurement("throughput", outcome.throughput, subject);
  record.measurement("throughput_first", outcome.first, subject);
  double fastest_sample = 0;
  for (const auto* values : {&outcome.throughput.warmup, &outcome.throughput.samples}) {
    for (const double value : *values) fastest_sample = std::max(fastest_sample, value);
  }
  record.measurement("throughput_best", fastest_sample, subject);
  record.measurement("mismatches", static_cast<double>(outcome.mismatches), subject);
  record.measurement("whole_mismatches", static_cast<double>(outcome.whole_mismatches), subject);
  record.measurement("checksum_changes", static_cast<double>(outcome.changes), subject);
  if (outcome.efficiency) record.measurement("energy_efficiency", *outcome.efficiency, subject);
  record.condition("algorithm", outcome.algorithm, subject);
  record.condition("algorithm_first", outcome.algorithm_first, subject);
  record.condition("algorithms_timed", static_cast<std::int64_t>(outcome.algorithms), subject);
  record.condition("algorithms_refused", static_cast<std::int64_t>(outcome.refused), subject);
  record.condition("operand_sets", static_cast<std::int64_t>(outcome.sets), subject);
  record.condition("operand_bytes", static_cast<std::int64_t>(outcome.operands.count), subject);
  record.condition("products_per_sample", static_cast<std::int64_t>(outcome.products), subject);
  record.condition("elements_checked", outcome.checked, subject);
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
  const Plan plan = read_plan(given);
  const auto devices = chosen_devices(given);
  for (const auto& device : devices) require_type(device, plan.type);
  const CublasLt library(given.text("library_path"));
  std::vector<Outcome> outcomes(devices.size());
  for_each_device(devices, given.text("schedule"), [&](const Device& device, Barrier& barrier) {
    outcomes[static_cast<std::size_t>(&device - devices.data())] = measure_device(device, barrier, library, plan);
  });
  for (std::size_t i = 0; i < devices.size(); ++i) record_outcome(record, devices[i], outcomes[i]);
  record.condition("layout", std::string("TN"));
  record.condition("data", given.text("data"));
  record.condition("result_type", std::string(result_type(plan.type.d)));
  if (plan.type.scaling == Scaling::tensor) record.condition("fast_accumulation", plan.fast_accumulation);
  record.condition("emulated", false);
  record.condition("library_version", library.version());
  record.condition("library_path", library.path());
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::cuda::kSpec, assay::cuda::measure); }
