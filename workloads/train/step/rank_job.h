// rank_job: arguments of ranks from their leader at their start.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "workloads/train/graph/step_job.h"
#include "workloads/train/step/step_evidence.h"

namespace assay::train {

/// Place of a rank's sign of life for its leader, and facts of its node.
struct BoardPlace {
  int descriptor = -1;
  std::size_t ranks = 0, own = 0;  ///< pages of the board, and this rank's
  double period_s = 0;             ///< of its heartbeat
  std::string folder = {};         ///< of this node, for its states; empty: none
};

/// A rank's part and the address it uses.
struct RankStart {
  RankJob job;
  std::string address;                   ///< numeric, of this machine; not looked at if there is one rank
  std::optional<BoardPlace> board = {};  ///< of ranks that are watched
};

/// The mode of this word. Throws std::logic_error for another word: parameters are checked before.
DataMode data_mode_named(std::string_view word);
/// The type of factors of one of "tf32 bf16 fp8". Throws likewise.
FactorType factor_type_named(std::string_view word);

/// The arguments of the ranks' program, its name `program` first, then this process' id.
std::vector<std::string> rank_arguments(const char* program, const RankStart& start);

/// The content of rank_arguments(); nothing for other arguments.
std::optional<RankStart> rank_start(const std::vector<std::string>& arguments);

/// The steps of one rank: `wall`, `collective` and `optimizer` in s, and `alone`, a list of role, pass and s. Throws
/// nlohmann::json::exception for anything else.
RankSteps steps_from(const nlohmann::json& answer);

/// A print of weights or gradients: both sums. Throws likewise.
RankPrint print_from(const nlohmann::json& words);

}  // namespace assay::train
