// gemm_bench: trials, series, samples of results.
#include "probes/cuda/gemm_bench.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kMostAlgorithms = 64;  // more than the heuristic returns for one product
constexpr Seconds kTrialWarmUp = {1};        // the clock's governor answers a load within some hundred milliseconds
constexpr Seconds kShortTrial = {0.02};      // long against the few microseconds of a graph's launch
constexpr Seconds kSettle = {0.4};           // the transient after a change of load is over (docs/MEASUREMENTS.md)
constexpr std::size_t kCheckedSets = 8;      // 4096 elements each; with k = 8192 about a tenth of a second a set

}  // namespace

GemmBench::GemmBench(const Device& device, const GemmLibrary& library, const GemmType& type, const GemmShape& shape,
                     Pattern pattern, bool fast_accumulation, std::uint64_t seed)
    : shape_(shape),
      stream_(make_stream()),
      begin_(make_event()),
      end_(make_event()),
      operands_(device, type, shape, pattern, seed),
      matmul_(library, type, shape, fast_accumulation) {
  for (const auto& algorithm : matmul_.algorithms(operands_.set(0), kMostAlgorithms)) {
    candidates_.push_back({.algorithm = algorithm});
  }
  if (candidates_.empty()) {
    throw Skip(fmt::format("{} {} has no algorithm for type {} with m {}, n {}, k {} on {} ({}, compute capability {})",
                           GemmLibrary::kTitle, library.version(), type.name, shape.m, shape.n, shape.k, device.uuid,
                           device.name, device.compute_capability()));
  }
  drop_refused();
}

void GemmBench::drop_refused() {
  std::optional<AlgorithmRefused> first;
  refused_ = std::erase_if(candidates_, [&](const Candidate& candidate) {
    try {
      matmul_.enqueue(candidate.algorithm, operands_.set(0), stream_);
      return false;
    } catch (const AlgorithmRefused& refusal) {
      if (!first) first = refusal;
      return true;
    }
  });
  wait(stream_);
  if (candidates_.empty()) throw *first;
}

void GemmBench::enqueue_turns(std::size_t candidate, std::size_t products) {
  for (std::size_t i = 0; i < products; ++i) {
    matmul_.enqueue(candidates_[candidate].algorithm, operands_.set(i % operands_.sets()), stream_);
  }
}

std::uint64_t GemmBench::wrong_whole_lines(std::size_t candidate) {
  std::uint64_t wrong = 0;
  for (const WholeForm form : kWholeForms) {
    operands_.make_whole(stream_, form);
    matmul_.enqueue(candidates_[candidate].algorithm, operands_.set(0), stream_);
    wrong += operands_.wrong_whole_lines(stream_, form);
  }
  return wrong;
}

Graph GemmBench::graph(std::size_t candidate, std::size_t products) {
  return capture(stream_, [&] { enqueue_turns(candidate, products); });
}

double GemmBench::time_of(const Graph& graph, std::size_t launches) {
  mark(begin_, stream_);
  for (std::size_t i = 0; i < launches; ++i) launch(graph, stream_);
  mark(end_, stream_);
  return elapsed(begin_, end_).count;
}

AlgorithmRates GemmBench::time_all() {
  const std::size_t sets = operands_.sets();
  enqueue_turns(0, sets);  // the first call loads the kernel
  const Graph favourite = graph(0, sets);
  for (double warm_s = 0; warm_s < kTrialWarmUp.count;) warm_s += time_of(favourite, 1);
  AlgorithmRates rates;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    enqueue_turns(i, sets);
    wait(stream_);
    const SamplePlan plan = plan_sample({time_of(graph(i, sets), 1) / static_cast<double>(sets)}, sets, kShortTrial);
    candidates_[i].product = {time_of(graph(i, plan.products), plan.launches) /
                              static_cast<double>(plan.products * plan.launches)};
    rates.push_back({.algorithm = text(i), .rate = shape_.flop() / candidates_[i].product.count});
  }
  return rates;
}

