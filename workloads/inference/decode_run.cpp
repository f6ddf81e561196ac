// decode_run: exact first, then steps and readings in turns; every step's result is compared.
#include "workloads/inference/decode_run.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/sizes.h"
#include "probes/core/statistics.h"
#include "probes/host/timing.h"
#include "workloads/inference/decode_pointers.h"
#include "workloads/inference/decode_reference.h"
#include "workloads/train/graph/plan_parameters.h"

namespace assay::inference {
namespace {

constexpr std::uint64_t kInputs = kDecodeInputs;
constexpr std::size_t kLeastForTail = 100;  // steps of which one is beyond the 99th percentile
constexpr std::int64_t kMostBatch = 256, kMostContext = 1 << 20, kMostSteps = 100'000;

std::vector<std::int64_t> counts_in(const Parameters& given, const char* name, std::int64_t most) {
  std::vector<std::int64_t> counts;
  for (const Bytes size : parse_sizes(given.text(name), name)) {
    if (size.count < 1 || size.count > static_cast<std::uint64_t>(most))
      throw BadParameter(fmt::format("{}: {} is not from 1 to {}", name, size.count, most));
    counts.push_back(static_cast<std::int64_t>(size.count));
  }
  return counts;
}

void check_model(const train::ModelShape& m) {
  if (m.moe) throw BadParameter("model: experts are not run by this probe; give a dense model");
  if (m.mla) throw BadParameter("model: latent attention is not run by this probe; give a model without");
  const std::pair<const char*, std::int64_t> widths[] = {
      {"hidden", m.hidden}, {"ffn", m.ffn}, {"head_dim", m.head_dim}, {"heads x head_dim", m.q()}};
  for (const auto& [name, width] : widths) {
    if (width % static_cast<std::int64_t>(kLanes) != 0)
      throw BadParameter(fmt::format("model: {} {} is no multiple of {}", name, width, kLanes));
  }
}

/// The steps of one shape.
class Decoding {
 public:
  Decoding(const DecodePlan& plan, const DecodeShape& shape, DecodeSets& sets, host::PinnedThreads& crew,
           std::uint64_t seed)
      : plan_(plan),
        crew_(crew),
        seed_(seed),
        count_(std::min(sets.count(), sets_past(shape.bytes(), plan.cache.count))),
        walk_(shape, plan.numbers, decode_code(), crew.size()),
        spent_(crew.size()) {
    figures_.shape = shape;
    figures_.past_cache = count_ * shape.bytes() >= 2 * plan.cache.count;
    for (std::size_t i = 0; i < count_; ++i) sets_.push_back(sets.set(shape, i));
  }

  DecodeFigures run() {
    check_exact();
    fill(plan_.numbers, true);
    refer();
    take_rounds(
        plan_, figures_, [this] { return step(); }, [this] { return reading(); });
    for (const Spent& one : spent_) figures_.off_cpu = std::max(figures_.off_cpu, 1 - one.cpu_s / one.wall_s);
    return std::move(figures_);
  }

 private:
  void fill(DecodeNumbers numbers, bool all) {
    const std::vector<DecodeSet> others(sets_.begin() + 1, all ? sets_.end() : sets_.begin() + 1);
    crew_.run([&](std::size_t thread) {
      fill_sets(figures_.shape, numbers, seed_, sets_.front(), others, thread, crew_.size());
    });
  }

  [[nodiscard]] std::vector<float> input(DecodeNumbers numbers, std::uint64_t number) const {
    return decode_input(figures_.shape, numbers, seed_, number);
  }

  /// One step of all threads in ring numbers against whole numbers, added up one after the other.
  void check_exact() {
    fill(DecodeNumbers::ring, false);
    DecodeWalk walk(figures_.shape, DecodeNumbers::ring, decode_code(), crew_.size());
    const auto x = input(DecodeNumbers::ring, 0);
    const auto expected = ring_logits(figures_.shape, sets_.front(), x);
    walk.begin(sets_.front(), x);
    crew_.run([&](std::size_t thread) { walk.step(thread); });
    for (std::size_t i = 0; i < expected.size(); ++i)
      figures_.mismatches += walk.logits()[i] == expected[i] ? 0U : 1U;  // NaN is none, too
  }

