// host_tcp_traffic: payload bandwidth of every TCP flow of a pattern, one at a time and all at the same time.
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/join.h"
#include "probes/core/json_io.h"
#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/host/tcp_flow.h"
#include "probes/host/tcp_path.h"
#include "probes/host/tcp_streams.h"
#include "probes/traffic/traffic.h"

namespace assay::host {
namespace {

/// The streams of this rank's flows. All ranks do the same in the same order.
class Mesh {
 public:
  /// Opens `streams` connections for each of `flows`, from its source to an address of its target's own on the way to
  /// the rendezvous. Throws RendezvousError, std::system_error or std::runtime_error.
  Mesh(const Placement& placement, Rendezvous& group, std::vector<traffic::Flow> flows, std::size_t streams,
       Seconds patience);

  /// Lets the flows of these numbers work at the same time: none stops before all were sampled. In blocks of `block`;
  /// by number of flow; on every rank the same. Rethrows a stream's error, and throws std::runtime_error when other
  /// bytes came than were sent.
  std::vector<traffic::FlowTaken> phase(Rendezvous& group, const std::vector<std::size_t>& active, Bytes block,
                                        const traffic::TrafficSampling& sampling);

  /// One stream of this rank, or -1 when it has no flow.
  [[nodiscard]] int any_stream() const;
  [[nodiscard]] const std::vector<traffic::Flow>& flows() const { return flows_; }

 private:
  int rank_;
  std::vector<traffic::Flow> flows_;
  std::vector<Streams> out_, in_;  ///< by number of flow; empty if it is another rank's
};

using nlohmann::json;
using rendezvous::Clock;

Clock::duration duration(Seconds time) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.count));
}

/// The rates of several receivers in the same windows, one after another without a gap.
std::vector<std::vector<double>> rates_of(const std::vector<Receiver*>& receivers, Seconds window, std::size_t count) {
  std::vector<std::vector<double>> rates(receivers.size());
  std::vector<std::uint64_t> before;
  for (auto* receiver : receivers) before.push_back(receiver->received());
  auto at = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    std::this_thread::sleep_until(at + duration(window));
    if (stop_requested()) throw std::runtime_error("stopped while payload was moving");
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - at).count();
    for (std::size_t flow = 0; flow < receivers.size(); ++flow) {
      const std::uint64_t bytes = receivers[flow]->received();
      rates[flow].push_back(static_cast<double>(bytes - before[flow]) / seconds);
      before[flow] = bytes;
    }
    at = now;
  }
  return rates;
}

/// Reports of a flow's source and target.
traffic::FlowTaken settled(const traffic::Flow& flow, const json& source, const json& target,
                           const traffic::TrafficSampling& sampling) {
  if (source.at("sent") != target.at("received")) {
    throw std::runtime_error(fmt::format("rank {} sent {} B and rank {} received {}", flow.source,
                                         source.at("sent").dump(), flow.target, target.at("received").dump()));
  }
  const auto segments = source.at("segments").get<std::uint64_t>();
  if (segments == 0) throw std::runtime_error("the kernel counted no segment in a phase in which payload moved");
  return {.payload = traffic::windows_of(target.at("rates"), sampling),
          .mismatches = target.at("mismatches"),
          .retransmitted_share = source.at("retransmitted").get<double>() / static_cast<double>(segments)};
}

Mesh::Mesh(const Placement& placement, Rendezvous& group, std::vector<traffic::Flow> flows, std::size_t streams,
           Seconds patience)
    : rank_(placement.rank), flows_(std::move(flows)), out_(flows_.size()), in_(flows_.size()) {
  const Endpoint meeting = parse_endpoint(placement.rendezvous);
  const auto until = Clock::now() + duration(patience);
  const std::string own = rank_ == 0 ? meeting.host : address_towards(meeting);
  const auto listener = listen_for_streams({.host = own, .port = meeting.port});
  const auto addresses = group.all_gather(json{{"host", own}, {"port", assay::host::port_of(listener)}}.dump());
  std::vector<std::uint32_t> next(addresses.size());  // streams are numbered by their target
  std::size_t incoming = 0;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const auto first =
        std::exchange(next[static_cast<std::size_t>(flows_[i].target)],
                      next[static_cast<std::size_t>(flows_[i].target)] + static_cast<std::uint32_t>(streams));
    if (flows_[i].target == rank_) incoming += streams;
    if (flows_[i].source != rank_) continue;
    const auto there = parse_json_or_throw(addresses[static_cast<std::size_t>(flows_[i].target)],
                                           fmt::format("address of rank {}", flows_[i].target));
    for (std::uint32_t k = 0; k < streams; ++k)
      out_[i].push_back(
          dial_stream({.host = there.at("host"), .port = there.at("port")}, placement.token, first + k, until));
  }
  Streams all = accept_streams(listener, placement.token, incoming, until);
  auto stream = std::make_move_iterator(all.begin());
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (flows_[i].target != rank_) continue;
    in_[i].assign(stream, stream + static_cast<std::ptrdiff_t>(streams));
    stream += static_cast<std::ptrdiff_t>(streams);
  }
  group.barrier();
}