std::optional<std::size_t> GemmBench::place_of(const std::string& algorithm) const {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (text(i) == algorithm) return i;
  }
  return std::nullopt;
}

GemmSeries::GemmSeries(GemmBench& bench, std::size_t candidate)
    : bench_(bench),
      plan_(plan_sample(bench.product_time(candidate), bench.operands().sets(), kBatch)),
      graph_(bench.graph(candidate, plan_.products)) {
  const Bytes sums = {bench.operands().sets() * sizeof(std::uint64_t)};
  for (auto& slot : slots_) {
    slot = {.begin = make_event(),
            .end = make_event(),
            .summed = make_event(),
            .sums = DeviceBuffer(sums),
            .copied = PinnedBuffer(sums)};
  }
  bench.operands().clear_results(bench.stream());
}

void GemmSeries::enqueue(Slot& slot) {
  const Stream& stream = bench_.stream();
  mark(slot.begin, stream);
  for (std::size_t i = 0; i < plan_.launches; ++i) launch(graph_, stream);
  mark(slot.end, stream);
  bench_.operands().sum_results(stream, slot.sums.as<std::uint64_t>());
  copy_down(slot.copied.data(), slot.sums.data(), slot.sums.size(), stream);
  mark(slot.summed, stream);
  enqueued_flop_ += bench_.shape().flop() * static_cast<double>(products());
}

double GemmSeries::rate_over(Seconds least) {
  double flop = 0, time_s = 0;
  do {
    Slot& slot = slots_[turn_];
    Slot& other = slots_[1 - turn_];
    if (!queued_) enqueue(slot);
    enqueue(other);
    queued_ = true;
    turn_ = 1 - turn_;
    time_s += elapsed(slot.begin, slot.end).count;
    look_at_sums(slot);
    flop += bench_.shape().flop() * static_cast<double>(products());
    counted_flop_ += bench_.shape().flop() * static_cast<double>(products());
    counted_s_ += elapsed(slot.begin, other.begin).count;
  } while (time_s < least.count);
  return flop / time_s;
}

void GemmSeries::drain() {
  if (!queued_) return;
  queued_ = false;
  look_at_sums(slots_[turn_]);
}

void GemmSeries::look_at_sums(const Slot& slot) {
  wait(slot.summed);
  const std::span<const std::uint64_t> sums(slot.copied.as<std::uint64_t>(), bench_.operands().sets());
  if (first_sums_.empty()) first_sums_.assign(sums.begin(), sums.end());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] != first_sums_[i]) ++changes_;
  }
}

void GemmSeries::restart_mean() { counted_flop_ = counted_s_ = 0; }

AlgorithmRates rates_under_load(GemmBench& bench, const std::vector<std::string>& algorithms, Seconds each,
                                std::uint64_t& changes) {
  AlgorithmRates rates;
  if (algorithms.size() < 2) return rates;
  std::vector<GemmSeries> series;
  series.reserve(algorithms.size());
  for (const std::string& algorithm : algorithms) {
    series.emplace_back(bench, bench.place_of(algorithm).value());
    rates.push_back({.algorithm = algorithm, .rate = 0});
  }
  for (std::size_t turn = 0; turn < 2 * series.size(); ++turn) {
    const std::size_t i = turn < series.size() ? turn : 2 * series.size() - 1 - turn;
    (void)series[i].rate_over(kSettle);
    rates[i].rate += series[i].rate_over(each) / 2;
  }
  for (GemmSeries& one : series) {
    one.drain();
    changes += one.changes();
  }
  return rates;
}

std::vector<SampledProduct> take_samples(const GemmBench& bench) {
  std::vector<SampledProduct> samples;
  const std::size_t sets = std::min(bench.operands().sets(), kCheckedSets);
  samples.reserve(sets);
  for (std::size_t index = 0; index < sets; ++index) samples.push_back(bench.operands().sample(index));
  return samples;
}

}  // namespace assay::cuda
