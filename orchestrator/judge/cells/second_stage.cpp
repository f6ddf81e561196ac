// second_stage: selects the steps with a required cell that is open or failed after the first stage; see
// second_stage.h.
#include "orchestrator/judge/cells/second_stage.h"

#include <set>
#include <string_view>

#include <fmt/format.h>

#include "orchestrator/judge/cells/judge.h"

namespace assay::judge {

SecondStage second_stage(const plan::Plan& plan, const Results& results) {
  std::map<std::string_view, const Result*> open;  // the first of each step
  for (const auto& result : results) {
    // More attempts show nothing new of a condition.
    if (result.required && result.outcome != Outcome::pass && !result.step.empty() && !result.is_of_demand())
      open.emplace(result.step, &result);
  }
  for (const auto& cell : plan.coverage) {
    const auto found = cell.against.empty() ? open.end() : open.find(cell.step);
    if (found != open.end()) open.emplace(cell.against, found->second);
  }
  SecondStage chosen;
  std::set<std::string_view> loaded;
  for (const auto& step : plan.steps) {
    const auto found = open.find(step.id);
    if (found == open.end() || step.more_attempts == 0) continue;
    const Result& result = *found->second;
    chosen.emplace(step.id, fmt::format("{} on {} is {}", result.requirement, result.node, result.outcome));
    loaded.insert(step.nodes.begin(), step.nodes.end());
  }
  for (const auto& step : plan.steps) {
    if (!step.after || step.more_attempts == 0) continue;
    for (const auto& node : step.nodes) {
      if (loaded.contains(node)) chosen.emplace(step.id, fmt::format("{} is loaded once more", node));
    }
  }
  return chosen;
}

std::optional<InputError> check_second_stage(const plan::Plan& plan, const Journal& journal,
                                             const EvidenceReader& evidence) {
  constexpr const char* kHint =
      "the second stage follows from the plan and the results of the first one; restore the journal";
  if (!journal.second_stage) return std::nullopt;
  const SecondStage due = second_stage(plan, judge_first_stage(plan, journal, evidence));
  for (const auto& [step, reason] : journal.more_attempts) {
    if (due.contains(step)) continue;
    return InputError{"journal.jsonl",
                      fmt::format("measures {} in a second stage, which the attempts before it did not ask for", step),
                      kHint};
  }
  for (const auto& [step, reason] : due) {
    if (journal.more_attempts.contains(step)) continue;
    return InputError{
        "journal.jsonl",
        fmt::format("measures {} in no second stage, which the attempts before it ask for: {}", step, reason), kHint};
  }
  return std::nullopt;
}

}  // namespace assay::judge
