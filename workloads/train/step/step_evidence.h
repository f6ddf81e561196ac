// step_evidence: figures of steps from the ranks' times and prints, and the rank that failed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/train/graph/step_job.h"

namespace assay::train {

/// Times of one operation on its own: means in s, by role and pass. Means add up where medians do not.
using AloneTimes = std::map<std::pair<Role, Pass>, double>;

/// Steps of one rank in a row, in s each.
struct RankSteps {
  std::vector<double> wall, collective, optimizer;
  AloneTimes alone;  ///< of these steps' operations
};

/// Time of each step: the longest of all ranks. Throws std::runtime_error when ranks differ in their number of steps.
std::vector<double> longest(const std::vector<RankSteps>& ranks, std::vector<double> RankSteps::*times);

/// The step predicted from its separately timed operations, `compute` and `comm` having the times of each rank: walked
/// through the graph, bubbles, dependencies and overlap included.
double predicted_step(const ModelShape& model, const ParallelPlan& plan, const std::vector<RankSteps>& compute,
                      const std::vector<RankSteps>& comm, bool beside);

/// Share of `steps` that take more than 1.1 of their median.
double tail_share(const std::vector<double>& steps);

/// Share of the steps that are delayed where `more` times as many ranks stall as often and independently as those of
/// whose steps `share` are: 1 - (1 - share)^more.
double projected_share(double share, double more);

/// Each rank relative to the ranks of its pipeline place, which do the same work.
struct RankStanding {
  std::vector<double> self_time;  ///< of each step: in no collective, s
  std::vector<double> lateness;  ///< of each step: time in collectives less than that of the rank that waits longest, s
  double last_share = 0;         ///< of the steps: this rank is the one with the least time in collectives
  std::optional<double> self_share;  ///< median self time over the median of the others; nothing if there is no other
};
/// The standing of every rank. The rank that delays others is the one that waits least.
std::vector<RankStanding> standings(const ParallelPlan& plan, const std::vector<RankSteps>& full);

/// Which ranks failed, as far as it is known, and how often something was wrong.
struct Blame {
  std::vector<std::int64_t> ranks;  ///< that computed something wrong
  std::uint64_t mismatches = 0;     ///< these, and findings that name no rank
  std::vector<std::string> words;   ///< findings, one sentence each
};

/// Of two runs of the same operations on every rank: the first operation whose outputs differ, -1 if none does. A rank
/// whose first is not a collective computed something wrong; others got it from it. Where all begin with a collective,
/// a message was changed between the ranks that share it.
Blame blame_of(const ModelShape& model, const ParallelPlan& plan, const std::vector<std::int64_t>& first_differing);

/// Data on which replicas vote: weights, which are the same on all; or gradients before they are reduced, which are the
/// same on ranks with the same tokens.
enum class Ballot { weights, gradients };

/// Votes of the replicas on prints by rank: of three or more that should be equal, those that differ from most are
/// wrong; of two, neither is named. Routed experts are voted on among the ranks that share them.
Blame votes_of(const ParallelPlan& plan, const std::vector<RankPrint>& prints, Ballot ballot);

/// Sums of prints over the ranks of each replica, and of experts over those of its ep group, against that of a single
/// rank: how many replicas differ.
Blame against_one_rank(const ParallelPlan& plan, const std::vector<RankPrint>& prints, const RankPrint& expected);

}  // namespace assay::train
