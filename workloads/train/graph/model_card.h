// model_card: the sizes of a transformer, its parameters and its floating-point operations per token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "probes/core/error.h"

namespace assay::train {

/// A mixture of experts in place of the dense MLP, from layer `first_dense` on.
struct Experts {
  std::int64_t experts = 0;      ///< routed experts of one layer
  std::int64_t top_k = 0;        ///< routed experts that work on one token
  std::int64_t ffn = 0;          ///< inner width of one expert
  std::int64_t shared = 0;       ///< experts of the same width that work on every token
  std::int64_t first_dense = 0;  ///< layers before the first mixture, with the dense MLP
  bool router_bias = false;      ///< one more number for each routed expert, which multiplies nothing
  friend bool operator==(const Experts&, const Experts&) = default;
};

/// Multi-head latent attention: queries, keys and values come from two narrow products.
struct Latent {
  std::int64_t q_lora = 0, kv_lora = 0;  ///< widths of the narrow products
  std::int64_t nope = 0, rope = 0;       ///< width of a head's query and key: without position, and with
  std::int64_t v = 0;                    ///< width of a head's value
  friend bool operator==(const Latent&, const Latent&) = default;
};

/// The sizes of a decoder with SwiGLU and RMS norms.
struct ModelShape {
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
  bool tied = false;  ///< embedding and head are one matrix
  std::optional<Experts> moe = {};
  std::optional<Latent> mla = {};
  friend bool operator==(const ModelShape&, const ModelShape&) = default;

