// lanes: queue pairs for every flow of a pattern, and phases in which chosen flows write at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "probes/core/rendezvous.h"
#include "probes/traffic/traffic.h"
#include "probes/verbs/endpoint.h"
#include "probes/verbs/endpoint_setup.h"
#include "probes/verbs/messages.h"
#include "probes/verbs/stream.h"

namespace assay::verbs {

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

}  // namespace assay::verbs
