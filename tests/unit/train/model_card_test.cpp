// Model cards as documents: what is read comes back, and what is wrong is named.
#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>

#include "probes/core/parameters.h"
#include "workloads/train/graph/model_card.h"

namespace assay::train {
namespace {

const std::string kTiny =
    R"({"schema":"assay.model/1","name":"tiny","layers":2,"hidden":48,"ffn":96,"heads":12,"kv_heads":12,"head_dim":4,)"
    R"("vocab":96,"tied":false,"mlp":"swiglu","attention":"gqa","moe":null})";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kTiny;
  return text.replace(text.find(from), from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto card = read_model_card(text, "card.json");
  return card ? "" : card.error().text();
}

void expect_error(const std::string& text, const std::string& part) {
  EXPECT_NE(error_of(text).find(part), std::string::npos) << error_of(text);
}

TEST(ModelCard, every_preset_survives_the_way_through_its_document) {
  for (const auto& preset : presets()) {
    const ModelCard card{.name = std::string(preset.name), .shape = preset.shape};
    const auto again = read_model_card(model_card_json(card), "card.json");
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, card);
  }
}

// The publishers' tokens/s over FLOP/s, as NVIDIA prints both: 8B 5.148e10, 405B 2.5215e12, DeepSeek-V3 with MTP
// 2.606e11.
TEST(ModelCard, flop_per_token_is_within_a_thousandth_of_what_published_rates_imply) {
  EXPECT_NEAR(static_cast<double>(flop_per_token(kLlama3_8b, 8192)) / 5.148e10, 1, 1e-3);
  EXPECT_NEAR(static_cast<double>(flop_per_token(kLlama3_405b, 8192)) / 2.5215e12, 1, 1e-3);
  const auto with_mtp = flop_per_token(kDeepseekV3, 4096) + mtp_flop_per_token(kDeepseekV3, 4096);
  EXPECT_NEAR(static_cast<double>(with_mtp) / 2.606e11, 1, 1e-3);
}

TEST(ModelCard, counting_all_of_the_sequence_adds_an_eighth_for_8b) {
  const double ratio = static_cast<double>(flop_per_token(kLlama3_8b, 8192, false)) /
                       static_cast<double>(flop_per_token(kLlama3_8b, 8192));
  EXPECT_NEAR(ratio, 1.125, 5e-4);
}

TEST(ModelCard, is_read_strictly) {
  EXPECT_EQ(error_of(kTiny), "");
  expect_error(changed("\"layers\":2", "\"layers\":0"), "layers");
  expect_error(changed("\"kv_heads\":12", "\"kv_heads\":5"), "kv_heads: 5 do not divide 12 heads");
  expect_error(changed("\"swiglu\"", "\"gelu\""), "mlp: it is not 'swiglu'");
  expect_error(changed("\"gqa\"", "\"mla\""), "mla: attention is 'mla', which needs its widths here");
  expect_error(changed("\"moe\":null", "\"moe\":{\"experts\":4}"), "moe.top_k");
  expect_error(changed("\"tied\":false", "\"tied\":false,\"bias\":true"), "bias");
  expect_error(changed("assay.model/1", "assay.model/2"), "schema: it is not 'assay.model/1'");
  expect_error(changed("\"vocab\":96", "\"vocab\":96,\"vocab\":96"), "vocab");
}

TEST(ModelCard, whose_sizes_multiply_beyond_any_memory_is_refused) {
  std::string text = changed("\"layers\":2", "\"layers\":10000");
  for (const char* name : {"\"hidden\":48", "\"ffn\":96", "\"vocab\":96"}) {
    const std::string field = name;
    text.replace(text.find(field), field.size(), field.substr(0, field.find(':')) + ":1048576");
  }
  expect_error(text, "more than 2^50 parameters");
}

TEST(ModelCard, that_is_unknown_is_refused_with_those_that_are_known) {
  try {
    (void)model_card("llama4");
    FAIL() << "it was taken";
  } catch (const BadParameter& error) {
    EXPECT_STREQ(error.what(),
                 "model: 'llama4' is none of llama3-8b llama3-70b llama3-405b mixtral-8x7b deepseek-v3 "
                 "tiny-dense tiny-moe small-dense, and no path of a card");
  }
}

TEST(ModelCard, is_read_from_the_file_at_its_path) {
  const std::string path = testing::TempDir() + "assay-card.json";
  std::ofstream(path) << kTiny;
  EXPECT_EQ(model_card(path).shape.heads, 12);
  (void)std::remove(path.c_str());  // what stays of a test is in /tmp
  EXPECT_THROW((void)model_card(path), BadParameter);
}

}  // namespace
}  // namespace assay::train
