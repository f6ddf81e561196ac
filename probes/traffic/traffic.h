// traffic: every flow of a pattern separately, then all of them at the same time, and the figures of both. Says nothing
// of transports.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/sampling.h"

namespace assay::traffic {

/// Payload from one rank to another.
struct Flow {
  int source = 0, target = 0;

  friend bool operator==(const Flow&, const Flow&) = default;
};

/// The flows of `pattern` among `world` ranks, by source, then target:
/// permutation: every rank sends to the one `shift` further on, the last to the first; each sends once and receives
/// once; bisection: rank i of the first half and rank i of the second send to each other; of an odd number the last
/// takes no part; incast: every rank sends to rank 0. Throws BadParameter for a shift that is 0 or a multiple of
/// `world`, std::logic_error for another word, std::runtime_error for fewer than 2 ranks.
std::vector<Flow> flows_of(std::string_view pattern, int world, int shift);

/// The parameters of every probe of traffic, besides those of its transport.
inline constexpr Parameter kTrafficParameters[] = {
    choice("pattern", "bisection", "permutation bisection incast",
           "the flows: each rank to the one `shift` further on; the halves to each other; all to rank 0"),
    parameter("shift", "1", "1", "of a permutation: how many ranks on the target of a rank is"),
    parameter("window", "s", "100ms", "time over which one sample is taken"),
    parameter("warmup", "1", "5", "windows before those that count", "2"),
    parameter("windows", "1", "20", "windows that count, of each flow alone and of all together", "10"),
};

/// The bandwidths of every probe of traffic, with the transport's own uncertainty of a window.
constexpr std::array<Metric, 5> traffic_metrics(double instrument) {
  return {{
      higher("alone_bandwidth", "B/s", "payload of one flow while no other flow is at work", Recorded::rank_0,
             instrument),
      higher("together_bandwidth", "B/s", "payload of one flow while all flows are at work", Recorded::rank_0,
             instrument),
      higher("aggregate_bandwidth", "B/s", "the sum of together_bandwidth over all flows, window by window",
             Recorded::rank_0, instrument),
      higher("alone_sum", "B/s",
             "the sum of alone_bandwidth over all flows, window by window; they never ran at one time",
             Recorded::rank_0, instrument),
      higher("alone_mean", "B/s", "alone_sum over the number of flows: what one port carries", Recorded::rank_0,
             instrument),
  }};
}

/// The conditions that run_traffic() records.
inline constexpr ConditionSpec kTrafficConditions[] = {
    {.name = "pattern", .meaning = "The pattern of flows."},
    {.name = "flows_at_once", .meaning = "Flows that were at work at the same time in together_bandwidth."},
    {.name = "idle_ranks", .meaning = "Ranks that have no flow in the pattern."},
};

/// How a phase is sampled.
struct TrafficSampling {
  Seconds window = {};
  std::size_t warmup = 0, windows = 0;  ///< counts of windows
};

/// The sampling of these parameters. Throws BadParameter for one of kTrafficParameters out of its range.
TrafficSampling traffic_sampling(const Parameters& given);

/// Time of all windows of a phase.
Seconds length_of(const TrafficSampling& sampling);

/// `rates` of consecutive windows, of which the first were warm-up.
Sampling windows_of(const std::vector<double>& rates, const TrafficSampling& sampling);

/// Results of one flow in one phase.
struct FlowTaken {
  Sampling payload;                ///< B/s, one for each window
  std::uint64_t mismatches = 0;    ///< in the probe's unit
  double retransmitted_share = 0;  ///< of the segments that the source sent, where the transport counts them
};

/// Lets the flows of these numbers work at the same time and returns the results of each, on every rank the same.
using TrafficPhase = std::function<std::vector<FlowTaken>(const std::vector<std::size_t>& active)>;

/// Results of all phases, by number of flow.
struct TrafficTaken {
  std::vector<FlowTaken> alone, together;
};

/// Every flow, one after another, then all at once. All ranks call it.
TrafficTaken run_traffic(const std::vector<Flow>& flows, const TrafficPhase& phase);

/// The ends of a flow, as a subject: both host names, with the rank's number where ranks share a name, and '>' between
/// them.
std::vector<Subject> flow_subjects(const std::vector<Flow>& flows, Rendezvous& group);

/// Records kTrafficConditions.
void record_pattern(const Parameters& given, const std::vector<Flow>& flows, int world, Recorder& record);

/// Records traffic_metrics() of all flows and their sums. One rank's part.
void record_traffic(const TrafficTaken& taken, const std::vector<Subject>& flows, Recorder& record);

/// Mismatches of all flows and phases.
std::uint64_t mismatches_of(const TrafficTaken& taken);

/// The subject of figures of all flows.
Subject all_flows();

}  // namespace assay::traffic
