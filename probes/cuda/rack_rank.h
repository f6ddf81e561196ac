// rack_rank: the process of one rank of a rack. The leader of its tray starts it and asks; it answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/core/units.h"

namespace assay::cuda {

/// Arguments of a rank at its start.
struct RackPlace {
  int rank = 0;  ///< among the ranks of all trays
  int ranks = 1;
  std::string gpu;     ///< UUID
  std::string engine;  ///< "sm" or "ce"
  Bytes size;          ///< of the payload, and of the landing place
};

/// The arguments that make this program a rank, its name first. They are not part of the probe's interface.
std::vector<std::string> rack_rank_arguments(const std::string& program, const RackPlace& place);

/// Runs as a rank when the arguments say so, until standard input ends; the exit code then. Nothing if they do not.
std::optional<int> rack_rank_main(int argc, char** argv);

}  // namespace assay::cuda
