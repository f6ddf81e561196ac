// host_tcp_traffic: what every flow of a pattern carries by itself, and what is left of it when all flows are at work at once.
#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/statistics.h"
#include "probes/host/tcp_mesh.h"
#include "probes/host/tcp_path.h"

namespace assay {
namespace {

constexpr double kInstrument = 1e-3;     // a window's ends are known to some 50 us of 100 ms
constexpr Seconds kOpenPatience = {60};  // many dial one; a lossy network may lose a connection's first packets three times over
constexpr Seconds kDrain = {60};         // beyond sampling: what is under way at its end, over a slow link
constexpr std::int64_t kMostStreams = 64, kMostWindows = 10'000;
constexpr std::int64_t kMostRanks = 1'000'000;  // far beyond any fleet; sums with a rank stay in an int
constexpr std::uint64_t kMostBlock = std::uint64_t{64} << 20;

constexpr Parameter kParameters[] = {
    kPathParameter,
    kInterfaceParameter,
    {.name = "pattern", .fallback = "bisection", .meaning = "who sends to whom: each rank to the one `shift` further on; the halves to each other; all to rank 0",
     .choices = "permutation bisection incast"},
    {.name = "shift", .unit = "1", .fallback = "1", .meaning = "of a permutation: how many ranks on the target of a rank is"},
    {.name = "streams", .unit = "1", .fallback = "2", .meaning = "TCP connections of each flow, with a thread at each end"},
    {.name = "block", .unit = "B", .fallback = "256KiB", .meaning = "payload that is numbered and sent as one"},
    {.name = "window", .unit = "s", .fallback = "100ms", .meaning = "time over which one sample is taken"},
    {.name = "warmup", .unit = "1", .fallback = "5", .quick = "2", .meaning = "windows before those that count"},
    {.name = "windows", .unit = "1", .fallback = "20", .quick = "10", .meaning = "windows that count, of each flow alone and of all together"},
};
constexpr Metric kMetrics[] = {
    {.name = "alone_bandwidth", .unit = "B/s", .meaning = "payload that the target of one flow receives while no other flow is at work", .instrument = kInstrument},
    {.name = "together_bandwidth", .unit = "B/s", .meaning = "payload that the target of one flow receives while all flows are at work", .instrument = kInstrument},
    {.name = "aggregate_bandwidth", .unit = "B/s", .meaning = "the sum of together_bandwidth over all flows, window by window", .instrument = kInstrument},
    {.name = "alone_sum", .unit = "B/s", .meaning = "the sum of alone_bandwidth over all flows, window by window; they never ran at one time", .instrument = kInstrument},
    {.name = "alone_mean", .unit = "B/s", .meaning = "alone_sum over the number of flows: what one port carries", .instrument = kInstrument},
    {.name = "retransmitted_share", .unit = "1", .better = Better::lower, .meaning = "segments that the source of a flow sent again over those it sent, in the phase of all flows"},
    {.name = "mismatches", .unit = "1", .better = Better::lower, .meaning = "blocks of all flows and phases that did not arrive in their order or, of those compared, not as they were sent"},
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "pattern", .meaning = "Who sent to whom."},
    {.name = "flows_at_once", .meaning = "Flows that were at work at the same time in together_bandwidth."},
    {.name = "idle_ranks", .meaning = "Ranks that have no flow in the pattern."},
    {.name = "streams", .meaning = "TCP connections of each flow."},
};
constexpr auto kConditions = with_path_conditions(kOwnConditions);
constexpr ProbeSpec kSpec{
    .name = "host_tcp_traffic",
    .scope = Scope::group,
    .measures = "Payload bandwidth of many TCP flows between nodes, each alone and all at once: permutation, bisection, incast.",
    .method =
        "The ranks meet and open the streams of all flows once. First every flow works by itself, one after another; then all of them at the same "
        "time: they begin after a common barrier and none stops before the windows of all have passed. A sample is what came out of the target's "
        "sockets in one window, by its wall clock; windows before a set number are warm-up. Blocks are numbered and checked as in host_tcp_bandwidth, "
        "and what was sent must have been received to the byte. A flow is named SOURCE>TARGET by host names. Ranks of one machine are an error unless path=loopback.",
    .source = "RFC 6349, TCP throughput testing, for the quantity; Leighton, Introduction to Parallel Algorithms and Architectures, 1.9, for bisection.",
    .needs = "Two or more nodes that reach each other on the port of the rendezvous",
    .typical = {60},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

void check(const Parameters& given) {
  const auto in_range = [&](const char* name, std::int64_t least, std::int64_t most) {
    if (const auto count = given.count(name); count < least || count > most) throw BadParameter(fmt::format("{}: {} is not from {} to {}", name, count, least, most));
  };
  in_range("streams", 1, kMostStreams);
  in_range("warmup", 1, kMostWindows);
  in_range("windows", 1, kMostWindows);
  in_range("shift", 1, kMostRanks);
  const auto block = given.bytes("block").count;
  if (block < 64 || block > kMostBlock || block % 8 != 0) throw BadParameter(fmt::format("block: {} B is not a multiple of 8 B from 64 B to 64 MiB", block));
  const double window = given.seconds("window").count;
  if (window < 0.01 || window > 10) throw BadParameter(fmt::format("window: {:g} s is not from 10 ms to 10 s", window));
}

/// Throws unless this rank's stream leaves the machine, by the port that was asked for, and no two ranks share a machine.
PathFacts checked_path(const Parameters& given, Rendezvous& group, int stream) {
  const std::string& path = given.text("path");
  PathFacts facts = stream < 0 ? PathFacts{} : path_of(stream);
  const auto boots = group.all_gather(boot_id());
  const bool shared = std::set<std::string>(boots.begin(), boots.end()).size() < boots.size();
  const std::string problem = stream < 0 ? "" : other_path(path, facts, shared ? boots[0] : "", shared ? boots[0] : "other");
  if (!problem.empty()) throw std::runtime_error(problem);
  if (stream >= 0) {
    if (const auto other = other_interface(given.text("interface"), facts); !other.empty()) throw std::runtime_error(other);
  }
  return facts;
}

/// Sums the same windows of several flows.
Sampling sum(const std::vector<FlowTaken>& flows, double share) {
  Sampling all{.samples = std::vector<double>(flows.front().received.samples.size()), .warmup = {}, .stopped = "fixed"};
  for (const auto& flow : flows) {
    for (std::size_t i = 0; i < all.samples.size(); ++i) all.samples[i] += share * flow.received.samples[i];
  }
  return all;
}

void record_flows(const std::vector<Flow>& flows, const std::vector<std::string>& hosts, const std::vector<FlowTaken>& alone, const std::vector<FlowTaken>& together,
                  Recorder& record) {
  const Subject all{.kind = "group", .id = "all flows"};
  std::uint64_t mismatches = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const Subject flow{.kind = "pair", .id = hosts[static_cast<std::size_t>(flows[i].source)] + ">" + hosts[static_cast<std::size_t>(flows[i].target)]};
    record.measurement("alone_bandwidth", alone[i].received, flow);
    record.measurement("together_bandwidth", together[i].received, flow);
    record.measurement("retransmitted_share", together[i].retransmitted_share, flow);
    mismatches += alone[i].mismatches + together[i].mismatches;
  }
  record.measurement("aggregate_bandwidth", sum(together, 1), all);
  record.measurement("alone_sum", sum(alone, 1), all);
  record.measurement("alone_mean", sum(alone, 1 / static_cast<double>(flows.size())), all);
  record.measurement("mismatches", static_cast<double>(mismatches), all);
}

/// The ranks' host names, with their numbers where they are not different: on one machine.
std::vector<std::string> host_names(Rendezvous& group) {
  auto hosts = group.all_gather(std::get<std::string>(host_facts().at("name")));
  if (std::set<std::string>(hosts.begin(), hosts.end()).size() == hosts.size()) return hosts;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) hosts[rank] += fmt::format("#{}", rank);
  return hosts;
}

