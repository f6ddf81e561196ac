// rank_answers: what a rank answers its leader about its steps, read back.
#pragma once

#include <nlohmann/json.hpp>

#include "workloads/train/step/step_evidence.h"

namespace assay::train {

/// The steps of one rank: `wall`, `collective` and `optimizer` in s, and `alone`, a list of role, pass and s. Throws
/// nlohmann::json::exception for anything else.
RankSteps steps_from(const nlohmann::json& answer);

/// A print of weights or gradients: both sums. Throws likewise.
RankPrint print_from(const nlohmann::json& words);

}  // namespace assay::train
