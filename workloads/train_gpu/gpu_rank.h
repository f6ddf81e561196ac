// gpu_rank: the process of one rank of cuda_train_step and its GPU. The leader of the node starts it and asks.
#pragma once

#include <optional>

namespace assay::train_gpu {

/// Runs as a rank when the arguments are those of rank_arguments(), until standard input ends; the exit code then.
/// Nothing when they are not.
std::optional<int> gpu_rank_main(int argc, char** argv);

}  // namespace assay::train_gpu
