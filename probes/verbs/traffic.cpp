// verbs_traffic: payload bandwidth of every RDMA flow of a pattern, one at a time and all at the same time.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/join.h"
#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/traffic/traffic.h"
#include "probes/verbs/arrival.h"
#include "probes/verbs/endpoint.h"
#include "probes/verbs/endpoint_setup.h"
#include "probes/verbs/messages.h"
#include "probes/verbs/session.h"
#include "probes/verbs/stream.h"

namespace assay::verbs {
namespace {

/// This rank's ends of all flows. All ranks do the same in the same order. A rank is the source of one flow at most.
class FlowSet {
 public:
  /// Introduces the ranks, checks every flow of this rank as a pair, and connects. `station` and `group` must outlive
  /// it. Throws std::runtime_error for two ranks on one machine unless the path is a loopback, and as
  /// RdmaEndpointSetup::path_to() and VerbsEndpoint do.
  FlowSet(RdmaEndpointSetup& station, Rendezvous& group, std::vector<traffic::Flow> flows, const MessagePlan& plan);

  /// Lets the flows of these numbers work at the same time: none stops before all were sampled. Mismatches are in B. By
  /// number of flow; on every rank the same. Throws when a flow stalls or this process is to stop.
  std::vector<traffic::FlowTaken> phase(const std::vector<std::size_t>& active,
                                        const traffic::TrafficSampling& sampling);

  [[nodiscard]] const std::vector<traffic::Flow>& flows() const { return flows_; }
  /// Where this rank's own payload is; there even when it sends none.
  [[nodiscard]] const RegisteredMemory& memory() const { return source_; }
  /// The rank that this one sends to, and the path to it; nothing if it sends to none.
  struct Way {
    Introduction target;
    PathChoice path;
  };
  [[nodiscard]] const std::optional<Way>& way() const { return way_; }

 private:
  /// The end of one flow.
  struct End {
    std::size_t flow;
    RegisteredMemory* memory;
    std::unique_ptr<VerbsEndpoint> endpoint;
  };
  [[nodiscard]] Stamp stamp_of(std::size_t flow) const { return {.seed = phase_ * flows_.size() + flow}; }
  [[nodiscard]] std::vector<double> write_until_all_were_sampled(VerbsEndpoint& endpoint,
                                                                 const traffic::TrafficSampling& sampling);

