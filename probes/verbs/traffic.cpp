// verbs_traffic: payload bandwidth of every RDMA flow of a pattern, one at a time and all at the same time.
#include <fmt/format.h>

#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/traffic/traffic.h"
#include "probes/verbs/lanes.h"
#include "probes/verbs/session.h"

namespace assay::verbs {
namespace {

constexpr double kInstrument = 2e-5;  // two readings of the clock and the last completion of a batch, in 10 ms or more
constexpr Seconds kSlack = {60};      // connecting, filling and comparing on a slow machine
constexpr std::int64_t kMostOwnRanks = 16;

constexpr Parameter kOwnParameters[] = {
    parameter("size", "B", "64KiB", "message size, 2 B to 64 MiB"),
    parameter("loopback_ranks", "1", "3", "of a loopback alone: how many ranks this process plays on its one port"),
};
constexpr auto kParameters =
    join(kStationParameters, kPlaceParameters, traffic::kTrafficParameters, kStreamParameters, kOwnParameters);
constexpr Metric kOwnMetrics[] = {
    higher("loopback_alone", "B/s", "as alone_bandwidth, from a port to itself, where the path is loopback",
           Recorded::if_asked, kInstrument),
    higher("loopback_together", "B/s", "as together_bandwidth, from a port to itself, where the path is loopback",
           Recorded::if_asked, kInstrument),
    fault("mismatches", "bytes, of all slots, flows and phases, that are not what was sent", Recorded::rank_0),
};
constexpr auto kMetrics = join(traffic::traffic_metrics(kInstrument), kOwnMetrics);
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "qps", .meaning = "queue pairs of each flow"},
    if_asked("local", "this rank's host, port and address, where it sends"),
    if_asked("sends_to", "host, port and address of the rank that this one sends to, where it sends"),
    {.name = "mtu", .meaning = "path MTU in B to that rank"},
    if_reported("payload_limit",
                "largest payload rate in B/s that the fastest mode of the slower port, its MTU and headers leave, "
                "where both ports report their rate"),
    if_asked("payload_limit_of",
             "fastest mode, or rate now: one of the two ports does not tell its modes; where it sends"),
};
constexpr auto kConditions =
    join(traffic::kTrafficConditions, kStationConditions, kPlaceConditions, kCounterConditions, kOwnConditions);
constexpr ProbeSpec kSpec{
    .name = "verbs_traffic",
    .scope = Scope::group,
    .measures =
        "Payload bandwidth of many RDMA flows between nodes, each alone and all at once: permutation, bisection, "
        "incast.",
    .method =
        "The ranks meet over TCP and connect the queue pairs of all flows once. First every flow works by itself, one "
        "after another; then all of them at the same time: they begin after a common barrier and none stops before the "
        "windows of all have passed. The source writes by RDMA and keeps `depth` messages in flight on each queue "
        "pair; a sample is what its adapter reports as acknowledged over the host's time between the last completions "
        "of two windows, which are as long as `window` or one completion; windows before a set number are warm-up. "
        "Before a phase the target's memory is filled with other bytes; afterwards every byte of every slot is "
        "compared with what was sent, so what the last pass over the slots left is verified. A flow is named "
        "SOURCE>TARGET by host names. Ranks of one machine are an error unless path=loopback, which has metrics of its "
        "own. Counters of every port are read before and after.",
    .source =
        "Leighton, Introduction to Parallel Algorithms and Architectures, 1.9, for bisection; linux-rdma/perftest "
        "24.07 for the definitions of one flow.",
    .needs =
        "RDMA adapters with active ports (InfiniBand, RoCE) on two nodes or more, rdma-core's libibverbs.so.1; for GPU "
        "memory NVIDIA's driver",
    .typical = {60},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

void record_way(const RdmaEndpointSetup& station, const FlowSet& lanes, Recorder& record) {
  if (!lanes.way()) return;
  const auto& [target, path] = *lanes.way();
  record.condition("local", address_words(station.introduction(), path.global));
  record.condition("sends_to", address_words(target, path.global));
  record.condition("mtu", std::int64_t{path.mtu});
  if (const auto limit = payload_limit_between(station.introduction(), target, station.wish()))
    record.condition("payload_limit", limit->count);
  record.condition("payload_limit_of", std::string(payload_limit_of(station.introduction(), target)));
}

void record_taken(const traffic::TrafficTaken& taken, const std::vector<Subject>& flows, bool loopback,
                  Recorder& record) {
  if (!loopback) traffic::record_traffic(taken, flows, record);
  for (std::size_t i = 0; i < flows.size() && loopback; ++i) {
    record.measurement("loopback_alone", taken.alone[i].payload, flows[i]);
    record.measurement("loopback_together", taken.together[i].payload, flows[i]);
  }
  record.measurement("mismatches", static_cast<double>(traffic::mismatches_of(taken)), traffic::all_flows());
}

void take_part(const Parameters& given, const MessagePlan& plan, const traffic::TrafficSampling& sampling,
               Rendezvous& group, Recorder* record) {
  RdmaEndpointSetup station(given, group.rank());
  FlowSet lanes(station, group,
                traffic::flows_of(given.text("pattern"), group.world(), static_cast<int>(given.count("shift"))), plan);
  const auto subjects = traffic::flow_subjects(lanes.flows(), group);
  const auto taken =
      traffic::run_traffic(lanes.flows(), [&](const auto& active) { return lanes.phase(active, sampling); });
  if (record == nullptr) return;
  if (group.rank() == 0) record_taken(taken, subjects, station.loopback(), *record);
  traffic::record_pattern(given, lanes.flows(), group.world(), *record);
  record->condition("qps", given.count("qps"));
  record_way(station, lanes, *record);
  station.record(*record, lanes.memory());
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check_place(given);
  const MessagePlan plan = stream_plan(given, given.bytes("size"), "size");
  const traffic::TrafficSampling sampling = traffic::traffic_sampling(given);
  const auto own_ranks = given.count("loopback_ranks");
  if (own_ranks < 2 || own_ranks > kMostOwnRanks)
    throw BadParameter(fmt::format("loopback_ranks: {} is not from 2 to {}", own_ranks, kMostOwnRanks));
  const RendezvousLimits limits{
      .exchange = {traffic::length_of(sampling).count + given.seconds("stall_limit").count + kSlack.count}};
  const auto part = [&](Rendezvous& group, Recorder* mine) { take_part(given, plan, sampling, group, mine); };
  if (placement.world == 1 && given.text("path") == "loopback")
    return run_loopback(static_cast<int>(own_ranks), record, part, limits);
  if (placement.world == 1) skip_alone(given);
  work_together(placement, limits, [&](Rendezvous& group) { part(group, &record); });
}

}  // namespace
}  // namespace assay::verbs

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::verbs::kSpec, assay::verbs::measure); }
