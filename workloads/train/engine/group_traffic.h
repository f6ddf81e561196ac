// group_traffic: messages round each kind of group of a plan, one kind at a time and all at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/train/graph/step_groups.h"

namespace assay::gloo {
class Mesh;
}  // namespace assay::gloo

namespace assay::train {

/// One rank's part.
class GroupTraffic {
 public:
  /// `mesh` outlives it.
  GroupTraffic(gloo::Mesh& mesh, const ModelShape& model, const ParallelPlan& plan, std::int64_t rank);
  ~GroupTraffic();

  /// `passes`, by place in kGroupKinds, round the groups of each kind at the same time, a thread for each; 0: none. By
  /// place the time of one, in s; 0 if there was none. All ranks of the mesh call it alike.
  std::vector<double> run(const std::vector<std::int64_t>& passes);

 private:
  class Ring;
  gloo::Mesh& mesh_;
  std::vector<std::unique_ptr<Ring>> rings_;  ///< by place; null if there is none
};

}  // namespace assay::train
