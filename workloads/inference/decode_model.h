// decode_model: the memory that a model's weights and its cache of keys and values take, in BF16.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "probes/host/buffer.h"
#include "workloads/inference/decode_kernels.h"
#include "workloads/inference/kv_shape.h"

namespace assay::inference {

/// One batch at one context. All sizes are those of `model`, whose layers are those that are run.
struct DecodeShape {
  train::ModelShape model;
  std::int64_t batch = 1;    ///< sequences
  std::int64_t context = 1;  ///< tokens of each in the cache, the one being made included

  [[nodiscard]] std::int64_t qkv() const { return model.q() + 2 * model.kv(); }
  /// Bytes that one step reads: every weight that multiplies a token, and the cache of every sequence.
  [[nodiscard]] std::uint64_t weight_bytes() const;
  [[nodiscard]] std::uint64_t cache_bytes() const;
  [[nodiscard]] std::uint64_t bytes() const { return weight_bytes() + cache_bytes(); }
};

/// Offsets of one set's parts. Matrices have a row for each output.
struct DecodeSet {
  std::span<Bf16> weights, cache;
};
/// Part of `set`: layer's matrices and the head, and keys or values of one sequence and head, context x head_dim.
struct LayerWeights {
  std::span<const Bf16> qkv, out, gate_up, down;
};
LayerWeights layer_weights(const DecodeShape& shape, const DecodeSet& set, std::int64_t layer);
std::span<const Bf16> head_weights(const DecodeShape& shape, const DecodeSet& set);
std::span<Bf16> cache_of(const DecodeShape& shape, const DecodeSet& set, std::int64_t layer, std::int64_t sequence,
                         std::int64_t kv_head, bool values);

/// Several sets with the same content, used in turn, so that none is read from a processor's cache.
class DecodeSets {
 public:
  /// Room for `count` sets of weights and caches of at most `cache_bytes`. Not touched yet.
  DecodeSets(const DecodeShape& shape, std::uint64_t cache_bytes, std::size_t count, host::Pages pages);

  /// Set number `index` of `shape`, whose cache fits.
  [[nodiscard]] DecodeSet set(const DecodeShape& shape, std::size_t index);
  [[nodiscard]] std::size_t count() const { return weights_.size(); }
  [[nodiscard]] double huge_share() const;

 private:
  std::vector<host::Buffer> weights_, caches_;
};

/// Fills part `part` of `parts` of the first set with numbers out of `seed`, and copies that part to `others`.
void fill_sets(const DecodeShape& shape, DecodeNumbers numbers, std::uint64_t seed, const DecodeSet& first,
               const std::vector<DecodeSet>& others, std::size_t part, std::size_t parts);

/// The input of a step: batch x hidden numbers; `number` chooses one of several.
std::vector<float> decode_input(const DecodeShape& shape, DecodeNumbers numbers, std::uint64_t seed,
                                std::uint64_t number);

}  // namespace assay::inference
