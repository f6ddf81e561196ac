// conductor: the leader of rank 0 asks all ranks, size by size, and records. Independent of the library.
#include "probes/collective/conductor.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/batches.h"
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

void conduct(Fleet& fleet, const Parameters& given, const std::vector<Bytes>& sizes, const LibraryRules& rules,
             Recorder& record) {
  Conductor(fleet, given, rules, record).run(sizes);
}

}  // namespace assay::collective
