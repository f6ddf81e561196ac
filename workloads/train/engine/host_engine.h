// host_engine: the operations of one rank on a host's processor, one thread, with memory that is all there before the
// first step: the executor over OpenBLAS, and collectives that others bring.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "workloads/train/engine/collective_queue.h"
#include "workloads/train/graph/step_job.h"

namespace assay::train {

/// Memory that a collective moves: sent from, received into, or both.
struct Transfer {
  std::size_t op = 0;  ///< place in the operations
  std::span<float> data;
  // Of an all_to_all: the data to send, and how many numbers go to and come from each member of its group, in order.
  std::span<float> sent = {};
  std::vector<std::size_t> to = {}, from = {};
};

/// See HostEngine::watch().
using Watch = std::function<void(std::size_t op)>;

/// One rank.
class HostEngine {
 public:
  /// Takes all memory and touches it. Throws BadParameter where check_engine() does.
  explicit HostEngine(const RankJob& job);
  ~HostEngine();
  HostEngine(const HostEngine&) = delete;
  HostEngine& operator=(const HostEngine&) = delete;

  [[nodiscard]] const std::vector<Op>& ops() const;
  /// Buffers of each collective, in order of operations.
  [[nodiscard]] std::vector<Transfer> transfers();
  /// How collectives are done; needed before the first step of a plan of several ranks.
  void connect(Carry carry);
  /// Forgets that, and ends the thread of concurrent collectives; a collective under way is waited for.
  void disconnect();
  /// `watch`, where given, is called before every operation of a full step, with its place in the operations.
  void watch(Watch watch);

  /// Runs step `number`, whose tokens follow from it. Allocates nothing. Times of single operations are kept until the
  /// next step. What `carry` throws is thrown on.
  StepTimes step(Variant variant, std::uint64_t number);
  /// Of every operation of the last step.
  [[nodiscard]] std::span<const OpSpan> spans() const;

  /// Runs forward and backward of step `number` without the update, and keeps a print of each operation's output.
  /// `flip`, where given, turns a bit. The prints of two such runs on the same weights are equal where nothing failed.
  [[nodiscard]] std::vector<std::uint64_t> traced(std::uint64_t number, const std::optional<Flip>& flip);
  /// Updates from the gradients that are there; with the collectives of the update.
  void update();
  /// See HostWeights::print(): of the weights, or of the gradients as the last step left them.
  [[nodiscard]] RankPrint print(bool gradients) const;
  /// A print of this replica's gradients of step `number`, before they are reduced.
  [[nodiscard]] RankPrint own_gradients(std::uint64_t number, const std::optional<Flip>& flip);
  /// How many numbers of weights and gradients are not finite.
  [[nodiscard]] std::uint64_t not_finite();
  /// All that a later step needs of the steps before: weights and moments. In exact arithmetic there are no moments.
  [[nodiscard]] std::vector<std::span<float>> kept();
  /// Sum of the squares of all gradients as the last step left them.
  [[nodiscard]] double gradient_square();
  /// Turns a bit of a weight of a bucket, between two steps.
  void flip_weight(std::size_t element, int bit, std::int64_t bucket = 0);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::train
