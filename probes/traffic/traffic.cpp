// traffic: phases in their order, and sums over flows.
#include "probes/traffic/traffic.h"

#include <numeric>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/parameters.h"
#include "probes/core/rank_names.h"

namespace assay::traffic {

std::vector<Flow> flows_of(std::string_view pattern, int world, int shift) {
  if (world < 2) throw std::runtime_error(fmt::format("{} rank has no peer to send to", world));
  std::vector<Flow> flows;
  if (pattern == "permutation") {
    if (shift < 1 || shift % world == 0)
      throw BadParameter(
          fmt::format("shift: {} of {} ranks leads each to itself; give 1 to {}", shift, world, world - 1));
    for (int rank = 0; rank < world; ++rank) flows.push_back({.source = rank, .target = (rank + shift) % world});
  } else if (pattern == "bisection") {
    const int half = world / 2;
    for (int rank = 0; rank < 2 * half; ++rank) flows.push_back({.source = rank, .target = (rank + half) % (2 * half)});
  } else if (pattern == "incast") {
    for (int rank = 1; rank < world; ++rank) flows.push_back({.source = rank, .target = 0});
  } else {
    throw std::logic_error(fmt::format("there is no pattern '{}'", pattern));
  }
  return flows;
}

namespace {

constexpr std::int64_t kMostWindows = 10'000;
constexpr std::int64_t kMostRanks = 1'000'000;  // far beyond any fleet; sums with a rank stay in an int

/// Sums the same windows of several flows, times `share`.
Sampling sum(const std::vector<FlowTaken>& flows, double share) {
  Sampling all{.samples = std::vector<double>(flows.front().payload.samples.size()), .warmup = {}, .stopped = "fixed"};
  for (const auto& flow : flows) {
    for (std::size_t i = 0; i < all.samples.size(); ++i) all.samples[i] += share * flow.payload.samples[i];
  }
  return all;
}

}  // namespace

TrafficSampling traffic_sampling(const Parameters& given) {
  (void)given.count("shift", 1, kMostRanks);  // flows_of() takes it
  const TrafficSampling sampling{.window = given.seconds("window"),
                                 .warmup = static_cast<std::size_t>(given.count("warmup", 1, kMostWindows)),
                                 .windows = static_cast<std::size_t>(given.count("windows", 1, kMostWindows))};
  if (sampling.window.count < 0.01 || sampling.window.count > 10)
    throw BadParameter(fmt::format("window: {:g} s is not from 10 ms to 10 s", sampling.window.count));
  return sampling;
}

Seconds length_of(const TrafficSampling& sampling) {
  return {static_cast<double>(sampling.warmup + sampling.windows) * sampling.window.count};
}

Sampling windows_of(const std::vector<double>& rates, const TrafficSampling& sampling) {
  const auto first = rates.begin() + static_cast<std::ptrdiff_t>(sampling.warmup);
  return {.samples = {first, rates.end()}, .warmup = {rates.begin(), first}, .stopped = "fixed"};
}

TrafficTaken run_traffic(const std::vector<Flow>& flows, const TrafficPhase& phase) {
  TrafficTaken taken;
  for (std::size_t i = 0; i < flows.size(); ++i) taken.alone.push_back(phase({i}).front());
  std::vector<std::size_t> every(flows.size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  taken.together = phase(every);
  return taken;
}

std::vector<Subject> flow_subjects(const std::vector<Flow>& flows, Rendezvous& group) {
  const auto hosts = rank_names(group);
  std::vector<Subject> subjects;
  for (const auto& flow : flows)
    subjects.push_back(
        {.kind = "pair",
         .id = hosts[static_cast<std::size_t>(flow.source)] + ">" + hosts[static_cast<std::size_t>(flow.target)]});
  return subjects;
}

void record_pattern(const Parameters& given, const std::vector<Flow>& flows, int world, Recorder& record) {
  std::set<int> busy;
  for (const auto& flow : flows) busy.insert({flow.source, flow.target});
  record.condition("pattern", given.text("pattern"));
  record.condition("flows_at_once", static_cast<std::int64_t>(flows.size()));
  record.condition("idle_ranks", static_cast<std::int64_t>(world) - static_cast<std::int64_t>(busy.size()));
}

void record_traffic(const TrafficTaken& taken, const std::vector<Subject>& flows, Recorder& record) {
  for (std::size_t i = 0; i < flows.size(); ++i) {
    record.measurement("alone_bandwidth", taken.alone[i].payload, flows[i]);
    record.measurement("together_bandwidth", taken.together[i].payload, flows[i]);
  }
  record.measurement("aggregate_bandwidth", sum(taken.together, 1), all_flows());
  record.measurement("alone_sum", sum(taken.alone, 1), all_flows());
  record.measurement("alone_mean", sum(taken.alone, 1 / static_cast<double>(flows.size())), all_flows());
}

std::uint64_t mismatches_of(const TrafficTaken& taken) {
  std::uint64_t mismatches = 0;
  for (const auto* flows : {&taken.alone, &taken.together}) {
    for (const auto& flow : *flows) mismatches += flow.mismatches;
  }
  return mismatches;
}

Subject all_flows() { return {.kind = "group", .id = "all flows"}; }

}  // namespace assay::traffic
