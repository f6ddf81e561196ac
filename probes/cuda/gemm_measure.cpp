// gemm_measure: reads the plan, measures every device, records what came of it.
#include "probes/cuda/gemm_measure.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/cuda/algorithm_choice.h"
#include "probes/cuda/detection.h"
#include "probes/cuda/gemm_bench.h"
#include "probes/cuda/sm_cycles.h"

namespace assay::cuda {
namespace {

/// Results of one algorithm on one device.
struct GemmFigures {
  Sampling throughput;
  std::optional<SmCycles::Counted> counted;
  double flop = 0;  ///< while cycles were counted
  double mean_rate = 0;
};

/// Results of one device.
struct GemmOutcome {
  GemmFigures chosen, first;
  ElementErrors errors;
  std::uint64_t changes = 0, whole_mismatches = 0;
  std::int64_t checked = 0;
  std::size_t products = 0, algorithms = 0, refused = 0, sets = 0;
  Bytes operands;
  AlgorithmChoice choice;
  std::string algorithm_first;
  FaultCounts faults;
  std::optional<double> efficiency, energy_window_s;
  std::optional<nvml::GpuWatch> watch;
};

struct GemmPlan {
  const GemmType* type;
  GemmShape shape;
  Pattern pattern;
  bool fast_accumulation;
  std::uint64_t seed;  ///< of operands and samples
  std::size_t trials;  ///< algorithms that are tried under load, at most
  Seconds sample_length;
  SamplingPlan sampling;        ///< of throughput
  SamplingPlan sampling_first;  ///< of throughput_first: without the long load
  nvml::GpuWatch (*watch)(const std::string& pci_bus_id);
};

constexpr Seconds kTrialTime = {0.8};   // of each algorithm, there and back: about one period of the power controller
constexpr Seconds kCloseTrial = {1.0};  // of those that are close, once more

/// The algorithm that all GPUs of this model take, tried under load.
AlgorithmChoice choose_algorithm(GemmBench& bench, const Device& device, std::size_t place, Barrier& barrier,
                                 TrialBoard& board, const GemmPlan& plan, std::uint64_t& changes) {
  const AlgorithmRates timed = bench.time_all();
  if (const auto earlier = board.earlier(device.name); earlier && bench.place_of(earlier->algorithm)) return *earlier;
  const auto names = shortlist(board.exchange(place, device.name, timed, barrier), plan.trials);
  AlgorithmRates rates = rates_under_load(bench, names, kTrialTime, changes);
  if (rates.empty()) rates = {{.algorithm = names.front(), .rate = 0}};
  const AlgorithmRates all = board.exchange(place, device.name, rates, barrier);
  const auto close = still_close(all);
  for (const auto& again : rates_under_load(bench, close, kCloseTrial, changes))
    std::ranges::find(rates, again.algorithm, &AlgorithmRate::algorithm)->rate = again.rate;
  AlgorithmChoice choice = choose(board.exchange(place, device.name, rates, barrier));
  if (names.size() < 2) choice.tried.clear();
  board.keep(device.name, choice);
  return choice;
}

/// Measures one candidate; with `watch`, the GPU's state meanwhile as well. The load runs before the watch begins and
/// until after it ends, so that its mean power is that of the load. The watch's questions may take longer than what is
/// in the queue, so another batch is taken before the mean rate begins.
GemmFigures measure_candidate(GemmSeries& series, const Device& device, const SamplingPlan& plan, Seconds sample_length,
                              nvml::GpuWatch* watch) {
  SmCycles cycles(device);
  (void)series.rate_over(GemmSeries::kBatch);
  if (watch != nullptr) {
    watch->start();
    (void)series.rate_over(GemmSeries::kBatch);
  }
  series.restart_mean();
  cycles.begin(series.stream());
  const double flop_before = series.enqueued_flop();
  GemmFigures result;
  result.throughput = sample(plan, [&] { return series.rate_over(sample_length); });
  if (watch != nullptr) watch->stop();
  cycles.end(series.stream());
  result.flop = series.enqueued_flop() - flop_before;
  series.drain();
  result.counted = cycles.counted();
  result.mean_rate = series.mean_rate();
  return result;
}

void check(const std::vector<SampledProduct>& samples, const GemmType& type, std::size_t parts, GemmOutcome& outcome) {
  for (const auto& product : samples) {
    const ElementErrors found = check_elements(product, type.exactness, parts);
    outcome.errors.wrong += found.wrong;
    outcome.errors.largest_share = std::max(outcome.errors.largest_share, found.largest_share);
    outcome.checked += static_cast<std::int64_t>(product.d.size());
  }
}

/// Measures `device`, which is current, as all GPUs of the run are; `place` is its place among them.
GemmOutcome measure_device(const Device& device, std::size_t place, Barrier& barrier, TrialBoard& board,
                           const GemmLibrary& library, const GemmPlan& plan) {
  using Clock = std::chrono::steady_clock;
  GemmBench bench(device, library, *plan.type, plan.shape, plan.pattern, plan.fast_accumulation, plan.seed);
  GemmOutcome outcome;
  outcome.watch.emplace(plan.watch(device.pci_bus_id));
  const auto begin = Clock::now();
  outcome.choice = choose_algorithm(bench, device, place, barrier, board, plan, outcome.changes);
  const std::size_t best = bench.place_of(outcome.choice.algorithm).value();
  barrier.wait_for_all();
  SamplingPlan sampling = plan.sampling;  // trials are a load, and so a part of the warm-up
  sampling.warmup_least.count -= std::chrono::duration<double>(Clock::now() - begin).count();
  GemmSeries series(bench, best);
  outcome.chosen = measure_candidate(series, device, sampling, plan.sample_length, &*outcome.watch);
  outcome.changes += series.changes();
  const auto energy_j = outcome.watch->energy_j(), window_s = outcome.watch->window_s();
  if (energy_j && window_s && *energy_j > 0) {
    outcome.efficiency = outcome.chosen.mean_rate / (*energy_j / *window_s);
    outcome.energy_window_s = window_s;
  }
  check(take_samples(bench), *plan.type, bench.stored_parts(best), outcome);
  outcome.first = outcome.chosen;
  if (best != 0) {
    GemmSeries series_first(bench, 0);
    outcome.first = measure_candidate(series_first, device, plan.sampling_first, plan.sample_length, nullptr);
    outcome.changes += series_first.changes();
    check(take_samples(bench), *plan.type, bench.stored_parts(0), outcome);
  }
  barrier.finish();
  while (!barrier.all_finished())
    (void)series.rate_over(GemmSeries::kBatch);  // company for those that are still measured
  series.drain();
  outcome.faults = bench.operands().put_faults(bench.stream());
  outcome.whole_mismatches = bench.wrong_whole_lines(best);
  if (best != 0) outcome.whole_mismatches += bench.wrong_whole_lines(0);
  outcome.products = series.products();
  outcome.algorithms = bench.candidates().size();
  outcome.refused = bench.refused();
  outcome.sets = bench.operands().sets();
  outcome.operands = bench.operands().size();
  outcome.algorithm_first = bench.text(0);
  return outcome;
}

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

GemmPlan read_plan(const Parameters& given, const GemmVendor& vendor) {
  const auto size = [&](const char* name) { return static_cast<std::size_t>(given.count(name)); };
  GemmPlan plan{.type = &gemm_type(given.text("type")),
                .shape = {.m = size("m"), .n = size("n"), .k = size("k")},
                .pattern = given.text("data") == "gaussian" ? Pattern::gaussian : Pattern::constant,
                .fast_accumulation = vendor.has_fast_accumulation && given.count("fast_accumulation") != 0,
                .seed = seed_of(given),
                .trials = trials_of(given),
                .sample_length = given.seconds("sample_length"),
                .sampling = sampling_plan(given),
                .sampling_first = sampling_plan(given),
                .watch = vendor.watch};
  if (plan.trials == 0) throw std::runtime_error("trials: give 1 or more");
  plan.sampling.load_least = given.seconds("load_least");
  plan.sampling_first.warmup_least = {0};
  if (const auto problem = shape_problem(*plan.type, plan.shape)) throw std::runtime_error(*problem);
  if (vendor.has_fast_accumulation && given.count("fast_accumulation") > 1)
    throw std::runtime_error("fast_accumulation: give 0 or 1");
  if (plan.fast_accumulation && plan.type->scaling != Scaling::tensor) {
    throw std::runtime_error(fmt::format(
        "fast_accumulation: type {} has no such choice; hint: fp8_e4m3 and fp8_e5m2 have", plan.type->name));
  }
  return plan;
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

void record_outcome(Recorder& record, const Device& device, const GemmShape& shape, const GemmOutcome& outcome,
                    const GemmVendor& vendor) {
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
  vendor.record_device(record, device);
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

}  // namespace

const GemmType& measure_gemm(const Parameters& given, const GemmVendor& vendor, Recorder& record) {
  GemmPlan plan = read_plan(given, vendor);
  const auto devices = chosen_devices(given);
  const GemmType& asked = *plan.type;
  for (const auto& device : devices) {
    plan.type = vendor.type_on(device, &asked);
    if (plan.type != vendor.type_on(devices.front(), &asked))
      throw Skip(fmt::format("type {}: the GPUs store it in two ways; hint: name one with device", asked.name));
  }
  const GemmLibrary library(given.text("library_path"));
  std::vector<GemmOutcome> outcomes(devices.size());
  TrialBoard board(devices.size(), given.text("schedule") == "together");
  for_each_index(devices.size(), given.text("schedule"), [&](std::size_t place, Barrier& barrier) {
    use(devices[place]);
    outcomes[place] = measure_device(devices[place], place, barrier, board, library, plan);
  });
  for (std::size_t i = 0; i < devices.size(); ++i) record_outcome(record, devices[i], plan.shape, outcomes[i], vendor);
  record.condition("layout", std::string("TN"));
  record.condition("data", given.text("data"));
  record.condition("seed", static_cast<std::int64_t>(plan.seed));
  record.condition("result_type", std::string(result_type(plan.type->d)));
  record.condition("library_version", library.version());
  record.condition("library_path", library.path());
  return *plan.type;
}

}  // namespace assay::cuda
