// step_figures: figures of the rounds of a timed training, and their record. Training on hosts and on GPUs share it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "workloads/train/step/step_evidence.h"

namespace assay::train {

/// Beyond as many ranks a record has self_time and lateness of a rank as medians of rounds, not of every step: those of
/// 16,384 ranks over 200 steps are 6.5 million numbers.
inline constexpr std::size_t kMostRanksStepByStep = 1024;

/// Metrics of StepFigures besides step_time, whose begin and end each probe defines.
inline constexpr Metric kFigureMetrics[] = {
    higher("tokens_rate", "1/s", "tokens of all replicas over step_time, recorded where data is not ring",
           Recorded::if_asked),
    higher("model_flop_rate", "FLOP/s",
           "FLOPs of the model on these tokens, by flop_count, over step_time, recorded where data is not ring",
           Recorded::if_asked),
    lower("compute_time", "s", "the same step without its collectives, the longest of all ranks, the median of a round",
          Recorded::rank_0),
    lower("comm_time", "s",
          "only the collectives of the step, one after the other, the longest of all ranks, the median of a round, "
          "recorded if there are several ranks",
          Recorded::if_asked),
    lower("exposed_comm", "s", "step_time less compute_time of the same round, recorded if there are several ranks",
          Recorded::if_asked),
    higher("overlap", "1",
           "(compute_time + comm_time - step_time) over the shorter of the first two: 1 when all of it is hidden, 0 "
           "when nothing is, below 0 when both disturb each other; recorded if there are several ranks",
           Recorded::if_asked),
    lower("composition", "1",
          "step_time over the time predicted from its operations, timed separately in the same round by the same "
          "processes, in the order of the step, waits of the pipeline and overlap included",
          Recorded::rank_0),
    lower("optimizer_time", "s", "of a step, in the update of weights, the longest of all ranks", Recorded::rank_0),
    lower("tail_share", "1", "share of steps over 1.1 of their median", Recorded::rank_0),
    lower("self_time", "s",
          "of a step, time of one rank outside of collectives, recorded if there are several ranks; of more than 1024 "
          "ranks the median of each round",
          Recorded::if_asked),
    lower("self_share", "1",
          "of a round, median self_time of one rank over the median of the others at its place in the pipeline, "
          "recorded if there are such",
          Recorded::if_asked),
    lower("lateness", "s",
          "of a step, how much less time one rank spends in collectives than the one at its place that waits longest, "
          "recorded if there are several ranks; of more than 1024 ranks the median of each round",
          Recorded::if_asked),
    lower("last_share", "1",
          "share of a round's steps in which one rank spends the least time in collectives of those at its place: the "
          "others wait for it; recorded if there are several ranks",
          Recorded::if_asked),
};

/// Samples of a fixed number.
Sampling fixed(std::vector<double> samples);

/// The ranks of a training by the names of their nodes, which are unlike each other.
class RankSubjects {
 public:
  RankSubjects(std::vector<std::string> nodes, std::size_t ranks_per_node);
  /// All of them: the node, or a group of nodes.
  [[nodiscard]] const Subject& all() const { return all_; }
  /// A rank: of one node its number, of several the node's name, with the rank's number there if it has several.
  [[nodiscard]] Subject of(std::size_t rank) const;
  [[nodiscard]] std::string name_of(std::size_t rank) const;

 private:
  std::vector<std::string> nodes_;
  std::size_t ranks_per_node_;
  Subject all_;
};

class StepFigures {
 public:
  /// `job` must outlive it.
  explicit StepFigures(const RankJob& job);

  void take_warmup(const std::vector<RankSteps>& full);
  /// Steps of one round, each by rank: only computation, only communication (of one rank: nothing), full.
  void take_round(const std::vector<RankSteps>& compute, const std::vector<RankSteps>& comm,
                  const std::vector<RankSteps>& full);
  /// Time of every full step so far, s.
  [[nodiscard]] const std::vector<double>& steps() const { return step_; }
  /// Records step_time, compute_time, optimizer_time, composition and tail_share; tokens_rate and model_flop_rate
  /// unless the data is exact, which moves few bits, so that a rate of it would flatter; and of several ranks
  /// comm_time, exposed_comm, overlap, and self_time, lateness, last_share and self_share of each.
  void record(const RankSubjects& subjects, Recorder& record) const;

 private:
  void record_rates(const Subject& subject, Recorder& record) const;
  /// State of each rank in every step, and in every round.
  struct RankFigures {
    std::vector<double> self_time, lateness, last_share, self_share;
  };

  const RankJob& job_;
  std::vector<double> warmup_, step_, optimizer_, compute_, comm_, exposed_, overlap_, composition_;
  std::vector<RankFigures> ranks_;
};

}  // namespace assay::train
