// kv_shape: the bytes that a token leaves in the cache of keys and values.
#pragma once

#include <cstdint>

#include "workloads/train/graph/model_card.h"
#include "workloads/train/graph/parallel_plan.h"

namespace assay::inference {

using train::ModelShape;
using train::sized;

/// Numbers of one token in one layer that one of `tp` ranks keeps. Keys and values are divided by heads; `tp` divides
/// kv_heads. Latent attention keeps one narrow vector for all heads, which every rank needs whole.
constexpr std::int64_t kv_numbers(const ModelShape& m, std::int64_t tp = 1) {
  return m.mla ? m.mla->kv_lora + m.mla->rope : 2 * m.kv() / tp;
}

/// Bytes of one token in all layers, with numbers of `element` B.
constexpr std::int64_t kv_bytes_per_token(const ModelShape& m, std::int64_t element, std::int64_t tp = 1) {
  return m.layers * kv_numbers(m, tp) * element;
}

// As the publishers' configurations give them, in bf16.
static_assert(kv_bytes_per_token(train::kLlama3_8b, 2) == 131'072);
static_assert(kv_bytes_per_token(train::kMixtral_8x7b, 2) == 131'072);
static_assert(kv_bytes_per_token(train::kLlama3_70b, 2) == 327'680);
static_assert(kv_bytes_per_token(train::kLlama3_405b, 2) == 516'096);
static_assert(kv_bytes_per_token(train::kDeepseekV3, 2) == 70'272);
static_assert(kv_bytes_per_token(train::kLlama3_70b, 2, 8) == 40'960);
static_assert(kv_bytes_per_token(train::kDeepseekV3, 2, 8) == 70'272);

}  // namespace assay::inference