std::vector<traffic::FlowTaken> Mesh::phase(Rendezvous& group, const std::vector<std::size_t>& active, Bytes block,
                                            const traffic::TrafficSampling& sampling) {
  std::vector<std::unique_ptr<Receiver>> receivers(flows_.size());
  std::vector<std::unique_ptr<Sender>> senders(flows_.size());
  std::vector<TcpCounters> before(flows_.size());
  std::vector<Receiver*> own;
  group.barrier();
  for (const std::size_t i : active) {
    if (!in_[i].empty()) own.push_back((receivers[i] = std::make_unique<Receiver>(in_[i], block, i + 1)).get());
    if (out_[i].empty()) continue;
    before[i] = counters_of(out_[i]);
    senders[i] = std::make_unique<Sender>(out_[i], block, i + 1);
  }
  const auto rates = rates_of(own, sampling.window, own.empty() ? 0 : sampling.warmup + sampling.windows);
  group.barrier();  // all were sampled: the senders may stop
  json mine = json::object();
  std::size_t number = 0;
  for (const std::size_t i : active) {
    if (!senders[i]) continue;
    const std::uint64_t sent = senders[i]->finish();
    const TcpCounters after = counters_of(out_[i]);
    mine[fmt::format("source {}", i)] = {{"sent", sent},
                                         {"segments", after.segments - before[i].segments},
                                         {"retransmitted", after.retransmitted - before[i].retransmitted}};
  }
  for (const std::size_t i : active) {
    if (!receivers[i]) continue;
    const Received received = receivers[i]->finish();
    mine[fmt::format("target {}", i)] = {
        {"received", received.bytes}, {"mismatches", received.mismatches}, {"rates", rates[number++]}};
  }
  std::vector<json> said;
  for (const auto& words : group.all_gather(mine.dump()))
    said.push_back(parse_json_or_throw(words, fmt::format("rank {}", said.size())));
  std::vector<traffic::FlowTaken> taken;
  for (const std::size_t i : active) {
    taken.push_back(settled(flows_[i], said[static_cast<std::size_t>(flows_[i].source)].at(fmt::format("source {}", i)),
                            said[static_cast<std::size_t>(flows_[i].target)].at(fmt::format("target {}", i)),
                            sampling));
  }
  return taken;
}

int Mesh::any_stream() const {
  for (const auto* side : {&out_, &in_}) {
    for (const auto& streams : *side) {
      if (!streams.empty()) return streams.front().number();
    }
  }
  return -1;
}

constexpr double kInstrument = 1e-3;  // a window's ends are known to some 50 us of 100 ms
constexpr Seconds kOpenPatience = {
    60};  // many dial one; a lossy network may lose a connection's first packets three times over
constexpr Seconds kDrain = {60};  // beyond sampling: data under way at its end, over a slow link
constexpr std::int64_t kMostStreams = 64;
constexpr std::uint64_t kMostBlock = std::uint64_t{64} << 20;

constexpr Parameter kOwnParameters[] = {
    kPathParameter,
    kInterfaceParameter,
    parameter("streams", "1", "2", "TCP connections of each flow, with a thread at each end"),
    parameter("block", "B", "256KiB", "payload that is numbered and sent as one"),
};
constexpr auto kParameters = join(kOwnParameters, traffic::kTrafficParameters);
constexpr Metric kOwnMetrics[] = {
    lower("retransmitted_share", "1",
          "segments that the source of a flow sent again over those it sent, in the phase of all flows",
          Recorded::rank_0),
    fault("mismatches",
          "blocks of all flows and phases that did not arrive in their order or, of those compared, not as they were "
          "sent",
          Recorded::rank_0),
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
        "then all of them at the same time: they begin after a common barrier and none stops before the windows of all "
        "have passed. A sample is what came out of the target's sockets in one window, by its wall clock; windows "
        "before a set number are warm-up. Blocks are numbered and checked as in host_tcp_bandwidth, and what was sent "
        "must have been received to the byte. A flow is named SOURCE>TARGET by host names. Ranks of one machine are an "
        "error unless path=loopback.",
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
  (void)given.count("streams", 1, kMostStreams);
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