  /// Expected result of each input: in ring numbers by whole numbers, else by one thread, whose bits are those of many.
  void refer() {
    const bool ring = plan_.numbers == DecodeNumbers::ring;
    DecodeWalk alone(figures_.shape, plan_.numbers, decode_code(), 1);
    for (std::uint64_t number = 0; number < kInputs; ++number) {
      inputs_.push_back(input(plan_.numbers, number));
      if (ring) {
        prints_.push_back(print_of(ring_logits(figures_.shape, sets_.front(), inputs_.back())));
        continue;
      }
      alone.begin(sets_.front(), inputs_.back());
      crew_.run([&](std::size_t thread) {
        if (thread == 0) alone.step(0);
      });
      prints_.push_back(print_of(alone.logits()));
    }
    demand_different(prints_);
  }

  const DecodeSet& next_set() { return sets_[turn_++ % sets_.size()]; }

  double step() {
    const std::uint64_t number = steps_++ % kInputs;
    walk_.begin(next_set(), inputs_[number]);
    const Seconds time = crew_.run([&](std::size_t thread) { walk_.step(thread); });
    if (print_of(walk_.logits()) != prints_[number]) ++figures_.mismatches;
    return time.count;
  }

  double reading() {
    walk_.begin(next_set(), inputs_.front());
    return crew_
        .run([&](std::size_t thread) {
          const auto begin = std::chrono::steady_clock::now();
          const double cpu_s = host::thread_cpu_time().count;
          host::keep(walk_.read(thread));
          spent_[thread].cpu_s += host::thread_cpu_time().count - cpu_s;
          spent_[thread].wall_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        })
        .count;
  }

