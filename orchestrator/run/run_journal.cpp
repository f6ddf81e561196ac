// run_journal: appends to the journal on disk and keeps the same in memory.
#include "orchestrator/run/run_journal.h"

#include <utility>

#include "orchestrator/judge/judge.h"

namespace assay::run {

RunJournal::RunJournal(const plan::Plan& plan, const std::string& directory, judge::Journal journal,
                       judge::JournalWriter writer, Progress& progress)
    : plan_(plan),
      progress_(progress),
      journal_(std::move(journal)),
      writer_(std::move(writer)),
      evidence_(judge::evidence_in(directory)) {
  for (std::size_t i = 0; i < journal_.attempts.size(); ++i) attempts_[journal_.attempts[i].step].push_back(i);
  for (const auto& cell : plan.coverage) {
    if (!cell.step.empty()) cells_[cell.step].push_back(cell);
  }
}

void RunJournal::node_up(const std::string& node, const nlohmann::json& facts) {
  journal_.node_facts[node] = facts;
  writer_.node_up(node, facts);
  progress_.node(node, "ready");
}

void RunJournal::node_down(const std::string& node, const std::string& reason) {
  journal_.node_events.push_back({.node = node, .time = "", .reason = reason});
  writer_.node_down(node, reason);
  progress_.node(node, reason);
}

int RunJournal::begin_attempt(const plan::Step& step, const std::string& purpose) {
  const auto earlier = attempts_.find(step.id);
  const int number = earlier == attempts_.end() ? 1 : static_cast<int>(earlier->second.size()) + 1;
  if (purpose.empty()) {
    writer_.attempt_begin(step.id, number, step.nodes.front());
  } else {
    judge::Attempt test;
    test.step = step.id;
    test.number = number;
    test.node = step.nodes.front();
    test.nodes = step.nodes;
    test.purpose = purpose;
    writer_.test_begin(test);
  }
  progress_.step_begin(step, number);
  return number;
}

void RunJournal::end_attempt(const plan::Step& step, judge::Attempt attempt) {
  writer_.attempt_end(attempt);
  progress_.step_end(step, attempt.number, attempt.outcome, attempt.reason);
  attempts_[step.id].push_back(journal_.attempts.size());
  journal_.attempts.push_back(std::move(attempt));
}

void RunJournal::begin_localising() {
  if (!journal_.localising) writer_.localise_begin();
  journal_.localising = true;
}

void RunJournal::leave_out(const std::string& reason, const std::vector<std::string>& steps) {
  writer_.steps_left_out(reason, steps);
}

void RunJournal::end_run() { writer_.run_end(); }

judge::Journal RunJournal::part_of(const plan::Step& step) const {
  judge::Journal part;
  if (const auto mine = attempts_.find(step.id); mine != attempts_.end()) {
    for (const std::size_t index : mine->second) part.attempts.push_back(journal_.attempts[index]);
  }
  for (const auto& node : step.nodes) {
    if (const auto facts = journal_.node_facts.find(node); facts != journal_.node_facts.end())
      part.node_facts.insert(*facts);
  }
  return part;
}

std::vector<judge::Result> RunJournal::results_of(const plan::Step& step) const {
  const auto cells = cells_.find(step.id);
  return judge::judge_step(plan_, step, cells == cells_.end() ? std::vector<plan::Cell>{} : cells->second,
                           part_of(step), evidence_);
}

bool RunJournal::wants_attempt(const plan::Step& step) const {
  std::size_t ended = 0;
  if (const auto mine = attempts_.find(step.id); mine != attempts_.end()) {
    for (const std::size_t index : mine->second) {
      const judge::Attempt& attempt = journal_.attempts[index];
      if (attempt.outcome == AttemptOutcome::interrupted) continue;
      ++ended;
      if (attempt.outcome != AttemptOutcome::exited) return false;
    }
  }
  if (ended == 0) return true;
  return ended < static_cast<std::size_t>(step.looks) && judge::another_look_decides(results_of(step));
}

}  // namespace assay::run
