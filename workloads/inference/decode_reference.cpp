// decode_reference: whole numbers modulo 7; slow and plain on purpose.
#include "workloads/inference/decode_reference.h"

#include <bit>

#include "probes/collective/pattern.h"

namespace assay::inference {
namespace {

using Whole = std::vector<std::int64_t>;

/// From -3 to 3.
std::int64_t residue(std::int64_t value) {
  constexpr std::int64_t kModulus = 7;
  return ((value + 3) % kModulus + kModulus) % kModulus - 3;
}

std::int64_t whole(Bf16 bits) { return static_cast<std::int64_t>(wide(bits)); }

Whole product(std::span<const Bf16> w, std::size_t rows, const Whole& x) {
  const std::size_t n = w.size() / rows;
  Whole y(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < n; ++c) y[r] += whole(w[r * n + c]) * x[c];
    y[r] = residue(y[r]);
  }
  return y;
}

void add(const Whole& more, Whole& x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = residue(x[i] + more[i]);
}

/// Attention of one sequence: `qkv` are its queries, then keys, then values.
Whole attended(const DecodeShape& shape, const DecodeSet& set, std::int64_t layer, std::int64_t sequence,
               const Whole& qkv) {
  const train::ModelShape& m = shape.model;
  const std::size_t n = train::sized(m.head_dim), context = train::sized(shape.context);
  Whole out(train::sized(m.q()));
  for (std::int64_t head = 0; head < m.heads; ++head) {
    const std::int64_t kv_head = head / (m.heads / m.kv_heads);
    const auto keys = cache_of(shape, set, layer, sequence, kv_head, false);
    const auto values = cache_of(shape, set, layer, sequence, kv_head, true);
    const std::size_t key = train::sized(m.q() + kv_head * m.head_dim), value = key + train::sized(m.kv());
    Whole sum(n);
    for (std::size_t t = 0; t < context; ++t) {
      const bool own = t + 1 == context;
      std::int64_t score = 0;
      for (std::size_t d = 0; d < n; ++d)
        score += qkv[train::sized(head) * n + d] * (own ? qkv[key + d] : whole(keys[t * n + d]));
      score = residue(score);
      for (std::size_t d = 0; d < n; ++d) sum[d] += score * (own ? qkv[value + d] : whole(values[t * n + d]));
    }
    for (std::size_t d = 0; d < n; ++d) out[train::sized(head) * n + d] = residue(sum[d]);
  }
  return out;
}

}  // namespace

std::vector<float> ring_logits(const DecodeShape& shape, const DecodeSet& set, std::span<const float> input) {
  const train::ModelShape& m = shape.model;
  std::vector<float> logits;
  for (std::int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    const auto own = input.subspan(train::sized(sequence * m.hidden), train::sized(m.hidden));
    Whole x(own.begin(), own.end());
    for (std::int64_t layer = 0; layer < m.layers; ++layer) {
      const LayerWeights w = layer_weights(shape, set, layer);
      const Whole qkv = product(w.qkv, train::sized(shape.qkv()), x);
      add(product(w.out, train::sized(m.hidden), attended(shape, set, layer, sequence, qkv)), x);
      const Whole both = product(w.gate_up, train::sized(2 * m.ffn), x);
      Whole inner(train::sized(m.ffn));
      for (std::size_t i = 0; i < inner.size(); ++i) inner[i] = residue(both[i] * both[i + inner.size()]);
      add(product(w.down, train::sized(m.hidden), inner), x);
    }
    for (const std::int64_t value : product(head_weights(shape, set), train::sized(m.vocab), x))
      logits.push_back(static_cast<float>(value));
  }
  return logits;
}

std::uint64_t print_of(std::span<const float> logits) {
  std::uint64_t print = 0;
  for (const float value : logits)
    print = collective::mixed(print, std::bit_cast<std::uint32_t>(value + 0.0F));  // -0 is 0
  return print;
}

}  // namespace assay::inference
