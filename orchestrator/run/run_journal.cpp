// run_journal: appends to the journal on disk and keeps the same in memory.
#include "orchestrator/run/run_journal.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/evidence/tpm_answer.h"
#include "orchestrator/judge/overall/ranking.h"
#include "probes/core/scale.h"

namespace assay::run {

namespace {

/// "memory.triad 21.3 GB/s pass"; of several cells how many pass, and the worst. While attempts are `open`, and where
/// the limit is relative to other steps, nothing can be judged yet, so only the value is shown.
StepWords results_words(const plan::Plan& plan, const judge::Results& results, bool open) {
  const judge::Result* worst = nullptr;
  std::size_t passed = 0;
  CellCounts cells{.steps = open ? 0U : 1U};
  for (const auto& one : results) {
    passed += one.outcome == judge::Outcome::pass ? 1 : 0;
    if (one.required)
      ++(one.outcome == judge::Outcome::pass   ? cells.passed
         : one.outcome == judge::Outcome::fail ? cells.failed
                                               : cells.open);
    if (worst == nullptr || judge::is_worse(one, *worst)) worst = &one;
  }
  if (worst == nullptr) return {};
  const plan::Requirement* requirement = plan.requirement(worst->requirement);
  const bool judged = !open && (requirement == nullptr || !requirement->is_of_others());
  const std::string value = worst->value ? " " + for_people(*worst->value, worst->unit) : "";
  const bool missed = judged && worst->outcome == judge::Outcome::fail;
  if (worst->outcome == judge::Outcome::error)
    return {.text = fmt::format("{}: {}", worst->requirement, worst->reason), .error = true, .cells = cells};
  const std::string outcome = judged ? fmt::format(" {}", worst->outcome) : "";
  if (results.size() == 1) return {.text = worst->requirement + value + outcome, .missed = missed, .cells = cells};
  return {.text = judged ? fmt::format("{} of {} cells pass, worst: {}{}{}", passed, results.size(), worst->requirement,
                                       value, outcome)
                         : fmt::format("{} cells, {}{}", results.size(), worst->requirement, value),
          .missed = missed,
          .cells = cells};
}

bool has_value(const judge::Results& results) {
  return std::ranges::any_of(results, [](const judge::Result& one) { return one.value.has_value(); });
}

}  // namespace

RunJournal::RunJournal(const plan::Plan& plan, const std::string& directory, judge::Journal journal,
                       judge::JournalWriter writer, Progress& progress, judge::KeptRecords records)
    : plan_(plan),
      progress_(progress),
      journal_(std::move(journal)),
      writer_(std::move(writer)),
      evidence_(judge::evidence_in(directory, std::move(records))) {
  for (std::size_t i = 0; i < journal_.attempts.size(); ++i) attempts_[journal_.attempts[i].step].push_back(i);
  for (const auto& cell : plan.coverage) {
    if (!cell.step.empty()) cells_[cell.step].push_back(cell);
  }
}

void RunJournal::node_up(const std::string& node, const nlohmann::json& facts) {
  journal_.node_facts[node] = facts;
  writer_.write(judge::JournalEntry::node_up(node, facts));
  progress_.node(node, "ready");
}

void RunJournal::node_down(const std::string& node, const std::string& reason) {
  journal_.node_events.push_back({.node = node, .reason = reason});
  writer_.write(judge::JournalEntry::node_down(node, reason));
  progress_.node(node, reason);
}

int RunJournal::begin_attempt(const plan::Step& step, const std::string& purpose, const std::string* secret_sha256) {
  const auto earlier = attempts_.find(step.id);
  const int number = earlier == attempts_.end() ? 1 : static_cast<int>(earlier->second.size()) + 1;
  if (secret_sha256 != nullptr) {
    begun_[step.id] =
        writer_.write(judge::JournalEntry::question_begin(step.id, number, step.nodes.front(), *secret_sha256));
    asked_[step.id] = fmt::format("{}:{}", writer_.head(), *secret_sha256);
  } else if (purpose.empty()) {
    begun_[step.id] = writer_.write(judge::JournalEntry::attempt_begin(step.id, number, step.nodes.front()));
  } else {
    judge::Attempt test;
    test.step = step.id;
    test.number = number;
    test.node = step.nodes.front();
    test.nodes = step.nodes;
    test.purpose = purpose;
    begun_[step.id] = writer_.write(judge::JournalEntry::test_begin(test));
  }
  jumped_s_[step.id] = writer_.jumped_s();
  progress_.step_begin(step, number);
  return number;
}

std::string RunJournal::nonce_of(const plan::Step& step) const {
  return judge::attempt_nonce(plan_.challenge, journal_.plan_sha256, step.nodes.front(), asked_.at(step.id));
}

void RunJournal::end_attempt(const plan::Step& step, judge::Attempt attempt, bool measured) {
  attempt.second_stage = journal_.second_stage && !attempt.is_extra();
  if (!measured) unmeasured_.insert(step.id);
  attempt.begin = begun_[step.id];
  if (const auto asked = asked_.find(step.id); asked != asked_.end()) attempt.asked = asked->second;
  attempt.end = writer_.write(judge::JournalEntry::attempt_end(attempt));
  attempt.jumped_s = writer_.jumped_s() - jumped_s_[step.id];
  attempts_[step.id].push_back(journal_.attempts.size());
  journal_.attempts.push_back(attempt);
  const judge::Attempt& ended = journal_.attempts.back();
  const bool judged = ended.outcome == AttemptOutcome::exited && cells_.contains(step.id) &&
                      (progress_.is_for_people() || !has_figure_);
  const judge::Results results = judged ? results_of(step) : judge::Results{};
  // Without readers of the progress, results are judged until there is a figure.
  has_figure_ = has_figure_ || has_value(results);
  count_cause(step, ended, results, judged ? has_value(results) : measured);
  StepWords words;
  if (progress_.is_for_people() && judged) words = results_words(plan_, results, wanted(step) > 0);
  // Of an attempt that broke its reason is shown, and the cells count when no further one is made.
  if (progress_.is_for_people() && !judged) words.cells = words_of(step).cells;
  progress_.step_end(step, ended.number, ended.outcome, ended.reason, words);
}

void RunJournal::count_cause(const plan::Step& step, const judge::Attempt& attempt, const judge::Results& results,
                             bool figure) {
  using enum AttemptOutcome;
  const bool broke = attempt.outcome == crashed || attempt.outcome == refused || attempt.outcome == deadline;
  const bool error = !results.empty() && std::ranges::all_of(results, [](const judge::Result& one) {
    return one.outcome == judge::Outcome::error;
  });
  if (figure) same_cause_ = {};
  if (figure || (!broke && !error)) return;
  std::string cause = broke ? fmt::format("{}: {}", attempt.outcome, attempt.reason) : results.front().reason;
  for (const auto& node : step.nodes) {
    for (auto at = cause.find(node); at != std::string::npos; at = cause.find(node, at + 1))
      cause.replace(at, node.size(), "*");
  }
  if (cause != same_cause_.cause) same_cause_ = {.cause = std::move(cause)};
  ++same_cause_.attempts;
  same_cause_.nodes.insert(step.nodes.begin(), step.nodes.end());
}

int RunJournal::begin_watch(const std::string& probe) {
  const int number = static_cast<int>(journal_.watches.size()) + 1;
  std::string time = writer_.write(judge::JournalEntry::watch_begin(number, probe));
  journal_.watches.push_back({.number = number, .probe = probe, .begin = std::move(time)});
  return number;
}

void RunJournal::end_watch(judge::Watch watch) {
  judge::Watch& begun = journal_.watches.at(static_cast<std::size_t>(watch.number) - 1);
  watch.begin = begun.begin;
  watch.end = writer_.write(judge::JournalEntry::watch_end(watch));
  begun = std::move(watch);
}

void RunJournal::begin_second_stage(const judge::SecondStage& steps) {
  writer_.write(judge::JournalEntry::second_stage_begin(steps));
  journal_.second_stage = true;
  journal_.more_attempts = steps;
  unmeasured_.clear();
}

void RunJournal::begin_localising() {
  if (!journal_.localising) writer_.write(judge::JournalEntry::localise_begin());
  journal_.localising = true;
}

void RunJournal::leave_out(const std::string& reason, const std::vector<std::string>& steps) {
  writer_.write(judge::JournalEntry::steps_left_out(reason, steps));
}

void RunJournal::interrupt() { writer_.write(judge::JournalEntry::run_interrupt()); }

void RunJournal::end_run() { writer_.write(judge::JournalEntry::run_end()); }

judge::Journal RunJournal::part_of(const plan::Step& step) const {
  judge::Journal part;
  part.plan_sha256 = journal_.plan_sha256;
  if (const auto again = journal_.more_attempts.find(step.id); again != journal_.more_attempts.end()) {
    part.second_stage = true;
    part.more_attempts.insert(*again);
  }
  if (const auto mine = attempts_.find(step.id); mine != attempts_.end()) {
    for (const std::size_t index : mine->second) part.attempts.push_back(journal_.attempts[index]);
  }
  const bool metered = std::ranges::any_of(
      step.requirements, [&](const std::string& id) { return !plan_.requirement(id)->during.empty(); });
  if (metered) part.watches = journal_.watches;
  for (const auto& node : step.nodes) {
    if (const auto facts = journal_.node_facts.find(node); facts != journal_.node_facts.end())
      part.node_facts.insert(*facts);
  }
  return part;
}

judge::Results RunJournal::results_of(const plan::Step& step) const {
  const auto cells = cells_.find(step.id);
  return judge::judge_step(plan_, step, cells == cells_.end() ? std::vector<plan::Cell>{} : cells->second,
                           part_of(step), evidence_);
}

StepWords RunJournal::words_of(const plan::Step& step) const {
  const bool over = cells_.contains(step.id) && attempts_.contains(step.id) && wanted(step) == 0;
  return over ? results_words(plan_, results_of(step), false) : StepWords{};
}

int RunJournal::wanted(const plan::Step& step) const {
  const bool second = journal_.second_stage;
  if (journal_.localising || unmeasured_.contains(step.id)) return 0;
  if (second && !journal_.more_attempts.contains(step.id)) return 0;
  int wanted = plan::attempts_of(step, stage());
  const auto mine = attempts_.find(step.id);
  if (mine == attempts_.end()) return wanted;
  for (const std::size_t index : mine->second) {
    const judge::Attempt& attempt = journal_.attempts[index];
    if (attempt.second_stage != second || attempt.outcome == AttemptOutcome::interrupted) continue;
    if (attempt.outcome != AttemptOutcome::exited) return 0;
    --wanted;
  }
  return std::max(0, wanted);
}

}  // namespace assay::run
