// contrast: pairs the attempts of two steps, looks for proof of the switch, and forms the ratios; see contrast.h.
#include "orchestrator/judge/cells/contrast.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/plan/contrast.h"
#include "probes/core/json_io.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

/// The attempts of one side that have a partner, in their order.
struct PairedSide {
  std::vector<const Measurement*> measured;
  std::vector<const Record*> records, others;
};

/// Which of its stage's attempts attempt `index` is.
std::pair<bool, std::size_t> turn_of(const StepEvidence& found, std::size_t index) {
  const bool second = index >= found.first_stage;
  return {second, second ? index - found.first_stage : index};
}

PairedSide partnered(const ContrastSide& side, const FitPool& fit, const StepEvidence& other, const FitPool& partners) {
  PairedSide paired;
  for (std::size_t i = 0; i < fit.pool.attempts.size(); ++i) {
    const auto turn = turn_of(side.found, fit.pool.attempts[i]);
    if (std::ranges::none_of(partners.pool.attempts, [&](std::size_t index) { return turn_of(other, index) == turn; }))
      continue;
    paired.measured.push_back(fit.pool.measured[i]);
    paired.records.push_back(fit.pool.records[i]);
    for (const auto& record : side.found.others[fit.pool.attempts[i]]) paired.others.push_back(&record);
  }
  return paired;
}

/// The values of a condition in the records of one side.
struct StatesSeen {
  std::vector<Value> values;  ///< each once
  bool missing = false;       ///< a record without it
};

StatesSeen states_in(const PairedSide& side, const std::string& name, const Subject& subject,
                     const Description& probe) {
  StatesSeen seen;
  const auto look = [&](const Record& record, bool must) {
    bool said = false;
    for (const Condition* one : conditions_of(record, name, subject)) {
      if (!is_about(*one, subject, record)) continue;
      said = true;
      if (std::ranges::find(seen.values, one->value) == seen.values.end()) seen.values.push_back(one->value);
    }
    seen.missing = seen.missing || (must && !said);
  };
  for (const Record* record : side.records) look(*record, true);
  for (const Record* record : side.others) look(*record, probe.always_records(name) && !is_idle(*record));
  return seen;
}

/// Whether no state of one side was one of the other: of numbers, whether their ranges are apart.
bool are_apart(const StatesSeen& on, const StatesSeen& off) {
  const auto range = [](const StatesSeen& side) -> std::optional<std::pair<double, double>> {
    std::optional<std::pair<double, double>> all;
    for (const Value& value : side.values) {
      const auto number = std::holds_alternative<bool>(value) ? std::nullopt : number_in(value);
      if (!number) return std::nullopt;
      all =
          all ? std::pair(std::min(all->first, *number), std::max(all->second, *number)) : std::pair(*number, *number);
    }
    return all;
  };
  const auto of_on = range(on), of_off = range(off);
  if (of_on && of_off) return of_on->second < of_off->first || of_off->second < of_on->first;
  return std::ranges::none_of(
      on.values, [&](const Value& value) { return std::ranges::find(off.values, value) != off.values.end(); });
}

std::string words_of(const StatesSeen& seen) {
  constexpr std::size_t kMost = 3;
  std::string words;
  for (std::size_t i = 0; i < std::min(seen.values.size(), kMost); ++i) {
    const auto* text = std::get_if<std::string>(&seen.values[i]);
    const auto* real = std::get_if<double>(&seen.values[i]);
    words += fmt::format("{}{}", i == 0 ? "" : ", ",
                         text != nullptr   ? harmless(*text, 100)
                         : real != nullptr ? for_people(*real, "1")
                                           : assay::to_json(seen.values[i]).dump());
  }
  return seen.values.empty() ? "not recorded" : words + (seen.values.size() > kMost ? ", …" : "");
}

