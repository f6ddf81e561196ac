// runner_stages: the turns of a stage, pass after pass, and the steps of the second stage.
#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/files/in_parallel.h"
#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/cells/stability_looks.h"
#include "orchestrator/run/runner.h"
#include "probes/core/utc_time.h"

namespace assay::run {

namespace asio = boost::asio;

/// Shows the journal's state of a resumed run.
void Runner::show_kept() {
  const judge::Journal& journal = journal_.journal();
  std::vector<const plan::Step*> again;
  for (const auto& step : plan_.steps) {
    if (journal.more_attempts.contains(step.id)) again.push_back(&step);
  }
  if (!again.empty()) progress_.second_stage(again);
  struct Ended {
    int made = 0;
    std::vector<double> took_s;
  };
  std::map<std::string, Ended> ended;
  for (const auto& attempt : journal.attempts) {
    if (attempt.is_extra() || attempt.outcome == AttemptOutcome::interrupted) continue;
    Ended& mine = ended[attempt.step];
    ++mine.made;
    const auto begin = utc_time(attempt.begin), end = utc_time(attempt.end);
    if (attempt.outcome == AttemptOutcome::exited && begin && end && *begin <= *end)
      mine.took_s.push_back(std::chrono::duration<double>(*end - *begin).count());
  }
  std::vector<StepWords> words(plan_.steps.size());
  if (progress_.is_for_people() && !ended.empty())
    files::in_parallel(words.size(), journal_.evidence().threads(),
                       [&](unsigned, std::size_t i) { words[i] = journal_.words_of(plan_.steps[i]); });
  for (std::size_t i = 0; i < words.size(); ++i) {
    const plan::Step& step = plan_.steps[i];
    const Ended& mine = ended[step.id];
    if (mine.made > 0 || journal.second_stage)
      progress_.step_kept(step, mine.made, journal_.wanted(step), mine.took_s, words[i]);
  }
}

/// A node keeps its agent while the second stage may measure it again, and after that when a search may need it.
void Runner::keep_agents() {
  std::set<std::string_view> searched;
  for (const auto& search : plan_.searches) {
    if (search.budget.most > 0) searched.insert(search.step);
  }
  for (auto& lane : node_work_) lane.kept = false;
  for (const auto& step : plan_.steps) {
    const bool again = journal_.stage() == plan::Stage::first && step.more_attempts > 0;
    if (!again && !searched.contains(step.id)) continue;
    for (const auto& node : step.nodes) work_of(node).kept = true;
  }
}

/// Where open steps write to storages, no step begins before every agent has said how much is free there.
void Runner::demand_space() {
  std::set<const plan::Step*> open;
  for (const auto& lane : node_work_) open.insert(lane.queue.begin(), lane.queue.end());
  for (auto& use : plan::storage_uses(plan_)) {
    if (open.contains(use.step)) uses_.push_back(std::move(use));
  }
  waits_for_agents_ = !uses_.empty();
  starter_.ask_free(plan::storage_directories(uses_));
}

/// All agents that can be had are there.
void Runner::begin_steps() {
  waits_for_agents_ = false;
  plan::FreeSpace free;
  for (const auto& lane : node_work_) {
    if (lane.agent.get() != nullptr) free[lane.agent.node().name] = lane.agent.get()->free();
  }
  for (auto& shortage : plan::short_of_space(uses_, free)) {
    if (options_.leaves_out_what_does_not_fit) {
      too_large_[fmt::format("{}: {}", shortage.lacking.where, shortage.lacking.what)].push_back(shortage.step->id);
      drop(*shortage.step);
      continue;
    }
    no_space_ = std::move(shortage.lacking);
    stopping_ = true;
    break;
  }
  advance_all();
}

/// Every turn of the stage that is left, in the order of its passes.
void Runner::queue_turns() {
  const plan::Stage stage = journal_.stage();
  std::map<const plan::Step*, int> made;
  for (const auto& step : plan_.steps) made[&step] = plan::attempts_of(step, stage) - journal_.wanted(step);
  for (int pass = 1; pass <= passes_.count(stage); ++pass) {
    for (const plan::Step* step : passes_.steps(stage, pass)) {
      if (made[step]-- > 0) continue;
      for (const auto& node : step->nodes) work_of(node).queue.push_back(step);
    }
  }
}

/// The turns of the stage, until every node is through with them or given up.
asio::awaitable<void> Runner::run_stage() {
  dropped_.clear();
  stop_at_crossing();
  open_lanes_ = node_work_.size();
  std::vector<NodeWork*> absent;
  for (auto& lane : node_work_) {
    lane.resting = false;
    lane.busy = !lane.queue.empty() && lane.agent.get() == nullptr;
    if (lane.busy) absent.push_back(&lane);
  }
  for (auto& lane : node_work_) {
    if (lane.queue.empty()) rest(lane);
  }
  starting_ = absent.size();
  for (NodeWork* lane : absent) {  // before any step begins, which makes nodes busy that have their agent
    if (stopping_) {
      rest(*lane);
    } else if (lane->agent.may_restart()) {
      lane->gone = false;
      begin(*lane);
    } else {
      give_up(*lane);
    }
  }
  advance_all();
  while (open_lanes_ > 0) co_await change();
}

/// With an agreement that ends early: once all nodes have had as many attempts and the interruptions of all meet a
/// boundary, the soak's steps get no more. An attempt that is running ends.
void Runner::stop_at_crossing() {
  if (!plan_.agreed_stability || plan_.agreed_stability->stop != plan::StabilityStop::early) return;
  if (journal_.stage() != plan::Stage::first) return;
  int fewest = static_cast<int>(plan_.looks.size());
  for (const auto& step : plan_.steps) {
    if (judge::is_of_stability(plan_, step)) fewest = std::min(fewest, step.attempts - journal_.wanted(step));
  }
  if (fewest <= std::exchange(looked_, std::max(looked_, fewest))) return;
  const judge::Result path = judge::judge_stability(plan_, journal_.journal(), journal_.evidence());
  if (path.outcome == judge::Outcome::inconclusive) return;
  progress_.node("all nodes", "the soak ends: " + path.reason);
  for (const auto& step : plan_.steps) {
    if (judge::is_of_stability(plan_, step)) drop(step);
  }
}

/// Whether anything may follow the stage that depends on its results.
bool Runner::follows() const { return passes_.count(plan::Stage::second) > 0 || !plan_.searches.empty(); }

judge::Results Runner::judged() const { return judge::judge_cells(plan_, journal_.journal(), journal_.evidence()); }

/// Chooses steps to measure again, from all results together, because they may be relative to each other. False: all is
/// well, nothing can be measured again, or it was begun before.
bool Runner::begin_second_stage(const judge::Results& results) {
  if (journal_.journal().second_stage || journal_.journal().localising) return false;
  const judge::SecondStage chosen = judge::second_stage(plan_, results);
  if (chosen.empty()) return false;
  journal_.begin_second_stage(chosen);
  std::vector<const plan::Step*> steps;
  for (const auto& step : plan_.steps) {
    if (chosen.contains(step.id)) steps.push_back(&step);
  }
  progress_.second_stage(steps);
  keep_agents();
  queue_turns();
  return true;
}

}  // namespace assay::run