  RdmaEndpointSetup& station_;
  Rendezvous& group_;
  std::vector<traffic::Flow> flows_;
  MessagePlan plan_;
  RegisteredMemory source_;
  std::vector<std::unique_ptr<RegisteredMemory>> targets_;
  std::optional<End> out_;
  std::vector<End> in_;
  std::optional<Way> way_;
  std::uint64_t phase_ = 0;
};

using nlohmann::json;

/// Every rank's introduction, by rank. Throws when two of a fabric are one machine, whether they have a flow or not.
std::vector<Introduction> introduced(const RdmaEndpointSetup& station, Rendezvous& group) {
  std::vector<Introduction> all;
  for (const auto& words : group.all_gather(packed(station.introduction())))
    all.push_back(unpacked_introduction(words));
  std::set<std::string> boots;
  for (std::size_t rank = 0; rank < all.size() && !station.loopback(); ++rank) {
    if (all[rank].boot.empty())
      throw std::runtime_error(fmt::format("rank {} ({}) does not report its kernel's boot id", rank, all[rank].host));
    if (!boots.insert(all[rank].boot).second) {
      throw std::runtime_error(
          fmt::format("rank {} ({} {}) is on one machine with another rank (boot {}): that is no fabric", rank,
                      all[rank].host, all[rank].port, all[rank].boot));
    }
  }
  return all;
}

void go_on_unless_stopped() {
  if (stop_requested()) throw std::runtime_error("stopped while payload was moving");
}

FlowSet::FlowSet(RdmaEndpointSetup& station, Rendezvous& group, std::vector<traffic::Flow> flows,
                 const MessagePlan& plan)
    : station_(station),
      group_(group),
      flows_(std::move(flows)),
      plan_(plan),
      source_(station.memory(layout_apart(plan.area()).size, Ordering::relaxed)) {
  const auto ranks = introduced(station_, group_);
  const EndpointPlan queues{.queue_pairs = plan_.queue_pairs, .sends = plan_.depth, .receives = 1};
  json mine = json::object();
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (flows_[i].target == group_.rank()) {
      targets_.push_back(std::make_unique<RegisteredMemory>(station_.memory(plan_.area(), Ordering::relaxed)));
      in_.push_back({.flow = i,
                     .memory = targets_.back().get(),
                     .endpoint = std::make_unique<VerbsEndpoint>(station_.adapter(), *targets_.back(), queues)});
      mine[fmt::format("target {}", i)] = packed(in_.back().endpoint->address());
    }
    if (flows_[i].source == group_.rank()) {
      if (out_) throw std::logic_error("a rank is the source of two flows");
      out_.emplace(End{.flow = i,
                       .memory = &source_,
                       .endpoint = std::make_unique<VerbsEndpoint>(station_.adapter(), source_, queues)});
      mine[fmt::format("source {}", i)] = packed(out_->endpoint->address());
    }
  }
  std::vector<json> addresses;
  for (const auto& words : group_.all_gather(mine.dump()))
    addresses.push_back(parse_json_or_throw(words, fmt::format("rank {}", addresses.size())));
  const auto address = [&](int rank, const char* role, std::size_t flow) {
    return unpacked_address(
        addresses.at(static_cast<std::size_t>(rank)).at(fmt::format("{} {}", role, flow)).get<std::string>());
  };
  for (const End& end : in_) {
    const int source = flows_[end.flow].source;
    end.endpoint->connect(address(source, "source", end.flow),
                          station_.path_to(ranks.at(static_cast<std::size_t>(source))));
  }
  if (out_) {
    const int target = flows_[out_->flow].target;
    const Introduction& peer = ranks.at(static_cast<std::size_t>(target));
    way_ = {.target = peer, .path = station_.path_to(peer)};
    out_->endpoint->connect(address(target, "target", out_->flow), way_->path);
  }
  group_.barrier();  // a message must not arrive at a queue pair that is not connected
}

std::vector<double> FlowSet::write_until_all_were_sampled(VerbsEndpoint& endpoint,
                                                          const traffic::TrafficSampling& sampling) {
  Stream stream(endpoint, plan_, layout_apart(plan_.area()), VerbsOperation::write, station_.stall_limit());
  Windows windows(stream, plan_.size, sampling.window, go_on_unless_stopped);
  std::vector<double> rates;
  for (std::size_t i = 0; i < sampling.warmup + sampling.windows; ++i) {
    rates.push_back(windows.next());
    group_
        .check();  // the first rank to learn why another gave up must not report its own broken messages as the reason
  }
  Arrival others(group_);
  while (!others.here()) (void)stream.pump();  // load for ranks that still sample
  others.get();
  stream.finish(go_on_unless_stopped);
  return rates;
}

std::vector<traffic::FlowTaken> FlowSet::phase(const std::vector<std::size_t>& active,
                                               const traffic::TrafficSampling& sampling) {
  ++phase_;
  const auto at_work = [&](const End& end) { return std::ranges::find(active, end.flow) != active.end(); };
  const std::size_t area = plan_.area();
  for (const End& end : in_) {
    if (at_work(end))
      end.memory->write(0, area,
                        [&](std::span<std::byte> bytes) { poison_messages(bytes, plan_, stamp_of(end.flow)); });
  }
  const bool writes = out_ && at_work(*out_);
  if (writes)
    out_->memory->write(0, area,
                        [&](std::span<std::byte> bytes) { fill_messages(bytes, plan_, stamp_of(out_->flow)); });
  group_.barrier();
  json mine = json::object();
  if (writes) {
    try {
      mine[fmt::format("source {}", out_->flow)] = write_until_all_were_sampled(*out_->endpoint, sampling);
    } catch (const std::exception& error) {
      group_.fail(error.what());  // before these queue pairs are gone, or the others' messages break first
      throw;
    }
  } else {
    group_.barrier();  // all were sampled
  }
  group_.barrier();  // written data is in its target's memory
  for (const End& end : in_) {
    if (!at_work(end)) continue;
    const auto count = [&](std::span<const std::byte> bytes) {
      return count_mismatches(bytes, plan_, stamp_of(end.flow));
    };
    mine[fmt::format("target {}", end.flow)] = end.memory->read(0, area, count);
  }
  std::vector<json> said;
  for (const auto& words : group_.all_gather(mine.dump()))
    said.push_back(parse_json_or_throw(words, fmt::format("rank {}", said.size())));
  std::vector<traffic::FlowTaken> taken;
  for (const std::size_t i : active) {
    const json &source = said[static_cast<std::size_t>(flows_[i].source)],
               &target = said[static_cast<std::size_t>(flows_[i].target)];
    taken.push_back({.payload = traffic::windows_of(source.at(fmt::format("source {}", i)), sampling),
                     .mismatches = target.at(fmt::format("target {}", i))});
  }
  return taken;
}

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