/// Why the records do not prove that the feature was switched; empty if they do. Adds the state to `result`.
std::string not_switched(const plan::Contrast& contrast, const StatesSeen& on, const StatesSeen& off,
                         std::vector<ConditionSeen>& conditions) {
  const bool recorded = !on.missing && !off.missing;
  const bool apart = recorded && are_apart(on, off);
  ConditionSeen state{.name = contrast.shown_by,
                      .demanded = fmt::format("other than {} ({})", words_of(off), plan::switch_words(contrast, false)),
                      .met = apart};
  if (!on.values.empty()) state.seen = Value(words_of(on));
  if (on.values.size() == 1 && !std::holds_alternative<std::string>(on.values.front())) state.seen = on.values.front();
  conditions.push_back(std::move(state));
  if (apart) return "";
  if (!recorded)
    return fmt::format("{} was not recorded in every attempt, so nothing proves that {} was switched.",
                       contrast.shown_by, contrast.parameter);
  return fmt::format("{} could not be switched: {} was {} with {} and {} with {}, so the two show nothing of it.",
                     contrast.parameter, contrast.shown_by, words_of(on), plan::switch_words(contrast, true),
                     words_of(off), plan::switch_words(contrast, false));
}

/// `requirement` for attempts without the feature: its own state is not demanded of them.
plan::Requirement without_state(plan::Requirement requirement) {
  std::erase_if(requirement.conditions, [&](const auto& one) { return one.name == requirement.contrast->shown_by; });
  return requirement;
}

SharedList<std::string> evidence_of(const ContrastSide& on, const ContrastSide& off) {
  auto all = on.pool.evidence.list();
  all.insert(all.end(), off.pool.evidence.begin(), off.pool.evidence.end());
  return all;
}

/// Lists the attempts of both sides that are set aside; gives the number of pairs that they take away.
int set_aside(const FitPool& on, const FitPool& off, const plan::Contrast& contrast, Result& result) {
  result.set_aside = on.set_aside;
  for (const auto& one : off.set_aside)
    result.set_aside.push_back(
        {one.attempt, fmt::format("With {}: {}", plan::switch_words(contrast, false), one.reason)});
  std::set<int> pairs;
  for (const auto& one : result.set_aside) pairs.insert(one.attempt);
  return static_cast<int>(pairs.size());
}

}  // namespace

Contrasts::Contrasts(const plan::Plan& plan, Demands& demands) : plan_(plan), demands_(demands) {
  for (const auto& cell : plan.coverage) {
    if (!cell.against.empty()) steps_[cell.against] = nullptr;
  }
  for (const auto& step : plan.steps) {
    if (const auto found = steps_.find(step.id); found != steps_.end()) found->second = &step;
  }
}

void Contrasts::take(const plan::Cell& cell, const plan::Requirement& requirement,
                     const std::function<StepEvidence(const plan::Step&)>& evidence_of) {
  opposite_.step = steps_.at(cell.against);
  opposite_.found = evidence_of(*opposite_.step);
  opposite_.pools = pooled(opposite_.found, requirement, plan_.probes.at(requirement.probe).description);
}

UndecidedCell Contrasts::open(const plan::Requirement& requirement, const ContrastSide& on, const Subject& subject,
                              const std::string& missing, Result result) const {
  UndecidedCell cell{.result = std::move(result), .requirement = &requirement, .settled = true};
  const std::string side = plan::switch_words(*requirement.contrast, false);
  const auto& [step, found, pools] = opposite_;
  const auto without = pools.find(subject);
  cell.result.outcome = Outcome::inconclusive;
  if (found.broken || found.records.empty())
    cell.result.reason = fmt::format("With {}: {}", side, found.reason.empty() ? "not measured." : found.reason);
  else if (without == pools.end())
    cell.result.reason = fmt::format("No {} was recorded with {}.", requirement.metric, side);
  else if (!missing.empty())
    cell.result.reason = fmt::format("With {}: {}", side, missing);
  else
    pair_up(cell, subject, on, {*step, found, without->second});
  return cell;
}

