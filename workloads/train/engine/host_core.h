// host_core: the compute side of a host: products of OpenBLAS, loops of step_math, and memory laid out before the first
// step.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

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

}  // namespace assay::train
