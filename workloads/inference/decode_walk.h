// decode_walk: one token of each sequence of a batch through all layers, by threads that walk together.
#pragma once

#include <barrier>
#include <cstdint>
#include <span>
#include <vector>

#include "workloads/inference/decode_model.h"

namespace assay::inference {

/// Tokens of the cache that one task of attention takes: many tasks, however few heads there are.
inline constexpr std::int64_t kTokensOfTask = 256;

/// A step, without positions: RMS norm, queries, keys and values, which enter the cache, attention to the whole cache
/// in two stages, SwiGLU, the head. In ring numbers there is no norm, softmax and SiLU are the identity, and every
/// result is folded. Between operations all threads wait for each other: without a deadline, as nothing in between can
/// wait or throw.
class DecodeWalk {
 public:
  DecodeWalk(const DecodeShape& shape, DecodeNumbers numbers, const DecodeCode& code, std::size_t threads);

  /// Before a step, by one thread: its weights, cache and input. Results of earlier steps are overwritten.
  void begin(const DecodeSet& set, std::span<const float> input);
  /// The part of one thread of the step; all call it at once.
  void step(std::size_t thread);
  /// Reads all that the thread's part of a step reads, once, in order, with no waits; a sum that depends on all of it.
  [[nodiscard]] std::uint64_t read(std::size_t thread) const;
  /// The step's logits: batch x vocab.
  [[nodiscard]] std::span<const float> logits() const { return logits_; }

 private:
  void layer(std::int64_t number, std::size_t thread);
  std::span<const float> norm(std::size_t thread);
  void rows(std::span<const Bf16> w, std::size_t all, std::span<const float> x, float* y, std::size_t thread);
  void attend(std::int64_t layer, std::size_t thread);
  void attend_task(std::int64_t layer, std::int64_t sequence, std::int64_t kv_head, std::int64_t chunk, float* scores);
  void join_tasks(std::size_t thread);
  void activate(std::size_t thread);
  void add_to_input(std::size_t thread);
  [[nodiscard]] std::int64_t chunks() const { return (shape_.context + kTokensOfTask - 1) / kTokensOfTask; }
  [[nodiscard]] std::int64_t group() const { return shape_.model.heads / shape_.model.kv_heads; }

  DecodeShape shape_;
  DecodeNumbers numbers_;
  DecodeCode code_;
  std::size_t threads_, batch_;
  DecodeSet set_;
  std::barrier<> together_;
  std::vector<float> x_, qkv_, attended_, gate_up_, inner_, change_, logits_;
  std::vector<float> largest_, sums_, parts_;  ///< of each task and query head: for softmax; parts_ head_dim each
  std::vector<float> normed_, scores_;         ///< of each thread
};

}  // namespace assay::inference
