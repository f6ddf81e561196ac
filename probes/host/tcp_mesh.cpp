// tcp_mesh: all flows connect, then start and stop together.
#include "probes/host/tcp_mesh.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/host/tcp_flow.h"

namespace assay::host {
namespace {

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

/// What a flow's source and target reported of it.
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

}  // namespace

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

}  // namespace assay::host
