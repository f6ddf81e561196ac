// host_engine: the operations of one rank on a host's processor, one thread, with memory that is all there before the
// first step: the executor over OpenBLAS, and collectives that others bring.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "workloads/train/engine/collective_queue.h"
#include "workloads/train/engine/expert_work.h"
#include "workloads/train/engine/host_memory.h"
#include "workloads/train/engine/host_weights.h"
#include "workloads/train/engine/step_math.h"
#include "workloads/train/graph/step_job.h"

namespace assay::train {

/// The core of the executor on one thread of a host. A call returns when its result is done.
class HostCore {
 public:
  /// Takes all memory and touches it. Precondition: check_engine() passes.
  explicit HostCore(const RankJob& job);

  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }
  /// Operands and results of each operation.
  [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }
  HostWeights& weights() { return weights_; }
  [[nodiscard]] const ExpertRoutes& routes() const { return routes_; }

  /// Numbers of one token.
  [[nodiscard]] std::size_t width() const { return norm_.columns; }

  /// Before step `number`, whose tokens follow from it; `aside`: its gradients are not reduced, and weights stay.
  void start(std::uint64_t number, bool aside);

  // The calls of the executor.
  void begin(std::size_t /*calls*/) { start_ = Clock::now(); }
  void compute(std::size_t place);
  void lend(std::size_t place);
  void take(std::size_t place);
  void mark(std::size_t call) { marks_[call] = Clock::now(); }
  void end() {}
  [[nodiscard]] double seconds(std::size_t call) const {
    return std::chrono::duration<double>(marks_[call] - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void each_of_layer(const Op& op);
  void each_of_end(const Op& op);
  [[nodiscard]] std::int64_t token(const Op& op, std::size_t i, std::size_t what) const;
  void embed(const Op& op);
  void embed_back(const Op& op);
  void loss_back(const Op& op);

  RankJob job_;
  ModelShape model_;
  RankPosition at_;
  bool exact_;
  std::vector<Op> ops_;
  ExpertRoutes routes_;
  HostWeights weights_;
  HostBuffers room_;
  StepMemory memory_;
  ExpertWork experts_;
  std::vector<Call> calls_;
  std::vector<Clock::time_point> marks_;  ///< a wait before every operation and one at the end, at most
  Clock::time_point start_;
  HeadShape head_;
  NormShape norm_;
  TokenDraw tokens_;
  bool aside_ = false;
};

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
