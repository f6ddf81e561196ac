// tcp_mesh: the streams of every flow of a pattern, and phases in which chosen flows are at work together.
#pragma once

#include <cstdint>
#include <vector>

#include "probes/core/parameters.h"
#include "probes/host/tcp_streams.h"
#include "probes/traffic/traffic.h"

namespace assay::host {

/// The streams of this rank's flows. All ranks do the same in the same order.
class Mesh {
 public:
  /// Opens `streams` connections for each of `flows`, from its source to an address of its target's own on the way to
  /// the rendezvous. Throws RendezvousError, std::system_error or std::runtime_error.
  Mesh(const Placement& placement, Rendezvous& group, std::vector<traffic::Flow> flows, std::size_t streams,
       Seconds patience);

  /// Lets the flows of these numbers work at the same time: none stops before all were sampled. In blocks of `block`;
  /// by number of flow; on every rank the same. Throws what a stream threw, and std::runtime_error when other bytes
  /// came than were sent.
  std::vector<traffic::FlowTaken> phase(Rendezvous& group, const std::vector<std::size_t>& active, Bytes block,
                                        const traffic::TrafficSampling& sampling);

  /// One stream of this rank, or -1 when it has no flow.
  [[nodiscard]] int any_stream() const;
  [[nodiscard]] const std::vector<traffic::Flow>& flows() const { return flows_; }

 private:
  int rank_;
  std::vector<traffic::Flow> flows_;
  std::vector<Streams> out_, in_;  ///< by number of flow; empty where it is another rank's
};

}  // namespace assay::host
