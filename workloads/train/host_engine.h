// host_engine: walks the operations of one rank on a host's processor, one thread, with memory that is all there before
// the first step.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "workloads/train/host_weights.h"
#include "workloads/train/step_graph.h"

namespace assay::train {

/// What the weights and tokens are. gaussian: normal weights, other tokens on each replica. replicated: the same tokens
/// on all replicas, so that their gradients must be equal. ring: whole numbers modulo 7, exact however the step is
/// divided.
enum class DataMode { gaussian, replicated, ring };

/// One rank's part.
struct RankJob {
  ModelShape model;
  ParallelPlan plan;
  std::int64_t rank = 0;
  DataMode data = DataMode::gaussian;
  bool beside = true;  ///< gradients are reduced beside the backward pass
};

/// Throws BadParameter for what the graph covers and this engine does not run.
void check_engine(const ModelShape& model, const ParallelPlan& plan);

/// Memory that a collective moves: sent from, received into, or both. `shards` says how a bucket is divided where it
/// is.
struct Transfer {
  std::size_t op = 0;  ///< place in the operations
  std::span<float> data;
};

/// Collectives as the engine needs them: `carry` does one and returns when this rank's part is done and `data` may be
/// used; a send returns at once, and its data may be used, too. From the engine's thread, or from that of `beside`.
using Carry = std::function<void(std::size_t op)>;

/// See HostEngine::watch().
using Watch = std::function<void(std::size_t op)>;

/// What of a step is run. compute_only of several ranks updates numbers of no use in place of the weights, since its
/// gradients were not reduced.
enum class Variant { full, compute_only, comm_only };

/// Times of one step of this rank, in s.
struct StepTimes {
  double wall_s = 0;
  double collective_s = 0;  ///< in collectives, waits for others included; of those beside only what the step waits for
  double optimizer_s = 0;
};

/// A bit that is turned once, to show that it is found: of the output of operation `op`, after it has run.
struct Flip {
  std::size_t op = 0, element = 0;
  int bit = 0;
};

/// One rank.
class HostEngine {
 public:
  /// Takes all memory and touches it. Throws BadParameter where check_engine() does.
  explicit HostEngine(const RankJob& job);
  ~HostEngine();
  HostEngine(const HostEngine&) = delete;
  HostEngine& operator=(const HostEngine&) = delete;

  [[nodiscard]] const std::vector<Op>& ops() const;
  /// What each collective moves, in order of operations.
  [[nodiscard]] std::vector<Transfer> transfers();
  /// How collectives are done; needed before the first step of a plan of several ranks.
  void connect(Carry carry);
  /// Forgets that, and ends the thread of what runs beside; a collective under way is waited for.
  void disconnect();
  /// `watch`, where given, is called before every operation of a full step, with its place in the operations.
  void watch(Watch watch);

  /// Runs step `number`, whose tokens follow from it. Allocates nothing. Times of single operations are kept until the
  /// next step. What `carry` throws is thrown on.
  StepTimes step(Variant variant, std::uint64_t number);
  /// Begin and end of every operation of the last step, in s from its begin; 0 and 0 where it did not run.
  struct Span {
    double begin_s = 0, end_s = 0;
  };
  [[nodiscard]] std::span<const Span> spans() const;

  /// Runs forward and backward of step `number` without the update, and keeps a print of each operation's output.
  /// `flip`, where given, turns a bit. The prints of two such runs on the same weights are equal where nothing failed.
  [[nodiscard]] std::vector<std::uint64_t> traced(std::uint64_t number, const std::optional<Flip>& flip);
  /// Updates from the gradients that are there; with the collectives of the update.
  void update();
  /// See HostWeights::print(): of the weights, or of the gradients as the last step left them.
  [[nodiscard]] std::uint64_t print(bool gradients) const;
  /// A print of this replica's gradients of step `number`, before they are reduced.
  [[nodiscard]] std::uint64_t own_gradients(std::uint64_t number, const std::optional<Flip>& flip);
  /// How many numbers of weights and gradients are not finite.
  [[nodiscard]] std::uint64_t not_finite();
  /// Numbers in the output of operation `op`.
  [[nodiscard]] std::size_t output_size(std::size_t op) const;
  /// All that a later step needs of the steps before: weights and moments. In exact arithmetic there are no moments.
  [[nodiscard]] std::vector<std::span<float>> kept();
  /// Turns a bit of a weight, between two steps.
  void flip_weight(std::size_t element, int bit);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::train
