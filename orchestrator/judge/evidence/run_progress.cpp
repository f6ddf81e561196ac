// run_progress: counts attempts by step, stage and pass.
#include "orchestrator/judge/evidence/run_progress.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

namespace assay::judge {
namespace {

/// Attempts of one step that ended.
struct Ended {
  int first = 0, second = 0;
  bool broke = false;  ///< the last stage's, so that no more are made in it
};

}  // namespace

RunProgress progress_of(const plan::Plan& plan, const Journal& journal) {
  RunProgress progress{.stage = journal.second_stage ? plan::Stage::second : plan::Stage::first};
  const bool second = journal.second_stage;
  std::unordered_map<std::string, Ended> ended;
  std::set<std::string> tests;
  for (const auto& attempt : journal.attempts) {
    ++progress.outcomes[std::string(word_of(attempt.outcome))];
    if (attempt.is_extra()) tests.insert(attempt.step);
    if (attempt.is_extra() || attempt.outcome == AttemptOutcome::interrupted) continue;
    Ended& mine = ended[attempt.step];
    ++(attempt.second_stage ? mine.second : mine.first);
    mine.broke = mine.broke || (attempt.second_stage == second && attempt.outcome != AttemptOutcome::exited);
  }
  progress.tests = tests.size();
  const plan::Passes passes(plan);
  progress.pass = progress.passes = passes.count(progress.stage);
  for (const auto& step : plan.steps) {
    const Ended& mine = ended[step.id];
    const bool again = second && journal.more_attempts.contains(step.id);
    const int planned = step.attempts + (again ? step.more_attempts : 0);
    progress.attempts += planned;
    progress.attempts_ended += mine.first + mine.second;
    const int due = second ? (again ? step.more_attempts : 0) : step.attempts;
    const int made = second ? mine.second : mine.first;
    if (mine.broke || made >= due) {
      ++progress.steps_ended;
      continue;
    }
    // A step to be measured after the load begins in a later pass.
    const int before = step.after ? progress.passes - due : 0;
    progress.pass = std::min(progress.pass, before + made + 1);
  }
  return progress;
}

}  // namespace assay::judge
