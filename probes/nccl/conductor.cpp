// conductor: what the leader of rank 0 does. It asks all ranks, size by size, and records. No CUDA, no NCCL.
#include "probes/nccl/conductor.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/recorder.h"
#include "probes/nccl/batches.h"
#include "probes/nccl/fleet.h"
#include "probes/nccl/limits.h"
#include "probes/nccl/outcome.h"
#include "probes/nccl/sizes.h"

namespace assay {
namespace {

using nlohmann::json;

/// The steps of one run and what they share.
class Conductor {
 public:
  Conductor(Fleet& fleet, const Parameters& given, Recorder& record)
      : fleet_(fleet), given_(given), record_(record), operation_(operation_named(given.text("operation"))),
        element_(element_named(given.text("type"))), ranks_(static_cast<int>(fleet.ranks())) {
    if (fleet.nodes().size() > 1) subject_ = {.kind = "group", .id = fmt::format("{}", fmt::join(fleet.nodes(), ","))};
  }

  void run(const std::vector<Bytes>& sizes) {
    const FittingSizes fitting = gather_ranks(sizes);
    record_.condition("sizes_left_out", left_out(fitting));
    if (fitting.kept.empty()) throw std::runtime_error(fmt::format("sizes: none of them fits {} ranks ({})", ranks_, left_out(fitting)));
    for (const Bytes size : fitting.kept) measure_size(size);
    record_.condition("launch_excluded", launch_excluded_);
    record_facts(record_, ask({{"do", "facts"}}, kHelloLimit));
  }

 private:
  std::vector<json> ask(const json& request, Seconds limit) { return fleet_.ask(request, {limit.count + kGrace.count}); }

  /// Brings all ranks into one communicator with buffers for the sizes that fit.
  FittingSizes gather_ranks(const std::vector<Bytes>& sizes) {
    Bytes least{UINT64_MAX};
    const auto hellos = ask({{"do", "hello"}}, kHelloLimit);
    for (const auto& hello : hellos) {
      least = std::min(least, Bytes{hello.at("free").get<std::uint64_t>()});
      if (hello.at("version") != hellos.front().at("version")) {
        throw std::runtime_error(fmt::format("NCCL {} and {} on different nodes; install the same version on all",
                                             hellos.front().at("version").get<std::string>(), hello.at("version").get<std::string>()));
      }
    }
    const auto fitting = fit_sizes(sizes, operation_, element_, ranks_, memory_for_buffers(least));
    std::size_t source = 0, target = 0;
    for (const Bytes size : fitting.kept) {
      const Shape shape = shape_of(operation_, size.count, size_of(element_), ranks_);
      source = std::max(source, shape.sent * size_of(element_));
      target = std::max(target, shape.received * size_of(element_));
    }
    if (fitting.kept.empty()) return fitting;
    const auto id = ask({{"do", "id"}}, kHelloLimit).front().at("id");
    ask({{"do", "enter"}, {"id", id}}, kEnterLimit);
    const auto buffers = ask({{"do", "allocate"}, {"sent", source}, {"received", target}}, kHelloLimit);
    record_.condition("buffers", buffers.front().at("source").get<std::string>());
    return fitting;
  }

  void measure_size(Bytes size) {
    const Values at{{"size", static_cast<std::int64_t>(size.count)}};
    double mismatches = check(size);
    const auto times = sample_batches(sampling_plan(given_), [&](Batch batch) { return time(size, batch); });
    mismatches += check(size);
    const auto moved = static_cast<double>(shape_of(operation_, size.count, size_of(element_), ranks_).moved);
    record_.measurement("time", times, subject_, at);
    record_.measurement("algbw", per_second(times, moved), subject_, at);
    record_.measurement("busbw", per_second(times, moved * busbw_factor(operation_, ranks_)), subject_, at);
    record_.measurement("mismatches", mismatches, subject_, at);
  }

  double check(Bytes size) {
    double mismatches = 0;
    for (const auto& answer : ask({{"do", "check"}, {"size", size.count}, {"number", number_++}}, kBatchLimit)) {
      mismatches += answer.at("mismatches").get<double>();
    }
    return mismatches;
  }

  std::vector<double> time(Bytes size, Batch batch) {
    const json request = {{"do", "time"}, {"size", size.count}, {"lead", batch.lead}, {"counted", batch.counted}, {"number", number_}};
    number_ += static_cast<std::uint64_t>(batch.lead + batch.counted);
    std::vector<std::vector<double>> by_rank;
    for (const auto& answer : ask(request, kBatchLimit)) {
      by_rank.push_back(answer.at("times").get<std::vector<double>>());
      launch_excluded_ = launch_excluded_ && answer.at("launch_excluded").get<bool>();
    }
    return slowest(by_rank);
  }

  Fleet& fleet_;
  const Parameters& given_;
  Recorder& record_;
  Operation operation_;
  Element element_;
  int ranks_;
  Subject subject_;
  std::uint64_t number_ = 0;
  bool launch_excluded_ = true;
};

}  // namespace

void conduct(Fleet& fleet, const Parameters& given, const std::vector<Bytes>& sizes, Recorder& record) {
  Conductor(fleet, given, record).run(sizes);
}

}  // namespace assay
