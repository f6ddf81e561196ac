// conductor: the leader of rank 0 asks all ranks, size by size, and records. Independent of the library.
#include "probes/collective/conductor.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/operation.h"
#include "probes/core/recorder.h"

namespace assay::collective {
namespace {

using nlohmann::json;

/// The steps of one run and their common state.
class Conductor {
 public:
  Conductor(Fleet& fleet, const Parameters& given, const LibraryRules& rules, Recorder& record)
      : fleet_(fleet),
        given_(given),
        rules_(rules),
        record_(record),
        operation_(operation_named(given.text("operation"))),
        element_(element_named(given.text("type"))),
        ranks_(static_cast<int>(fleet.ranks())) {
    if (fleet.nodes().size() > 1) subject_ = {.kind = "group", .id = fmt::format("{}", fmt::join(fleet.nodes(), ","))};
  }

  void run(const std::vector<Bytes>& sizes) {
    const FittingSizes fitting = gather_ranks(sizes);
    record_.condition("sizes_left_out", left_out(fitting));
    if (fitting.kept.empty())
      throw std::runtime_error(fmt::format("sizes: none of them fits {} ranks ({})", ranks_, left_out(fitting)));
    for (const Bytes size : fitting.kept) measure_size(size);
    rules_.finished(ask({{"do", "facts"}}, kHelloLimit));
  }

 private:
  std::vector<json> ask(const json& request, Seconds limit) {
    return fleet_.ask(request, {limit.count + kGrace.count});
  }

  /// Brings all ranks into one communicator with buffers for the sizes that fit.
  FittingSizes gather_ranks(const std::vector<Bytes>& sizes) {
    const Bytes memory = rules_.admit(ask({{"do", "hello"}}, kHelloLimit));
    const auto fitting = fit_sizes(sizes, operation_, element_, ranks_, memory);
    std::size_t source = 0, target = 0;
    for (const Bytes size : fitting.kept) {
      const Shape shape = shape_of(operation_, size.count, size_of(element_), ranks_);
      source = std::max(source, shape.sent * size_of(element_));
      target = std::max(target, shape.received * size_of(element_));
    }
    if (fitting.kept.empty()) return fitting;
    json words = json::array();
    for (auto& answer : ask({{"do", "introduce"}}, kHelloLimit)) words.push_back(std::move(answer.at("word")));
    const auto entered = ask({{"do", "enter"}, {"words", words}}, kEnterLimit);
    if (rules_.entered) rules_.entered(entered);
    (void)ask({{"do", "allocate"}, {"sent", source}, {"received", target}}, kHelloLimit);  // an error has been thrown
    return fitting;
  }

  void measure_size(Bytes size) {
    const Values at{{"size", static_cast<std::int64_t>(size.count)}};
    double mismatches = check(size);
    const auto times = sample_batches(sampling_plan(given_), [&](Batch batch) { return time(size, batch); });
    mismatches += check(size);
    const auto moved = static_cast<double>(shape_of(operation_, size.count, size_of(element_), ranks_).moved);
    record_.measurement(rules_.prefix + "time", times, subject_, at);
    record_.measurement(rules_.prefix + "algbw", per_second(times, moved), subject_, at);
    const Sampling busbw = per_second(times, moved * busbw_factor(operation_, ranks_));
    record_.measurement(rules_.prefix + "busbw", busbw, subject_, at);
    record_.measurement("mismatches", mismatches, subject_, at);
    if (rules_.measured) rules_.measured(busbw, subject_, at);
  }

  double check(Bytes size) {
    double mismatches = 0;
    for (const auto& answer : ask({{"do", "check"}, {"size", size.count}, {"number", number_++}}, kBatchLimit)) {
      mismatches += answer.at("mismatches").get<double>();
    }
    return mismatches;
  }

  std::vector<double> time(Bytes size, Batch batch) {
    const json request = {
        {"do", "time"}, {"size", size.count}, {"lead", batch.lead}, {"counted", batch.counted}, {"number", number_}};
    number_ += static_cast<std::uint64_t>(batch.lead + batch.counted);
    std::vector<std::vector<double>> by_rank;
    for (const auto& answer : ask(request, kBatchLimit)) {
      by_rank.push_back(answer.at("times").get<std::vector<double>>());
    }
    return slowest(by_rank);
  }

  Fleet& fleet_;
  const Parameters& given_;
  const LibraryRules& rules_;
  Recorder& record_;
  Operation operation_;
  Element element_;
  int ranks_;
  Subject subject_;
  std::uint64_t number_ = 0;
};

}  // namespace

Batch next_batch(std::optional<double> last_s) {
  constexpr std::int64_t kWarmUp = 5;  // as nccl-tests had it until 2.19
  constexpr std::int64_t kMost = 10;   // with three commands each, far from the thousand a stream holds
  constexpr double kWorth_s = 1;
  if (!last_s) return {.lead = kWarmUp, .counted = 1};
  const double count = std::clamp(kWorth_s / *last_s, 1.0, static_cast<double>(kMost));
  return {.lead = 1, .counted = static_cast<std::int64_t>(count)};
}

std::vector<double> slowest(const std::vector<std::vector<double>>& by_rank) {
  std::vector<double> longest;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const auto& times = by_rank[rank];
    if (rank == 0) longest.assign(times.size(), 0);
    if (times.size() != longest.size()) {
      throw std::runtime_error(
          fmt::format("rank {} measured {} iterations and rank 0 {}", rank, times.size(), longest.size()));
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (!std::isfinite(times[i]) || times[i] <= 0)
        throw std::runtime_error(fmt::format("rank {} measured {} s", rank, times[i]));
      longest[i] = std::max(longest[i], times[i]);
    }
  }
  return longest;
}

Sampling sample_batches(const SamplingPlan& plan, const std::function<std::vector<double>(Batch)>& run) {
  std::deque<double> left;
  std::optional<double> last_s;
  auto sampling = sample(plan, [&] {
    if (left.empty()) {
      const Batch batch = next_batch(last_s);
      const auto times = run(batch);
      if (times.size() != static_cast<std::size_t>(batch.counted)) {
        throw std::runtime_error(fmt::format("{} of {} iterations were measured", times.size(), batch.counted));
      }
      left.assign(times.begin(), times.end());
    }
    last_s = left.front();
    left.pop_front();
    return *last_s;
  });
  sampling.samples.insert(sampling.samples.end(), left.begin(), left.end());
  return sampling;
}

Sampling per_second(const Sampling& times, double amount) {
  Sampling rates = times;
  for (auto* values : {&rates.samples, &rates.warmup}) {
    for (double& value : *values) value = amount / value;
  }
  return rates;
}

void conduct(Fleet& fleet, const Parameters& given, const std::vector<Bytes>& sizes, const LibraryRules& rules,
             Recorder& record) {
  Conductor(fleet, given, rules, record).run(sizes);
}

}  // namespace assay::collective
