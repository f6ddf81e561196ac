// checkpoint_layout: MLPerf Storage's layouts over the parameters of the models' cards.
#include "workloads/cluster_checkpoint/checkpoint_layout.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "probes/core/parameters.h"
#include "workloads/storage/shared/direct_file.h"

namespace assay::cluster_checkpoint {
namespace {

/// MLPerf Storage's model of 10^12 parameters: hidden 25872 with 192 heads and 32 for keys and values, whose width of
/// 4312 is that of a sixth of the heads; no head has a whole width, so the sixths are written as heads here.
constexpr train::ModelShape kLlama3_1t{
    .layers = 128, .hidden = 25872, .ffn = 98304, .heads = 6, .kv_heads = 1, .head_dim = 4312, .vocab = 128256};
static_assert(kLlama3_1t.q() == 25872 && kLlama3_1t.kv() == 25872 * 32 / 192);

constexpr CheckpointModel model_of(std::string_view name, const train::ModelShape& shape, std::uint64_t tensor,
                                   std::uint64_t pipeline, std::uint64_t data, bool sharded_weights) {
  return {.name = name,
          .parameters = train::total_parameters(shape),
          .layers = shape.layers,
          .tensor = tensor,
          .pipeline = pipeline,
          .data = data,
          .sharded_weights = sharded_weights};
}

// mlcommons/storage Rules.md, checkpointing: tensor x pipeline x data parallelism and ZeRO stage of each model.
constexpr std::array kModels = {
    model_of("llama3-8b", train::kLlama3_8b, 1, 1, 8, true),
    model_of("llama3-70b", train::kLlama3_70b, 8, 1, 8, true),
    model_of("llama3-405b", train::kLlama3_405b, 8, 32, 2, false),
    model_of("llama3-1t", kLlama3_1t, 8, 64, 2, false),
};
constexpr std::uint64_t kFilesOfProcess = 64;  // more than any process has; numbers stay unique

std::uint64_t whole_blocks(std::uint64_t bytes, std::uint64_t parts) {
  const std::uint64_t each = (bytes + parts - 1) / parts;
  return std::max<std::uint64_t>(1, (each + cluster_storage::kDirectBlock - 1) / cluster_storage::kDirectBlock) *
         cluster_storage::kDirectBlock;
}

}  // namespace

std::span<const CheckpointModel> checkpoint_models() { return kModels; }

const CheckpointModel& checkpoint_model(const std::string& name) {
  for (const auto& model : kModels) {
    if (model.name == name) return model;
  }
  throw BadParameter("model: there is no layout of " + name);
}

std::vector<CheckpointShard> checkpoint_shards(const CheckpointModel& model, std::uint64_t divisor, std::uint64_t rank,
                                               std::uint64_t world) {
  const auto parameters = static_cast<std::uint64_t>(model.parameters);
  const std::uint64_t processes = model.processes(), replica = model.tensor * model.pipeline;
  const auto layers = static_cast<std::uint64_t>(model.layers);
  std::vector<CheckpointShard> shards;
  std::uint64_t offset = 0;
  const auto add = [&](std::uint64_t number, std::uint64_t bytes, std::uint64_t parts) {
    const std::uint64_t size = whole_blocks(bytes, parts * divisor);
    shards.push_back({.number = number, .size = size, .offset = offset});
    offset += size;
  };
  for (std::uint64_t process = rank * processes / world; process < (rank + 1) * processes / world; ++process) {
    const std::uint64_t first = process * kFilesOfProcess;
    add(first, kOptimizerBytes * parameters, processes);
    if (model.sharded_weights) add(first + 1, kWeightBytes * parameters, processes);
    if (model.sharded_weights || process >= replica) continue;
    const std::uint64_t stage = process / model.tensor;
    const std::uint64_t of_stage =
        (stage + 1) * layers / model.pipeline - stage * layers / model.pipeline;  // its layers have the stage's weights
    for (std::uint64_t layer = 0; layer < of_stage; ++layer)
      add(first + 1 + layer, kWeightBytes * parameters, replica * of_stage);
  }
  return shards;
}

std::uint64_t payload_of(const std::vector<CheckpointShard>& shards) {
  return shards.empty() ? 0 : shards.back().offset + shards.back().size;
}

std::string checkpoint_identity(const CheckpointModel& model, std::uint64_t divisor) {
  return divisor == 1 ? std::string(model.name) : fmt::format("{}/{}", model.name, divisor);
}

}  // namespace assay::cluster_checkpoint
