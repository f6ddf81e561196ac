// outcome: cells by node, then attempts by node.
#include "orchestrator/sweep/outcome.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/files/exit_codes.h"

namespace assay::sweep {
namespace {

using drift::VisitState;

bool is_within(const judge::Result& cell) {
  return (!cell.limit_low || *cell.value >= *cell.limit_low) && (!cell.limit_high || *cell.value <= *cell.limit_high);
}

/// The last thing that happened to the connection of `node`; empty if nothing did.
std::string event_of(const judge::Journal& journal, const std::string& node) {
  std::string reason;
  for (const auto& event : journal.node_events) {
    if (event.node == node) reason = event.reason;
  }
  return reason;
}

/// Attempts of a node's steps: how many ended, whether one has a figure or a judged condition, and why the last other
/// one has none.
struct Attempts {
  std::size_t planned = 0, ended = 0;
  bool measured = false;
  std::string trouble;
};

/// By step: whether its records have a figure or a judged condition, and the reason of a cell without one. A probe that
/// skipped or failed has ended, and has measured nothing.
std::map<std::string_view, std::pair<bool, std::string>> figures_by_step(const judge::Results& results) {
  std::map<std::string_view, std::pair<bool, std::string>> steps;
  for (const auto& cell : results) {
    auto& [measured, reason] = steps[cell.step];
    measured = measured || cell.value || (cell.is_of_demand() && cell.outcome <= judge::Outcome::fail);
    if (!cell.value) reason = cell.reason;
  }
  return steps;
}

/// Whether `step` serves none but these requirements.
bool serves_only(const plan::Step& step, const std::vector<std::string>& ids) {
  return std::ranges::all_of(step.requirements,
                             [&](const std::string& id) { return std::ranges::find(ids, id) != ids.end(); });
}

/// `checks`: the requirements that look for others on the node, and measure nothing.
std::map<std::string, Attempts> attempts_by_node(const judge::Run& run, const judge::Results& results,
                                                 const std::vector<std::string>& checks) {
  std::map<std::string, Attempts> by_node;
  auto figures = figures_by_step(results);
  for (const auto& step : run.plan.steps) {
    const auto made = run.journal.attempts.of(step.id);
    const auto left_out = run.journal.left_out.find(step.id);
    const auto& [measured, reason] = figures[step.id];
    const bool measures = !serves_only(step, checks);
    for (const auto& node : step.nodes) {
      Attempts& one = by_node[node];
      ++one.planned;
      if (left_out != run.journal.left_out.end()) one.trouble = left_out->second;
      for (const auto& attempt : made) {
        if (attempt.outcome == AttemptOutcome::exited) {
          ++one.ended;
          one.measured = one.measured || (measures && measured);
          if (measures && !measured) one.trouble = reason;
        } else {
          one.trouble = fmt::format("{}: {}", step.probe, word_of(attempt.outcome));
        }
      }
    }
  }
  return by_node;
}

/// "38 of 40 due nodes measured, 1 busy".
template <class Visit>
std::string counted(const std::vector<Visit>& visits, const char* what) {
  std::map<VisitState, std::size_t> counts;
  for (const auto& one : visits) ++counts[one.state];
  std::string text = fmt::format("{} of {} {} measured", counts[VisitState::measured], visits.size(), what);
  for (const auto& [state, words] : {std::pair{VisitState::busy, "busy"}, std::pair{VisitState::preempted, "preempted"},
                                     std::pair{VisitState::not_measured, "not measured"}}) {
    if (counts[state] > 0) text += fmt::format(", {} {}", counts[state], words);
  }
  return text;
}

std::string interrupted_reason(const Attempts& attempts) {
  return fmt::format("the sweep was stopped when {} of {} steps of the node had ended", attempts.ended,
                     attempts.planned);
}

}  // namespace

Idleness idleness(const judge::Results& results, const std::vector<std::string>& ids, const std::string& node) {
  Idleness seen;
  for (const auto& id : ids) {
    bool any = false;
    std::string missing;
    for (const auto& cell : results) {
      if (cell.requirement != id || cell.node != node) continue;
      if (!cell.value) {
        missing = cell.reason;
        continue;
      }
      any = true;
      if (is_within(cell)) continue;
      seen.busy = true;
      seen.reason = fmt::format("{} is {:.3g} on {} {}", id, *cell.value, cell.subject.kind, cell.subject.id);
    }
    if ((!any || !missing.empty()) && seen.reason.empty())
      seen.reason = fmt::format("{} has no figure{}{}", id, missing.empty() ? "" : ": ", missing);
  }
  seen.idle = seen.reason.empty();
  return seen;
}

std::vector<NodeVisit> not_idle(const judge::Run& run, const judge::Verdict& verdict,
                                const std::vector<std::string>& ids, bool interrupted) {
  std::vector<NodeVisit> visits;
  for (const auto& node : run.plan.site.nodes) {
    const Idleness seen = idleness(verdict.results, ids, node.name);
    if (seen.idle) continue;
    const VisitState state = seen.busy     ? VisitState::busy
                             : interrupted ? VisitState::preempted
                                           : VisitState::not_measured;
    const std::string event = event_of(run.journal, node.name);
    visits.push_back({.node = node.name, .state = state, .reason = seen.busy || event.empty() ? seen.reason : event});
  }
  return visits;
}

std::vector<NodeVisit> visits_of(const judge::Run& run, const judge::Verdict& verdict,
                                 const std::vector<std::string>& ids, bool interrupted) {
  const auto attempts = attempts_by_node(run, verdict.results, ids);
  std::vector<NodeVisit> visits;
  for (const auto& node : run.plan.site.nodes) {
    NodeVisit visit{.node = node.name, .state = VisitState::measured};
    const auto found = attempts.find(node.name);
    const Attempts made = found == attempts.end() ? Attempts{} : found->second;
    const Idleness after = idleness(verdict.results, ids, node.name);
    const std::string event = event_of(run.journal, node.name);
    if (interrupted && made.ended < made.planned) {
      visit = {.node = node.name, .state = VisitState::preempted, .reason = interrupted_reason(made)};
    } else if (after.busy) {
      visit = {.node = node.name, .state = VisitState::busy, .reason = "others used it meanwhile: " + after.reason};
    } else if (!made.measured || !after.idle) {
      const std::string why = !event.empty() ? event : !made.measured ? made.trouble : after.reason;
      visit = {.node = node.name, .state = VisitState::not_measured, .reason = why.empty() ? "nothing ran on it" : why};
    }
    visits.push_back(std::move(visit));
  }
  return visits;
}

PairVisit pair_visit_of(const NightPair& pair, const judge::Run& run, const judge::Verdict& verdict,
                        const std::vector<std::string>& ids, bool interrupted) {
  if (auto visit = hindered(pair, visits_of(run, verdict, ids, interrupted))) return *visit;
  std::string trouble = "no step joined the two nodes";
  auto figures = figures_by_step(verdict.results);
  for (const auto& step : run.plan.steps) {
    if (step.nodes.size() != 2) continue;
    const auto& [measured, reason] = figures[step.id];
    for (const auto& attempt : run.journal.attempts.of(step.id)) {
      const bool ended = attempt.outcome == AttemptOutcome::exited;
      if (ended && measured) return {.pair = pair, .state = VisitState::measured};
      trouble = ended ? reason : fmt::format("{}: {}", step.probe, word_of(attempt.outcome));
    }
  }
  return {.pair = pair, .state = VisitState::not_measured, .reason = trouble};
}

int exit_code(const std::vector<NodeVisit>& visits, const std::vector<PairVisit>& pairs,
              const std::vector<std::string>& findings) {
  const auto is_hole = [](VisitState state) {
    return state == VisitState::preempted || state == VisitState::not_measured;
  };
  const bool hole = std::ranges::any_of(visits, [&](const NodeVisit& one) {
    return is_hole(one.state) ||
           (one.state != VisitState::measured && std::ranges::find(findings, one.node) != findings.end());
  });
  return hole || std::ranges::any_of(pairs, [&](const PairVisit& one) { return is_hole(one.state); })
             ? files::kExitIncomplete
             : files::kExitSuccess;
}

std::string summary(Night night, const std::vector<NodeVisit>& visits, const std::vector<PairVisit>& pairs) {
  const std::string text = fmt::format("night {}: {}", drift::date_text(night), counted(visits, "due nodes"));
  return pairs.empty() ? text : text + "; " + counted(pairs, "pairs");
}

}  // namespace assay::sweep