void Contrasts::pair_up(UndecidedCell& cell, const Subject& subject, const ContrastSide& on,
                        const ContrastSide& off) const {
  const plan::Requirement& requirement = *cell.requirement;
  const plan::Contrast& contrast = *requirement.contrast;
  const plan::Requirement of_off = without_state(requirement);
  const Description& probe = plan_.probes.at(requirement.probe).description;
  Result& result = cell.result;
  const auto leave = [&](Outcome outcome, std::string reason) {
    result.outcome = outcome;
    result.reason = std::move(reason);
  };
  result.evidence = evidence_of(on, off);
  const FitPool fit_on = fit_part(demands_, on.step, requirement, probe, subject, on.found, on.pool);
  const FitPool fit_off = fit_part(demands_, off.step, of_off, probe, subject, off.found, off.pool);
  const int apart = set_aside(fit_on, fit_off, contrast, result);
  if (auto cause = unfit(on.step, requirement, fit_on, on.found))
    return leave(cause->outcome, std::move(cause->reason));
  if (auto cause = unfit(off.step, of_off, fit_off, off.found))
    return leave(cause->outcome, fmt::format("With {}: {}", plan::switch_words(contrast, false), cause->reason));
  const PairedSide with = partnered(on, fit_on, off.found, fit_off);
  const PairedSide without = partnered(off, fit_off, on.found, fit_on);
  if (const int most = std::min(requirement.more_attempts, on.step.more_attempts); apart > most)
    return leave(Outcome::inconclusive, fmt::format("{} pairs are set aside where {} may be: {}", apart, most,
                                                    result.set_aside.front().reason));
  const auto needed = static_cast<std::size_t>(std::min(requirement.attempts, on.step.attempts));
  if (with.measured.size() < needed)
    return leave(Outcome::inconclusive,
                 fmt::format("{} of {} required pairs of attempts measured.", with.measured.size(), needed));
  cell.risk = risk_of(plan_.profile.guard_factor, on.step.more_attempts > 0);
  const Sureness sureness{plan_.profile.confidence, cell.risk};
  const auto estimate_on = estimate_attempts(with.measured, requirement.statistic, sureness);
  const auto estimate_off = estimate_attempts(without.measured, requirement.statistic, sureness);
  for (const auto* side : {&with, &without}) {
    for (const Measurement* one : side->measured) result.samples += one->samples.size();
  }
  if (!estimate_on || !estimate_off)
    return leave(Outcome::inconclusive,
                 fmt::format("{} samples are too few for intervals of the {}.", result.samples, requirement.statistic));
  result.with = estimate_on->value;
  result.without = estimate_off->value;
  const auto ratio = ratio_of(*estimate_on, *estimate_off, probe.metric(requirement.metric)->better != "lower");
  if (!ratio) return leave(Outcome::inconclusive, fmt::format("A {} of 0 has no ratio.", requirement.metric));
  cell.estimate = *ratio;
  const double both = std::sqrt(2.0);  // of two figures of equal relative uncertainty
  cell.instrument = both * probe.metric(requirement.metric)->instrument;
  cell.stated = stated_scatter(*probe.metric(requirement.metric), requirement.reproducibility);
  cell.stated.least *= both;
  if (auto& stated = cell.stated.reproducibility) *stated *= both;
  cell.unit = probe.metric(requirement.metric)->unit;
  std::vector<ConditionSeen> seen = demands_.check(on.step, requirement, probe, subject, with.records, with.others);
  cell.unmet = first_unmet(requirement, seen, probe);
  if (cell.unmet.empty())
    cell.unmet =
        first_unmet(of_off, demands_.check(off.step, of_off, probe, subject, without.records, without.others), probe);
  auto switched = not_switched(contrast, states_in(with, contrast.shown_by, subject, probe),
                               states_in(without, contrast.shown_by, subject, probe), seen);
  if (!switched.empty()) cell.unmet = std::move(switched);
  result.conditions = std::move(seen);
  cell.settled = false;
}

}  // namespace assay::judge
