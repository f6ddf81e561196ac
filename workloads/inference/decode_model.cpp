// decode_model: places by arithmetic; numbers out of a counter, so that any part can be made by any thread.
#include "workloads/inference/decode_model.h"

#include <algorithm>

#include "probes/collective/pattern.h"
#include "probes/host/slice.h"

namespace assay::inference {
namespace {

/// Numbers of one layer's matrices.
std::size_t layer_numbers(const train::ModelShape& m) {
  return train::sized(train::attention_weights(m) + 3 * m.hidden * m.ffn);
}

void fill_part(std::span<Bf16> to, DecodeNumbers numbers, std::uint64_t seed, float deviation,
               const host::Slice& part) {
  for (std::size_t i = part.begin; i < part.end; ++i)
    to[i] = narrow(number_of(numbers, collective::mixed(seed, i), deviation));
}

}  // namespace

std::uint64_t DecodeShape::weight_bytes() const {
  return static_cast<std::uint64_t>(train::matmul_parameters(model)) * sizeof(Bf16);
}
std::uint64_t DecodeShape::cache_bytes() const {
  return static_cast<std::uint64_t>(batch * context * kv_bytes_per_token(model, sizeof(Bf16)));
}

LayerWeights layer_weights(const DecodeShape& shape, const DecodeSet& set, std::int64_t layer) {
  const train::ModelShape& m = shape.model;
  auto rest = std::span<const Bf16>(set.weights).subspan(train::sized(layer) * layer_numbers(m), layer_numbers(m));
  const auto take = [&](std::int64_t numbers) {
    const auto part = rest.first(train::sized(numbers));
    rest = rest.subspan(train::sized(numbers));
    return part;
  };
  LayerWeights weights;
  weights.qkv = take(shape.qkv() * m.hidden);
  weights.out = take(m.hidden * m.q());
  weights.gate_up = take(2 * m.ffn * m.hidden);
  weights.down = take(m.hidden * m.ffn);
  return weights;
}

std::span<const Bf16> head_weights(const DecodeShape& shape, const DecodeSet& set) {
  return std::span<const Bf16>(set.weights).last(train::sized(shape.model.vocab * shape.model.hidden));
}

std::span<Bf16> cache_of(const DecodeShape& shape, const DecodeSet& set, std::int64_t layer, std::int64_t sequence,
                         std::int64_t kv_head, bool values) {
  const train::ModelShape& m = shape.model;
  const std::int64_t place = ((layer * shape.batch + sequence) * m.kv_heads + kv_head) * 2 + (values ? 1 : 0);
  const std::size_t numbers = train::sized(shape.context * m.head_dim);
  return set.cache.subspan(train::sized(place) * numbers, numbers);
}

DecodeSets::DecodeSets(const DecodeShape& shape, std::uint64_t cache_bytes, std::size_t count, host::Pages pages) {
  for (std::size_t i = 0; i < count; ++i) {
    weights_.emplace_back(Bytes{shape.weight_bytes()}, pages);
    caches_.emplace_back(Bytes{cache_bytes}, pages);
  }
}

DecodeSet DecodeSets::set(const DecodeShape& shape, std::size_t index) {
  return {.weights = weights_.at(index).as<Bf16>(),
          .cache = caches_.at(index).as<Bf16>().first(shape.cache_bytes() / sizeof(Bf16))};
}

double DecodeSets::huge_share() const {
  double sum = 0;
  for (const host::Buffer& buffer : weights_) sum += buffer.huge_share();
  return sum / static_cast<double>(weights_.size());
}

void fill_sets(const DecodeShape& shape, DecodeNumbers numbers, std::uint64_t seed, const DecodeSet& first,
               const std::vector<DecodeSet>& others, std::size_t part, std::size_t parts) {
  const float deviation = weight_deviation(shape.model.hidden);
  const host::Slice weights = host::slice(first.weights.size(), parts, part),
                    cache = host::slice(first.cache.size(), parts, part);
  fill_part(first.weights, numbers, seed, deviation, weights);
  fill_part(first.cache, numbers, collective::mixed(seed, kCacheStream), 1, cache);
  for (const DecodeSet& other : others) {
    std::ranges::copy(first.weights.subspan(weights.begin, weights.end - weights.begin),
                      other.weights.subspan(weights.begin).begin());
    std::ranges::copy(first.cache.subspan(cache.begin, cache.end - cache.begin),
                      other.cache.subspan(cache.begin).begin());
  }
}

std::vector<float> decode_input(const DecodeShape& shape, DecodeNumbers numbers, std::uint64_t seed,
                                std::uint64_t number) {
  std::vector<float> input(train::sized(shape.batch * shape.model.hidden));
  const std::uint64_t stream = collective::mixed(collective::mixed(seed, kInputStream), number);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = number_of(numbers, collective::mixed(stream, i), 1);
  return input;
}

}  // namespace assay::inference
