// rank_process: the process of one rank and one GPU. The leader of the node starts it and asks; it answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/nccl/communicator.h"

namespace assay::nccl {

/// Arguments of a rank at its start.
struct RankPlace {
  int rank = 0;  ///< among the ranks of all nodes
  int ranks = 1;
  std::string gpu;        ///< UUID
  std::string operation;  ///< one of kOperations
  std::string type;       ///< one of kElements
};

/// The arguments that make this program a rank, its name first. They are not part of the probe's interface.
std::vector<std::string> rank_arguments(const std::string& program, const RankPlace& place);

/// Runs as a rank when the arguments say so, until standard input ends; the exit code then. Nothing if they do not.
std::optional<int> rank_main(int argc, char** argv, const Product& product);

}  // namespace assay::nccl