void drive(const Parameters& given, const Placement& placement, Rendezvous& group, Recorder& record) {
  Mesh mesh(placement, group, flows_of(given.text("pattern"), placement.world, static_cast<int>(given.count("shift"))), static_cast<std::size_t>(given.count("streams")),
            kOpenPatience);
  const PathFacts facts = checked_path(given, group, mesh.any_stream());
  if (mesh.any_stream() >= 0) record_facts(given.text("path"), facts, record);
  std::set<int> busy;
  for (const auto& flow : mesh.flows()) busy.insert({flow.source, flow.target});
  record.condition("pattern", given.text("pattern"));
  record.condition("flows_at_once", static_cast<std::int64_t>(mesh.flows().size()));
  record.condition("idle_ranks", static_cast<std::int64_t>(placement.world) - static_cast<std::int64_t>(busy.size()));
  record.condition("streams", given.count("streams"));
  const auto hosts = host_names(group);
  const MeshSampling sampling{.block = given.bytes("block"), .window = given.seconds("window"), .warmup = static_cast<std::size_t>(given.count("warmup")),
                              .windows = static_cast<std::size_t>(given.count("windows"))};
  std::vector<FlowTaken> alone;
  for (std::size_t i = 0; i < mesh.flows().size(); ++i) alone.push_back(mesh.phase(group, {i}, sampling).front());
  std::vector<std::size_t> every(mesh.flows().size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  const auto together = mesh.phase(group, every, sampling);
  if (placement.rank == 0) record_flows(mesh.flows(), hosts, alone, together, record);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given);
  if (placement.world == 1) throw Skip("one rank alone: this probe measures between nodes; use it with scope group or cluster");
  const double longest = static_cast<double>(given.count("warmup") + given.count("windows")) * given.seconds("window").count;
  work_together(placement, {.exchange = {longest + kDrain.count}}, [&](Rendezvous& group) { drive(given, placement, group, record); });
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::kSpec, assay::measure); }
