// host_tcp_traffic: payload bandwidth of every TCP flow of a pattern, alone and with all flows at the same time.
#include <algorithm>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/host/tcp_mesh.h"
#include "probes/host/tcp_path.h"
#include "probes/traffic/traffic.h"

namespace assay::host {
namespace {

constexpr double kInstrument = 1e-3;  // a window's ends are known to some 50 us of 100 ms
constexpr Seconds kOpenPatience = {
    60};  // many dial one; a lossy network may lose a connection's first packets three times over
constexpr Seconds kDrain = {60};  // beyond sampling: what is under way at its end, over a slow link
constexpr std::int64_t kMostStreams = 64;
constexpr std::uint64_t kMostBlock = std::uint64_t{64} << 20;

constexpr Parameter kOwnParameters[] = {
    kPathParameter,
    kInterfaceParameter,
    {.name = "streams",
     .unit = "1",
     .fallback = "2",
     .meaning = "TCP connections of each flow, with a thread at each end"},
    {.name = "block", .unit = "B", .fallback = "256KiB", .meaning = "payload that is numbered and sent as one"},
};
constexpr auto kParameters = join(kOwnParameters, traffic::kTrafficParameters);
constexpr Metric kOwnMetrics[] = {
    {.name = "retransmitted_share",
     .unit = "1",
     .better = Better::lower,
     .meaning = "segments that the source of a flow sent again over those it sent, in the phase of all flows",
     .recorded = Recorded::rank_0},
    {.name = "mismatches",
     .unit = "1",
     .better = Better::lower,
     .meaning = "blocks of all flows and phases that did not arrive in their order or, of those compared, not as they "
                "were sent",
     .kind = MetricKind::fault,
     .recorded = Recorded::rank_0},
};
constexpr auto kMetrics = join(traffic::traffic_metrics(kInstrument), kOwnMetrics);
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "streams", .meaning = "TCP connections of each flow."},
    {.name = "idle", .meaning = "Whether this rank has no flow in the pattern, and so no path."},
};
constexpr auto kConditions = join(kPathConditions, traffic::kTrafficConditions, kOwnConditions);
constexpr ProbeSpec kSpec{
    .name = "host_tcp_traffic",
    .scope = Scope::group,
    .measures =
        "Payload bandwidth of many TCP flows between nodes, each alone and all at once: permutation, bisection, "
        "incast.",
    .method =
        "The ranks meet and open the streams of all flows once. First every flow works by itself, one after another; "
        "then all of them at the same time: they begin after a common barrier and none stops before the windows of "
        "all have passed. A sample is what came out of the target's sockets in one window, by its wall clock; windows "
        "before a set number are warm-up. Blocks are numbered and checked as in host_tcp_bandwidth, and what was sent "
        "must have been received to the byte. A flow is named SOURCE>TARGET by host names. Ranks of one machine are "
        "an error unless path=loopback.",
    .source =
        "RFC 6349, TCP throughput testing, for the quantity; Leighton, Introduction to Parallel Algorithms and "
        "Architectures, 1.9, for bisection.",
    .needs = "Two or more nodes that reach each other on the port of the rendezvous",
    .typical = {60},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

void check(const Parameters& given) {
  const auto streams = given.count("streams");
  if (streams < 1 || streams > kMostStreams)
    throw BadParameter(fmt::format("streams: {} is not from 1 to {}", streams, kMostStreams));
  const auto block = given.bytes("block").count;
  if (block < 64 || block > kMostBlock || block % 8 != 0)
    throw BadParameter(fmt::format("block: {} B is not a multiple of 8 B from 64 B to 64 MiB", block));
}

/// Throws unless this rank's stream leaves the machine, by the port that was asked for, and no two ranks share a
/// machine.
PathFacts checked_path(const Parameters& given, Rendezvous& group, int stream) {
  const std::string& path = given.text("path");
  PathFacts facts = stream < 0 ? PathFacts{} : path_of(stream);
  const auto boots = group.all_gather(boot_id());
  const bool shared = std::set<std::string>(boots.begin(), boots.end()).size() < boots.size();
  const std::string problem =
      stream < 0 ? "" : other_path(path, facts, shared ? boots[0] : "", shared ? boots[0] : "other");
  if (!problem.empty()) throw std::runtime_error(problem);
  if (stream >= 0) {
    if (const auto other = other_interface(given.text("interface"), facts); !other.empty())
      throw std::runtime_error(other);
  }
  return facts;
}

void drive(const Parameters& given, const Placement& placement, const traffic::TrafficSampling& sampling,
           Rendezvous& group, Recorder& record) {
  Mesh mesh(placement, group,
            traffic::flows_of(given.text("pattern"), placement.world, static_cast<int>(given.count("shift"))),
            static_cast<std::size_t>(given.count("streams")), kOpenPatience);
  const PathFacts facts = checked_path(given, group, mesh.any_stream());
  record.condition("idle", mesh.any_stream() < 0);
  if (mesh.any_stream() >= 0) record_facts(given.text("path"), facts, record);
  traffic::record_pattern(given, mesh.flows(), placement.world, record);
  record.condition("streams", given.count("streams"));
  const auto subjects = traffic::flow_subjects(mesh.flows(), group);
  const auto taken = traffic::run_traffic(
      mesh.flows(), [&](const auto& active) { return mesh.phase(group, active, given.bytes("block"), sampling); });
  if (placement.rank != 0) return;
  traffic::record_traffic(taken, subjects, record);
  for (std::size_t i = 0; i < subjects.size(); ++i)
    record.measurement("retransmitted_share", taken.together[i].retransmitted_share, subjects[i]);
  record.measurement("mismatches", static_cast<double>(traffic::mismatches_of(taken)), traffic::all_flows());
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given);
  const traffic::TrafficSampling sampling = traffic::traffic_sampling(given);
  if (placement.world == 1)
    throw Skip("one rank alone: this probe measures between nodes; use it with scope group or cluster");
  work_together(placement, {.exchange = {traffic::length_of(sampling).count + kDrain.count}},
                [&](Rendezvous& group) { drive(given, placement, sampling, group, record); });
}

}  // namespace
}  // namespace assay::host

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::host::kSpec, assay::host::measure); }
