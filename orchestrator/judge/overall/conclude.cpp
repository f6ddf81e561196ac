// conclude: derives the overall verdict from the results, and lists the deviations from the method; see conclude.h.
#include "orchestrator/judge/overall/conclude.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/judge/overall/ranking.h"
#include "orchestrator/plan/advisories.h"
#include "orchestrator/plan/loosened.h"
#include "orchestrator/plan/profile_check.h"

namespace assay::judge {
namespace {

/// The probes of the plan's steps that may change settings.
std::set<std::string> changing_probes(const plan::Plan& plan) {
  std::set<std::string> names;
  for (const auto& step : plan.steps) {
    const bool changes = std::ranges::any_of(step.requirements, [&](const std::string& id) {
      const plan::Requirement* requirement = plan.requirement(id);
      return requirement != nullptr && plan::changes_settings(*requirement);
    });
    if (changes) names.insert(step.probe);
  }
  return names;
}

/// Parameters by which a probe reads what a machine states of itself from another place, unless it is empty: a saved
/// copy, or a made-up one.
constexpr std::array<std::string_view, 7> kPlaces = {"amd_smi_library", "kernel_log", "lldp", "nvml_library",
                                                     "powercap",        "root",       "tcti"};

/// "health_inventory read root=/tmp/tree, not /", once for each probe and place.
std::set<std::string> other_places(const plan::Plan& plan) {
  std::set<std::string> all;
  for (const auto& step : plan.steps) {
    const auto probe = plan.probes.find(step.probe);
    if (probe == plan.probes.end()) continue;
    for (const auto& own : probe->second.description.parameters) {
      const auto given = step.parameters.find(own.name);
      const auto* place = given == step.parameters.end() ? nullptr : std::get_if<std::string>(&given->second);
      if (place == nullptr || place->empty() || *place == own.fallback ||
          std::ranges::find(kPlaces, own.name) == kPlaces.end())
        continue;
      all.insert(fmt::format("{} read {}={}, not {}", step.probe, own.name, *place, own.fallback));
    }
  }
  return all;
}

/// The tables of advisories in the plan that were outdated at `time`.
std::vector<Deviation> outdated(const plan::Plan& plan, const std::string& time) {
  std::set<std::string> days;
  const auto look = [&](const plan::RequiredCondition& demand) {
    if (demand.version && plan::is_outdated(demand.version->dated, time)) days.insert(demand.version->dated);
  };
  for (const auto& requirement : plan.profile.requirements) {
    if (requirement.demand) look(*requirement.demand);
    std::ranges::for_each(requirement.conditions, look);
  }
  std::vector<Deviation> all;
  for (const auto& day : days) {
    all.push_back({.what = fmt::format("The advisories of {} were over {} days old when the run began: later ones were "
                                       "not looked for.",
                                       day, plan::kAdvisoriesKeep_d)});
  }
  return all;
}

/// Those of the plan.
std::vector<Deviation> planned_deviations(const plan::Plan& plan) {
  std::vector<Deviation> all;
  if (plan.simulation)
    all.push_back({.what = "The run is a simulation: nothing was measured, every record is made up."});
  if (plan.quick) all.push_back({.what = "Quick parameters were used: a rehearsal, which accepts nothing."});
  if (!plan.only.empty()) all.push_back({.what = "Only a part of the profile was planned."});
  if (!plan.continues.empty()) {
    std::string fleet;
    for (const auto& one : plan.earlier_fleet.references)
      fleet += fmt::format("{}{} (of {} members)", fleet.empty() ? "" : ", ", one.requirement, one.members);
    if (!fleet.empty())
      fleet = fmt::format(
          ", and held against the fleet of its run {}, ended {}, journal {}, whose evidence is elsewhere: {}",
          plan.earlier_fleet.run_id, plan.earlier_fleet.ended, plan.earlier_fleet.journal_sha256, fleet);
    all.push_back({.what = fmt::format("The run continues the plan {}: {} of its nodes are measured anew{}.",
                                       plan.continues, plan.site.nodes.size(), fleet)});
  }
  for (const auto& name : changing_probes(plan)) {
    all.push_back(
        {.what = fmt::format(
             "{} was allowed to change settings of machines (--allow-settings), which it puts back at its end.",
             name)});
  }
  for (const auto& what : other_places(plan))
    all.push_back({.what = what + ": what it states need not be of the tested machine."});
  return all;
}

}  // namespace

std::vector<Deviation> deviations(const plan::Plan& plan, const Journal& journal) {
  auto all = planned_deviations(plan);
  if (journal.resumed > 0)
    all.push_back({.what = fmt::format("The run was interrupted and resumed {} times.", journal.resumed)});
  if (!journal.finished) {
    all.push_back({.what = journal.interrupted
                               ? "The run was interrupted by a signal, such as Ctrl-C, and did not finish."
                               : "The run did not finish."});
  }
  for (const auto& one : plan.profile.loosened) all.push_back({.what = plan::words_of_loosened(one)});
  for (auto& one : outdated(plan, journal.begin)) all.push_back(std::move(one));
  for (const auto& name : plan.profile.companions) {
    if (!plan.probes.contains(name))
      all.push_back({.what = fmt::format("The companion {} is not part of this build.", name)});
  }
  std::map<std::string_view, std::size_t> left_out;
  for (const auto& [step, reason] : journal.left_out) ++left_out[reason];
  for (const auto& [reason, steps] : left_out)
    all.push_back({.what = fmt::format("{} steps did not start: {}", steps, reason)});
  for (const auto& jump : journal.clock_jumps) {
    all.push_back(
        {.what = fmt::format(
             "The clock of the head node jumped by {:+.1f} s; times before {} are those of the clock before the jump.",
             jump.by_s, jump.time)});
  }
  for (const auto& event : journal.node_events)
    all.push_back({.what = fmt::format("Node {}: {}", event.node, event.reason)});
  for (const auto& attempt : journal.attempts) {
    if (attempt.outcome == AttemptOutcome::exited && attempt.reason.empty()) continue;
    std::string said = fmt::format("{}: {}", attempt.outcome, attempt.reason);
    all.push_back({.what = fmt::format("Attempt {} on {}: {}", attempt.number, attempt.node, said),
                   .step = attempt.step,
                   .kind = DeviationKind::attempt,
                   .said = std::move(said)});
  }
  return all;
}

std::vector<Deviation> set_aside_deviations(const Results& results) {
  std::vector<Deviation> all;
  std::set<std::pair<std::string_view, std::string>> seen;
  for (const auto& result : results) {
    for (const auto& one : result.set_aside) {
      Deviation deviation{.what = fmt::format("Attempt {} was set aside: {}", one.attempt, one.reason),
                          .step = result.step,
                          .kind = DeviationKind::attempt,
                          .said = one.reason};
      if (seen.emplace(result.step, deviation.what).second) all.push_back(std::move(deviation));
    }
  }
  return all;
}

std::vector<Deviation> clock_deviations(const std::map<std::string, double>& outside_s) {
  std::vector<Deviation> all;
  for (const auto& [node, seconds] : outside_s) {
    all.push_back({.what = fmt::format("Node {}: its records are dated up to {:.0f} s {} their attempts: its clock "
                                       "differs from the head node's, or they are of another time.",
                                       node, std::abs(seconds), seconds < 0 ? "before" : "after")});
  }
  return all;
}

void conclude(const plan::Plan& plan, bool finished, Verdict& verdict) {
  for (const auto& outcome : words_of(Outcome{})) verdict.counts[std::string(outcome.text)] = 0;
  std::size_t required = 0;
  std::size_t passed = 0;
  std::size_t failed = 0;
  const Result* first_open = nullptr;
  for (const auto& result : verdict.results) {
    ++verdict.counts[to_string(result.outcome)];
    if (!result.required) continue;
    ++required;
    if (result.outcome == Outcome::pass) ++passed;
    if (result.outcome == Outcome::fail) ++failed;
    if (result.outcome != Outcome::pass &&
        (first_open == nullptr || (result.outcome == Outcome::fail && first_open->outcome != Outcome::fail))) {
      first_open = &result;
    }
  }
  const std::string count = fmt::format("{} of {} required cells pass", passed, required);
  if (plan.quick) {
    verdict.reason = count + "; quick parameters were used, so this is a rehearsal and accepts or rejects nothing.";
  } else if (failed > 0) {
    verdict.overall = Overall::rejected;
    verdict.reason = fmt::format("{}; {} fail, first {} on {}: {}", count, failed, first_open->requirement,
                                 first_open->node, first_open->reason);
  } else if (required == 0) {
    verdict.reason = "The profile requires nothing, so nothing can be accepted.";
  } else if (first_open != nullptr) {
    verdict.reason = fmt::format("{}; first undecided: {} on {} is {}: {}", count, first_open->requirement,
                                 first_open->node, to_string(first_open->outcome), first_open->reason);
  } else if (!finished) {
    verdict.reason = count + "; the run did not finish, so it cannot be accepted.";
  } else if (!plan.only.empty()) {
    verdict.reason = count + "; only a part of the profile was planned, so the run cannot be accepted.";
  } else {
    verdict.overall = Overall::accepted;
    verdict.reason = count + ".";
  }
  if (plan.simulation || verdict.simulated) {
    verdict.reason =
        fmt::format("SIMULATION, which accepts or rejects nothing; had it been measured, it would be {}: {}",
                    to_string(verdict.overall), verdict.reason);
    verdict.simulated = true;
    verdict.overall = Overall::incomplete;
  }
}

void name_culprits(Verdict& verdict) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> all;
  for (const auto& one : all_accused(verdict)) all.push_back(name_of(*one.culprit));
  for (const auto& one : verdict.localised) {
    if (one.state != SearchState::common_cause || !is_required(verdict, one)) continue;
    verdict.reason += one.step.empty()
                          ? fmt::format(" Most pairs are alike in {}: a common cause, no node is accused.",
                                        fmt::join(one.requirements, ", "))
                          : fmt::format(" All nodes are alike in {}: a common cause, no node is accused.", one.step);
  }
  if (all.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMost); ++i) text += (i == 0 ? "" : "; ") + all[i];
  if (all.size() > kMost) text += fmt::format("; and {} more", all.size() - kMost);
  verdict.reason += fmt::format(" At fault: {}.", text);
}

}  // namespace assay::judge
