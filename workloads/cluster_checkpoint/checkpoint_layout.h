// checkpoint_layout: the files of a model's checkpoint, and which node has which of them. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/train/graph/model_card.h"

namespace assay::cluster_checkpoint {

/// A model and how the processes that train it divide it.
struct CheckpointModel {
  std::string_view name;
  std::int64_t parameters = 0;
  std::int64_t layers = 0;
  std::uint64_t tensor = 1, pipeline = 1, data = 1;  ///< degrees of parallelism
  bool sharded_weights = false;                      ///< ZeRO 3; else ZeRO 1

  [[nodiscard]] constexpr std::uint64_t processes() const { return tensor * pipeline * data; }
};

/// Weights in 2 B, and the optimizer's master weights and two moments in 4 B each.
inline constexpr std::uint64_t kWeightBytes = 2, kOptimizerBytes = 12;

/// llama3-8b, -70b, -405b and -1t with the processes of MLPerf Storage.
std::span<const CheckpointModel> checkpoint_models();

/// Throws BadParameter for another name.
const CheckpointModel& checkpoint_model(const std::string& name);

/// One file of a checkpoint.
struct CheckpointShard {
  std::uint64_t number = 0;  ///< unique in the checkpoint
  std::uint64_t size = 0;    ///< B, a multiple of kDirectBlock
  std::uint64_t offset = 0;  ///< B in the memory of its node
};

/// The files that node `rank` of `world` saves. Processes are divided among the nodes in blocks as equal as can be.
/// Each process has an optimizer file; a file of weights too under ZeRO 3; under ZeRO 1 the processes of the first
/// data-parallel replica, which are the first of all, have one for each layer of their pipeline stage. Every size is
/// divided by `divisor` and rounded up to whole blocks.
std::vector<CheckpointShard> checkpoint_shards(const CheckpointModel& model, std::uint64_t divisor, std::uint64_t rank,
                                               std::uint64_t world);

/// Their sizes together.
std::uint64_t payload_of(const std::vector<CheckpointShard>& shards);

/// Subject of its figures: "llama3-70b" when it is whole, else "llama3-70b/1000".
std::string checkpoint_identity(const CheckpointModel& model, std::uint64_t divisor);

}  // namespace assay::cluster_checkpoint
