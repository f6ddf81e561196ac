// gemm_bench: trials, series, samples of results.
#include "probes/cuda/gemm_bench.h"

#include <algorithm>
#include <optional>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/statistics.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kMostAlgorithms = 64;  // more than the heuristic returns for one product
constexpr Seconds kWarmUp = {1};             // the clock's governor answers a load within some hundred milliseconds
constexpr Seconds kTrial = {0.02};           // long against the few microseconds of a graph's launch
constexpr std::size_t kTrials = 3;           // the fewest with a median that one disturbance cannot move
constexpr double kNear = 1.3;                // clocks sag by less than this between the first trial and the last
constexpr std::size_t kCheckedSets = 8;      // 4096 elements each; with k = 8192 about a tenth of a second a set

}  // namespace

GemmBench::GemmBench(const Device& device, const CublasLt& library, const GemmType& type, const GemmShape& shape,
                     Pattern pattern, bool fast_accumulation)
    : shape_(shape),
      stream_(make_stream()),
      begin_(make_event()),
      end_(make_event()),
      operands_(device, type, shape, pattern),
      matmul_(library, type, shape, fast_accumulation) {
  for (const auto& algorithm : matmul_.algorithms(operands_.set(0), kMostAlgorithms)) {
    candidates_.push_back({.algorithm = algorithm, .times_s = {}});
  }
  if (candidates_.empty()) {
    throw Skip(
        fmt::format("cuBLASLt {} has no algorithm for type {} with m {}, n {}, k {} on {} ({}, compute capability {})",
                    library.version(), type.name, shape.m, shape.n, shape.k, device.uuid, device.name,
                    device.compute_capability()));
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
  operands_.make_whole(stream_);
  matmul_.enqueue(candidates_[candidate].algorithm, operands_.set(0), stream_);
  return operands_.wrong_whole_lines(stream_);
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

std::size_t GemmBench::try_all() {
  const std::size_t sets = operands_.sets();
  enqueue_turns(0, sets);  // the first call loads the kernel
  const Graph favourite = graph(0, sets);
  for (double warm_s = 0; warm_s < kWarmUp.count;) warm_s += time_of(favourite, 1);

  double least_s = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    enqueue_turns(i, sets);
    wait(stream_);
    const double product_s = time_of(graph(i, sets), 1) / static_cast<double>(sets);
    candidates_[i].times_s = {product_s};
    least_s = i == 0 ? product_s : std::min(least_s, product_s);
  }
  const SamplePlan plan = plan_sample({least_s}, sets, kTrial);
  std::vector<std::pair<std::size_t, Graph>> near;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].times_s.front() <= kNear * least_s) near.emplace_back(i, graph(i, plan.products));
  }
  for (const auto& [index, unused] : near) candidates_[index].times_s.clear();
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    for (const auto& [index, recorded] : near) {
      candidates_[index].times_s.push_back(time_of(recorded, plan.launches) /
                                           static_cast<double>(plan.products * plan.launches));
    }
  }
  std::vector<std::vector<double>> times;
  times.reserve(candidates_.size());
  for (const auto& candidate : candidates_) times.push_back(candidate.times_s);
  return fastest(times);
}

Seconds GemmBench::product_time(std::size_t candidate) const { return {median(candidates_[candidate].times_s)}; }

GemmSeries::GemmSeries(GemmBench& bench, std::size_t candidate)
    : bench_(bench),
      plan_(plan_sample(bench.product_time(candidate), bench.operands().sets(), kSample)),
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
  check(cudaMemcpyAsync(slot.copied.data(), slot.sums.data(), slot.sums.size().count, cudaMemcpyDeviceToHost,
                        stream.get()),
        "copying the sums of results");
  mark(slot.summed, stream);
}

double GemmSeries::next() {
  Slot& slot = slots_[turn_];
  Slot& other = slots_[1 - turn_];
  if (!queued_) enqueue(slot);
  enqueue(other);
  queued_ = true;
  turn_ = 1 - turn_;
  const double time_s = elapsed(slot.begin, slot.end).count;
  look_at_sums(slot);
  const double flop = bench_.shape().flop() * static_cast<double>(products());
  counted_flop_ += flop;
  counted_s_ += elapsed(slot.begin, other.begin).count;
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

std::vector<SampledProduct> take_samples(const GemmBench& bench) {
  std::vector<SampledProduct> samples;
  const std::size_t sets = std::min(bench.operands().sets(), kCheckedSets);
  samples.reserve(sets);
  for (std::size_t index = 0; index < sets; ++index) samples.push_back(bench.operands().sample(index));
  return samples;
}

}  // namespace assay::cuda
