// fleet_memory: the curve of loaded latency of a node that does not exist: a queue before a memory of 400 GB/s.
#include <charconv>
#include <string>
#include <vector>

#include "orchestrator/simulate/fleet_model.h"

namespace assay::simulate {
namespace {

constexpr double kIdleLatency_s = 1e-7;  // made up, as every number here
constexpr double kReadRate = 4e11;       // B/s that the injectors read without a delay and without waiting
constexpr double kBurst_s = 2e-7;        // time of the 4 KiB between two delays
constexpr double kMemoryOfRate = 1.1;    // of kReadRate: the memory itself, so that the queue stays finite
constexpr double kWaiting = 0.1;         // latency added by waiting, of the idle one, at half of kMemoryOfRate

/// The whole numbers of "0,100,400"; fewer where the text is anything else, which the probe would refuse.
std::vector<std::int64_t> delays_in(const Values& parameters) {
  const auto given = parameters.find("delays_ns");
  const auto* text = given == parameters.end() ? nullptr : std::get_if<std::string>(&given->second);
  std::vector<std::int64_t> delays;
  if (text == nullptr) return delays;
  for (const char *at = text->data(), *const end = at + text->size(); at < end; ++at) {
    std::int64_t delay = 0;
    const auto [rest, error] = std::from_chars(at, end, delay);
    if (error != std::errc{} || delay < 0) break;
    delays.push_back(delay);
    at = rest;
  }
  return delays;
}

}  // namespace

bool FleetModel::record_curve(Recorder& recorder, const MadeUpMetric& quantity, const plan::Step& step,
                              const std::string& node, const std::string& occasion) const {
  if (step.probe != "host_loaded_latency" || quantity.scope != plan::JudgedScope::node) return false;
  const Subject subject{.kind = "node", .id = node};
  const auto point = [&](const char* metric, bool lower_is_better, double centre, Values at) {
    MadeUpMetric one = quantity;
    one.metric = metric;
    one.at = std::move(at);
    one.lower_is_better = lower_is_better;
    one.centre = centre;
    record_samples(recorder, one, subject, centre, occasion,
                   [&](double healthy) { return value_of(one, {node}, occasion, healthy); });
  };
  if (quantity.metric == "idle_latency") point("idle_latency", true, kIdleLatency_s, {});
  if (quantity.metric != "latency") return quantity.metric == "idle_latency";
  for (const std::int64_t delay : delays_in(step.parameters)) {
    const double rate = kReadRate * kBurst_s / (kBurst_s + static_cast<double>(delay) * 1e-9);
    const double use = rate / (kReadRate * kMemoryOfRate);
    point("latency", true, kIdleLatency_s * (1 + kWaiting * use / (1 - use)), {{"delay_ns", delay}});
    point("rate", false, rate, {{"delay_ns", delay}});
  }
  return true;
}

}  // namespace assay::simulate
