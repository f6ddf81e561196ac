// rank_job: what a leader passes to its ranks at their start.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/train/host_engine.h"

namespace assay::train {

/// A rank's part and the address it uses.
struct RankStart {
  RankJob job;
  std::string address;  ///< numeric, of this machine; not looked at where there is one rank
};

/// The words of DataMode.
inline constexpr std::string_view kDataModes = "gaussian replicated ring";
/// The mode of this word. Throws std::logic_error for another word: parameters are checked before.
DataMode data_mode_named(std::string_view word);

/// The arguments of the ranks' program, its name first, then this process' id.
std::vector<std::string> rank_arguments(const RankStart& start);

/// What rank_arguments() passed; nothing for other arguments.
std::optional<RankStart> rank_start(const std::vector<std::string>& arguments);

}  // namespace assay::train