  const DecodePlan& plan_;
  host::PinnedThreads& crew_;
  std::uint64_t seed_;
  std::size_t count_;
  DecodeWalk walk_;
  DecodeFigures figures_;
  std::vector<DecodeSet> sets_;
  std::vector<std::vector<float>> inputs_;
  std::vector<std::uint64_t> prints_;
  std::uint64_t turn_ = 0, steps_ = 0;
  struct Spent {
    double wall_s = 0, cpu_s = 0;
  };
  std::vector<Spent> spent_;  ///< of each thread, on readings
};

Sampling fixed(std::vector<double> samples) {
  return {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"};
}

}  // namespace

DecodePlan DecodePlan::with_cache(Bytes other) const {
  DecodePlan plan = *this;
  plan.cache = other;
  plan.sets = sets_past(least().bytes(), other.count);
  return plan;
}

DecodePlan DecodePlan::with_layers(std::int64_t layers) const {
  DecodePlan plan = *this;
  plan.model = train::with_layers(model, layers);
  return plan.with_cache(cache);
}

DecodePlan decode_plan(const Parameters& given) {
  const train::ModelCard card = train::model_card(given.text("model"));
  check_model(card.shape);
  const std::int64_t layers = given.count("layers_run", 0, card.shape.layers);
  return {.model = train::with_layers(card.shape, layers > 0 ? layers : card.shape.layers),
          .batches = counts_in(given, "batches", kMostBatch),
          .contexts = counts_in(given, "contexts", kMostContext),
          .steps = given.count("steps", kDecodeRound, kMostSteps),
          .numbers = given.text("data") == "ring" ? DecodeNumbers::ring : DecodeNumbers::gaussian};
}

void check_memory(const DecodePlan& plan, Bytes memory) {
  const DecodeShape most = plan.most();
  const double needed = static_cast<double>(plan.sets) * static_cast<double>(most.bytes());
  if (needed > static_cast<double>(memory.count) / 2)
    throw BadParameter(fmt::format(
        "layers_run: {} layers, {} sequences of {} tokens, {} times to pass the caches, need {:.3g} B, half of memory "
        "is {:.3g} B; give fewer layers or a shorter context",
        plan.model.layers, most.batch, most.context, plan.sets, needed, static_cast<double>(memory.count) / 2));
}

void take_rounds(const DecodePlan& plan, DecodeFigures& figures, const std::function<double()>& step,
                 const std::function<double()>& reading) {
  for (std::int64_t i = 0; i < kDecodeRound; ++i) figures.warmup.push_back(step());
  for (std::int64_t round = 0; round < plan.steps / kDecodeRound; ++round) {
    std::vector<double> steps, readings;
    for (std::int64_t i = 0; i < kDecodeRound; ++i) {
      steps.push_back(step());
      readings.push_back(reading());
    }
    figures.latency.insert(figures.latency.end(), steps.begin(), steps.end());
    figures.floor.insert(figures.floor.end(), readings.begin(), readings.end());
    figures.over_floor.push_back(median(steps) / median(readings));
  }
}

void demand_different(std::span<const std::uint64_t> prints) {
  if (std::set(prints.begin(), prints.end()).size() < prints.size())
    throw std::runtime_error("two inputs have the same logits in every bit: the step does not depend on its input");
}

DecodeFigures measure_decode(const DecodePlan& plan, const DecodeShape& shape, DecodeSets& sets,
                             host::PinnedThreads& crew, std::uint64_t seed) {
  return Decoding(plan, shape, sets, crew, seed).run();
}

void record_model(const DecodePlan& plan, const Subject& subject, Recorder& record) {
  const auto say = [&](const char* name, Value value) { record.condition(name, std::move(value), subject); };
  say("parameters_run", train::total_parameters(plan.model));
  say("weight_bytes", static_cast<std::int64_t>(plan.least().weight_bytes()));
  say("cache_bytes_per_token", kv_bytes_per_token(plan.model, sizeof(Bf16)));
  say("last_level_cache", static_cast<std::int64_t>(plan.cache.count));
  say("sets", static_cast<std::int64_t>(plan.sets));
  say("data_mode", std::string(plan.numbers == DecodeNumbers::ring ? "ring" : "gaussian"));
}

void record_decode(const DecodePlan& plan, const DecodeFigures& figures, const Subject& subject, Recorder& record) {
  const Values at = {{"batch", figures.shape.batch}, {"context", figures.shape.context}};
  const auto line = [&](const char* metric, std::vector<double> samples) {
    record.measurement(metric, fixed(std::move(samples)), subject, at);
  };
  record.measurement("latency", {.samples = figures.latency, .warmup = figures.warmup, .stopped = "fixed"}, subject,
                     at);
  if (figures.latency.size() >= kLeastForTail) {
    constexpr double kTail = 0.99;
    line("latency_p99", {percentile(figures.latency, kTail)});
    line("tail", {percentile(figures.latency, kTail) / median(figures.latency)});
  }
  line("mismatches", {static_cast<double>(figures.mismatches)});
  if (!figures.past_cache)
    record.note(fmt::format("batch {}, context {}: what was read may have been in a cache", figures.shape.batch,
                            figures.shape.context));
  if (!figures.past_cache || figures.mismatches > 0) return;
  line("floor_time", figures.floor);
  const auto rates = [](double amount, const std::vector<double>& times) {
    std::vector<double> values;
    for (const double time : times) values.push_back(amount / time);
    return values;
  };
  line("floor_bandwidth", rates(static_cast<double>(figures.shape.bytes()), figures.floor));
  if (plan.numbers == DecodeNumbers::ring) return;
  line("over_floor", figures.over_floor);
  line("tokens_rate", rates(static_cast<double>(figures.shape.batch), figures.latency));
}

}  // namespace assay::inference
