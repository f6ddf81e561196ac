// model_card: reads and writes a card as JSON. Sizes are bounded so that no product of them overflows.
#include "workloads/train/graph/model_card.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/parameters.h"
#include "probes/core/strict_object.h"

namespace assay::train {
namespace {

constexpr const char* kSchema = "assay.model/1";
constexpr const char* kHint = "docs/FORMATS.md describes assay.model/1";
constexpr std::int64_t kMostLayers = 10'000, kMostWidth = 1 << 20, kMostVocab = 1 << 24, kMostExperts = 1 << 16;
constexpr std::int64_t kMostParameters = std::int64_t{1} << 50;

constexpr std::array kPresets = {
    Preset{"llama3-8b", kLlama3_8b},       Preset{"llama3-70b", kLlama3_70b},  Preset{"llama3-405b", kLlama3_405b},
    Preset{"mixtral-8x7b", kMixtral_8x7b}, Preset{"deepseek-v3", kDeepseekV3}, Preset{"tiny-dense", kTinyDense},
    Preset{"tiny-moe", kTinyMoe},          Preset{"small-dense", kSmallDense},
};

std::optional<Experts> read_experts(StrictObject& card, std::int64_t layers) {
  const auto* object = card.optional("moe");
  if (object == nullptr || object->is_null()) return std::nullopt;
  StrictObject fields(*object, "moe", kHint);
  Experts moe;
  moe.experts = fields.whole("experts", 1, kMostExperts);
  moe.top_k = fields.whole("top_k", 1, moe.experts);
  moe.ffn = fields.whole("ffn", 1, kMostWidth);
  moe.shared = fields.whole("shared", 0, kMostExperts);
  moe.first_dense = fields.whole("first_dense", 0, layers);
  if (fields.optional("router_bias") != nullptr) moe.router_bias = fields.flag("router_bias");
  fields.done();
  return moe;
}

std::optional<Latent> read_latent(StrictObject& card) {
  const auto* object = card.optional("mla");
  if (object == nullptr || object->is_null()) return std::nullopt;
  StrictObject fields(*object, "mla", kHint);
  Latent mla;
  mla.q_lora = fields.whole("q_lora", 1, kMostWidth);
  mla.kv_lora = fields.whole("kv_lora", 1, kMostWidth);
  mla.nope = fields.whole("nope", 1, kMostWidth);
  mla.rope = fields.whole("rope", 1, kMostWidth);
  mla.v = fields.whole("v", 1, kMostWidth);
  fields.done();
  return mla;
}

/// An upper bound of all parameters in floating point, for the one check that integers could not make.
double rough_parameters(const ModelShape& m) {
  const double h = static_cast<double>(m.hidden), heads = static_cast<double>(m.heads);
  const double attention =
      4 * h * heads * static_cast<double>(m.mla ? m.mla->nope + m.mla->rope + m.mla->v : m.head_dim) +
      (m.mla ? static_cast<double>(m.mla->q_lora + m.mla->kv_lora) *
                   (h + heads * static_cast<double>(m.mla->nope + m.mla->rope + m.mla->v))
             : 0);
  const double experts =
      m.moe ? static_cast<double>(m.moe->experts + m.moe->shared) * 3 * h * static_cast<double>(m.moe->ffn + 1) : 0;
  return static_cast<double>(m.layers) * (attention + 3 * h * static_cast<double>(m.ffn) + experts) +
         2 * h * static_cast<double>(m.vocab);
}

ModelCard read_card(const nlohmann::json& document) {
  StrictObject card(document, "", kHint);
  if (card.text("schema") != kSchema) card.refuse("schema", fmt::format("it is not '{}'", kSchema));
  ModelCard read;
  ModelShape& shape = read.shape;
  read.name = card.text("name");
  if (read.name.empty() || read.name.size() > kLongestSubject) card.refuse("name", "it has not 1 to 255 bytes");
  shape.layers = card.whole("layers", 1, kMostLayers);
  shape.hidden = card.whole("hidden", 1, kMostWidth);
  shape.ffn = card.whole("ffn", 1, kMostWidth);
  shape.heads = card.whole("heads", 1, kMostWidth);
  shape.kv_heads = card.whole("kv_heads", 1, shape.heads);
  if (shape.heads % shape.kv_heads != 0)
    card.refuse("kv_heads", fmt::format("{} do not divide {} heads", shape.kv_heads, shape.heads));
  shape.head_dim = card.whole("head_dim", 1, kMostWidth);
  shape.vocab = card.whole("vocab", 2, kMostVocab);
  shape.tied = card.flag("tied");
  if (card.text("mlp") != "swiglu") card.refuse("mlp", "it is not 'swiglu', the only one known");
  const std::string attention = card.text("attention");
  if (attention != "gqa" && attention != "mla") card.refuse("attention", "it is neither 'gqa' nor 'mla'");
  shape.moe = read_experts(card, shape.layers);
  shape.mla = read_latent(card);
  if ((attention == "mla") != shape.mla.has_value())
    card.refuse("mla", fmt::format("attention is '{}', which {}", attention,
                                   shape.mla ? "has no such object" : "needs its widths here"));
  card.done();
  if (rough_parameters(shape) > static_cast<double>(kMostParameters))
    card.refuse("layers", "the sizes together are more than 2^50 parameters");
  return read;
}

}  // namespace

std::span<const Preset> presets() { return kPresets; }

std::expected<ModelCard, InputError> read_model_card(std::string_view text, const std::string& where) {
  auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  return read_strictly(where, [&] { return read_card(*document); });
}

ModelCard model_card(const std::string& name_or_path) {
  std::string known;
  for (const auto& preset : kPresets) {
    if (preset.name == name_or_path) return {.name = std::string(preset.name), .shape = preset.shape};
    known += fmt::format(" {}", preset.name);
  }
  if (name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".json"))
    throw BadParameter(fmt::format("model: '{}' is none of{}, and no path of a card", name_or_path, known));
  const auto text = read_file(name_or_path, 1 << 20);
  if (!text) throw BadParameter("model: " + text.error().text());
  auto card = read_model_card(*text, name_or_path);
  if (!card) throw BadParameter("model: " + card.error().text());
  return std::move(*card);
}

std::string model_card_json(const ModelCard& card) {
  const ModelShape& m = card.shape;
  nlohmann::ordered_json document = {
      {"schema", kSchema}, {"name", card.name}, {"layers", m.layers},     {"hidden", m.hidden},
      {"ffn", m.ffn},      {"heads", m.heads},  {"kv_heads", m.kv_heads}, {"head_dim", m.head_dim},
      {"vocab", m.vocab},  {"tied", m.tied},    {"mlp", "swiglu"},        {"attention", m.mla ? "mla" : "gqa"}};
  document["moe"] = nullptr;
  if (m.moe)
    document["moe"] = {{"experts", m.moe->experts},
                       {"top_k", m.moe->top_k},
                       {"ffn", m.moe->ffn},
                       {"shared", m.moe->shared},
                       {"first_dense", m.moe->first_dense},
                       {"router_bias", m.moe->router_bias}};
  if (m.mla)
    document["mla"] = {{"q_lora", m.mla->q_lora},
                       {"kv_lora", m.mla->kv_lora},
                       {"nope", m.mla->nope},
                       {"rope", m.mla->rope},
                       {"v", m.mla->v}};
  return document.dump();
}

}  // namespace assay::train
