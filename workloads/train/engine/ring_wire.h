// ring_wire: the collectives of a step between the ranks of its groups, round a ring, over messages of a mesh.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "workloads/train/engine/host_engine.h"

namespace assay::gloo {
class Mesh;
}  // namespace assay::gloo

namespace assay::train {

/// All that the collectives of one rank need, made before the first step. all_reduce: the sum of a share goes round
/// once, each rank adding its own, and then the sums go round (Patarasu & Yuan 2009), so that all ranks have the same
/// bits; reduce_scatter and all_gather are its halves, and so are exchange_sums and exchange. Shares are as even as
/// whole numbers allow. all_to_all is a message to each other member and one from each, in an order that meets nowhere.
/// A message between pipeline ranks is copied before it is sent, so that the sender continues at once.
class RingWire {
 public:
  /// `transfers` are those of the engine; their memory outlives this object, and so does `mesh`, in which ranks have
  /// the numbers of the plan.
  RingWire(gloo::Mesh& mesh, const ParallelPlan& plan, std::int64_t rank, const std::vector<Op>& ops,
           const std::vector<Transfer>& transfers);
  ~RingWire();
  RingWire(const RingWire&) = delete;
  RingWire& operator=(const RingWire&) = delete;

  /// Does collective number `op` of the operations. Throws as the mesh.
  void carry(std::size_t op);

 private:
  class Exchange;  ///< one memory round the ring of a group: all_reduce and its halves, exchange, exchange_sums
  class Post;      ///< messages of one kind to, or from, one rank of the pipeline; a few are kept on their way
  class Spread;    ///< all_to_all: a message to each other member and one from each, from one memory into another
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::vector<std::unique_ptr<Post>> posts_;
  std::vector<std::unique_ptr<Spread>> spreads_;
  std::vector<Exchange*> by_op_;
  std::vector<Post*> post_by_op_;
  std::vector<Spread*> spread_by_op_;
  std::vector<Transfer> transfers_;  ///< by op
  std::vector<Motion> motions_;
};

}  // namespace assay::train
