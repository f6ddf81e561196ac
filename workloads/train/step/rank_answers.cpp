// rank_answers: reads the fields of a rank's JSON answers.
#include "workloads/train/step/rank_answers.h"

namespace assay::train {

using nlohmann::json;

RankSteps steps_from(const json& answer) {
  RankSteps steps{.wall = answer.at("wall"),
                  .collective = answer.at("collective"),
                  .optimizer = answer.at("optimizer"),
                  .alone = {}};
  for (const auto& one : answer.at("alone"))
    steps.alone[{static_cast<Role>(one.at(0).get<int>()), static_cast<Pass>(one.at(1).get<int>())}] = one.at(2);
  return steps;
}

RankPrint print_from(const json& words) { return {.shared = words.at(0), .experts = words.at(1)}; }

}  // namespace assay::train
