// lanes: all flows connect, then write and compare together.
#include "probes/verbs/lanes.h"

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/verbs/arrival.h"

namespace assay::verbs {
namespace {

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

}  // namespace

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

}  // namespace assay::verbs
