// virtual_time: the operations of all ranks put on a time axis, each taking as long as it is said to.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "workloads/train/graph/step_graph.h"

namespace assay::train {

/// When each operation of each rank begins and ends, in s from the common start; `total_s` is when the last one ends.
struct Timeline {
  struct Span {
    double begin_s = 0, end_s = 0;
  };
  std::vector<std::vector<Span>> ranks;  ///< [rank][operation]
  double total_s = 0;
};

/// Time that an operation takes on its own, in s. `others` is true if the rank has an overlapped collective under way.
using Duration = std::function<double(std::size_t rank, const Op& op, bool others)>;

/// Walks all ranks: an operation begins when the one before it has ended; a collective when all members have come; one
/// that may overlap delays only its bucket's update; a message arrives after its transfer time, and the sender
/// continues at once. Throws std::runtime_error, naming a rank and its operation, when no rank can continue.
Timeline walk(const ParallelPlan& plan, const std::vector<std::vector<Op>>& graphs, const Duration& duration);

/// Of a full step, only its computation and only its communication, in s: (comp + comm - full) / min(comp, comm). 1
/// when all of the shorter is hidden, 0 when none is, below 0 when both together take longer than one after the other.
/// Nothing if either takes no time: then there is nothing to overlap.
std::optional<double> overlap_efficiency(double full_s, double comp_s, double comm_s);

}  // namespace assay::train
