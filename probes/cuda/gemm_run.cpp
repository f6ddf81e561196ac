// gemm_run: the choice under load, both measurements, and the references of their results.
#include "probes/cuda/gemm_run.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace assay::cuda {
namespace {

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

}  // namespace

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

}  // namespace assay::cuda