  /// Width of all queries, and of all keys.
  [[nodiscard]] constexpr std::int64_t q() const { return heads * head_dim; }
  [[nodiscard]] constexpr std::int64_t kv() const { return kv_heads * head_dim; }
  /// Whether `layer` has experts.
  [[nodiscard]] constexpr bool is_mixture(std::int64_t layer) const { return moe && layer >= moe->first_dense; }
  [[nodiscard]] constexpr std::int64_t mixtures() const {
    return moe ? std::max<std::int64_t>(0, layers - moe->first_dense) : 0;
  }
};

/// A shape and its name.
struct ModelCard {
  std::string name;
  ModelShape shape;
  friend bool operator==(const ModelCard&, const ModelCard&) = default;
};

/// The same shape with another number of layers.
constexpr ModelShape with_layers(ModelShape shape, std::int64_t layers) {
  shape.layers = layers;
  return shape;
}

/// Weights of the attention of one layer that multiply a token.
constexpr std::int64_t attention_weights(const ModelShape& m) {
  if (!m.mla) return m.hidden * m.q() + 2 * m.hidden * m.kv() + m.q() * m.hidden;
  const Latent& a = *m.mla;
  return m.hidden * a.q_lora + a.q_lora * m.heads * (a.nope + a.rope) + m.hidden * (a.kv_lora + a.rope) +
         a.kv_lora * m.heads * (a.nope + a.v) + m.heads * a.v * m.hidden;
}
/// Weights of the MLP of `layer`: all of them, and those that multiply one token.
constexpr std::int64_t mlp_weights(const ModelShape& m, std::int64_t layer) {
  if (!m.is_mixture(layer)) return 3 * m.hidden * m.ffn;
  return (m.moe->experts + m.moe->shared) * 3 * m.hidden * m.moe->ffn + m.hidden * m.moe->experts;
}
constexpr std::int64_t active_mlp_weights(const ModelShape& m, std::int64_t layer) {
  if (!m.is_mixture(layer)) return 3 * m.hidden * m.ffn;
  return (m.moe->top_k + m.moe->shared) * 3 * m.hidden * m.moe->ffn + m.hidden * m.moe->experts;
}
/// Numbers that scale or shift in `layer`: norms, and the bias of a router.
constexpr std::int64_t norm_weights(const ModelShape& m, std::int64_t layer) {
  const std::int64_t latent = m.mla ? m.mla->q_lora + m.mla->kv_lora : 0;
  const std::int64_t bias = m.is_mixture(layer) && m.moe->router_bias ? m.moe->experts : 0;
  return 2 * m.hidden + latent + bias;
}

namespace detail {
/// `of` summed over all layers.
constexpr std::int64_t over_layers(const ModelShape& m, std::int64_t (*of)(const ModelShape&, std::int64_t)) {
  const std::int64_t mixtures = m.mixtures();
  return (m.layers - mixtures) * of(m, 0) + (mixtures > 0 ? mixtures * of(m, m.layers - 1) : 0);
}
}  // namespace detail

/// All parameters: embedding, layers, last norm, head.
constexpr std::int64_t total_parameters(const ModelShape& m) {
  return (m.tied ? 1 : 2) * m.vocab * m.hidden + m.layers * attention_weights(m) + detail::over_layers(m, mlp_weights) +
         detail::over_layers(m, norm_weights) + m.hidden;
}
/// Weights that multiply one token: a head does, an embedding does not.
constexpr std::int64_t matmul_parameters(const ModelShape& m) {
  return m.layers * attention_weights(m) + detail::over_layers(m, active_mlp_weights) + m.vocab * m.hidden;
}
/// Parameters that one token needs: those that multiply it, embedding and norms.
constexpr std::int64_t active_parameters(const ModelShape& m) {
  return matmul_parameters(m) + (m.tied ? 0 : m.vocab * m.hidden) + detail::over_layers(m, norm_weights) + m.hidden;
}

/// Basis of a token's FLOPs: attention to the tokens before it, or to all of the sequence.
inline constexpr std::string_view kFlopCount = "causal/1";

/// FLOPs of one sequence position's attention in one layer, forward, causal: two products with half of `seq` tokens
/// each.
constexpr std::int64_t attention_flop(const ModelShape& m, std::int64_t seq) {
  return m.mla ? m.heads * (m.mla->nope + m.mla->rope + m.mla->v) * seq : 2 * m.q() * seq;
}
/// FLOPs of training on one token, forward and backward, without recomputation. Causal is the count `causal/1`:
/// 6 x matmul_parameters + 3 x attention_flop x layers.
constexpr std::int64_t flop_per_token(const ModelShape& m, std::int64_t seq, bool causal = true) {
  return 6 * matmul_parameters(m) + (causal ? 3 : 6) * m.layers * attention_flop(m, seq);
}
/// Additions of one layer of multi-token prediction: a layer like the last one, a product of 2 hidden x hidden, the
/// head.
constexpr std::int64_t mtp_flop_per_token(const ModelShape& m, std::int64_t seq) {
  return 6 * (attention_weights(m) + active_mlp_weights(m, m.layers - 1) + 2 * m.hidden * m.hidden +
              m.vocab * m.hidden) +
         3 * attention_flop(m, seq);
}

inline constexpr ModelShape kLlama3_8b{
    .layers = 32, .hidden = 4096, .ffn = 14336, .heads = 32, .kv_heads = 8, .head_dim = 128, .vocab = 128256};
inline constexpr ModelShape kLlama3_70b{
    .layers = 80, .hidden = 8192, .ffn = 28672, .heads = 64, .kv_heads = 8, .head_dim = 128, .vocab = 128256};
inline constexpr ModelShape kLlama3_405b{
    .layers = 126, .hidden = 16384, .ffn = 53248, .heads = 128, .kv_heads = 8, .head_dim = 128, .vocab = 128256};
inline constexpr ModelShape kMixtral_8x7b{.layers = 32,
                                          .hidden = 4096,
                                          .ffn = 14336,
                                          .heads = 32,
                                          .kv_heads = 8,
                                          .head_dim = 128,
                                          .vocab = 32000,
                                          .moe = Experts{.experts = 8, .top_k = 2, .ffn = 14336}};
inline constexpr ModelShape kDeepseekV3{
    .layers = 61,
    .hidden = 7168,
    .ffn = 18432,
    .heads = 128,
    .kv_heads = 128,
    .head_dim = 192,
    .vocab = 129280,
    .moe = Experts{.experts = 256, .top_k = 8, .ffn = 2048, .shared = 1, .first_dense = 3, .router_bias = true},
    .mla = Latent{.q_lora = 1536, .kv_lora = 512, .nope = 128, .rope = 64, .v = 128}};
/// Small enough for one core in tests.
inline constexpr ModelShape kTinyDense{
    .layers = 2, .hidden = 256, .ffn = 704, .heads = 4, .kv_heads = 2, .head_dim = 64, .vocab = 1024};
inline constexpr ModelShape kTinyMoe{.layers = 2,
                                     .hidden = 256,
                                     .ffn = 704,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .head_dim = 64,
                                     .vocab = 1024,
                                     .moe = Experts{.experts = 8, .top_k = 2, .ffn = 256, .shared = 1}};
inline constexpr ModelShape kSmallDense{
    .layers = 4, .hidden = 512, .ffn = 1408, .heads = 8, .kv_heads = 4, .head_dim = 64, .vocab = 2048};

// Totals as the publishers state them; FLOPs agree within 0.1 % with NVIDIA's published rates.
static_assert(total_parameters(kLlama3_8b) == 8'030'261'248 && matmul_parameters(kLlama3_8b) == 7'504'658'432);
static_assert(total_parameters(kLlama3_70b) == 70'553'706'496 && matmul_parameters(kLlama3_70b) == 69'501'714'432);
static_assert(total_parameters(kLlama3_405b) == 405'853'388'800 && matmul_parameters(kLlama3_405b) == 403'747'897'344);
static_assert(total_parameters(kMixtral_8x7b) == 46'702'792'704 && active_parameters(kMixtral_8x7b) == 12'879'925'248);
static_assert(matmul_parameters(kMixtral_8x7b) == 12'748'587'008);
static_assert(total_parameters(kDeepseekV3) == 671'026'419'200 && active_parameters(kDeepseekV3) == 37'552'297'472);
static_assert(matmul_parameters(kDeepseekV3) == 36'624'596'992);
static_assert(flop_per_token(kLlama3_8b, 8192) == 51'470'401'536);
static_assert(flop_per_token(kLlama3_70b, 8192) == 449'222'541'312);
static_assert(flop_per_token(kLlama3_405b, 8192) == 2'523'955'986'432);
static_assert(flop_per_token(kMixtral_8x7b, 4096) == 79'712'747'520);
static_assert(flop_per_token(kDeepseekV3, 4096) == 250'449'887'232);
static_assert(flop_per_token(kDeepseekV3, 4096) + mtp_flop_per_token(kDeepseekV3, 4096) == 260'641'652'736);
static_assert(total_parameters(kTinyDense) == 2'000'128 && flop_per_token(kTinyDense, 128) == 10'813'440);
static_assert(total_parameters(kTinyMoe) == 4'461'824 && flop_per_token(kTinyMoe, 128) == 11'427'840);
static_assert(total_parameters(kSmallDense) == 13'898'240 && flop_per_token(kSmallDense, 256) == 80'216'064);

/// A built-in shape and its name.
struct Preset {
  std::string_view name;
  ModelShape shape;
};
/// All built-in shapes.
std::span<const Preset> presets();

/// Reads a card of the schema assay.model/1. `where` names the input in errors.
std::expected<ModelCard, InputError> read_model_card(std::string_view text, const std::string& where);

/// The built-in card of this name, or the card in the file at this path (a name with a '/' or ending in .json). Throws
/// BadParameter with the known names, or with the file's error.
ModelCard model_card(const std::string& name_or_path);

/// The card as a document that read_model_card() reads.
std::string model_card_json(const ModelCard& card);

}  // namespace assay::train
