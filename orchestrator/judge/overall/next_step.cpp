// next_step: the most urgent known action of a rejection, else the cause that leaves cells open.
#include "orchestrator/judge/overall/next_step.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace assay::judge {
namespace {

bool is_conditional(const Result& result) {
  return result.outcome == Outcome::conditional_pass || result.outcome == Outcome::conditional_fail;
}

/// Whether the value is nearer to a limit than its guard band is wide.
bool in_guard_band(const Result& result) {
  const auto near = [&](const std::optional<double>& limit, const std::optional<double>& acceptance) {
    return limit && acceptance && std::abs(*result.value - *limit) < std::abs(*acceptance - *limit);
  };
  return result.value &&
         (near(result.limit_low, result.acceptance_low) || near(result.limit_high, result.acceptance_high));
}

/// What a condition that is not met asks for.
std::string seen_to(const std::optional<profiles::Advice>& advice) {
  return advice && !advice->says.empty() ? advice->says : "see to that.";
}

/// "first drain node n05: …": the most urgent action of `advices`; empty if none is known, or one that can wait beside
/// a failure of which none is known.
std::string first_action(const Verdict& verdict, const Advices& advices) {
  using enum profiles::Action;
  const auto all = to_do(verdict, advices);
  if (all.empty() || all.front().advice.action == none) return "";
  const bool waits = all.front().advice.action > not_known;
  if (waits && std::ranges::any_of(verdict.results, [&](const Result& result) {
        return result.required && result.outcome == Outcome::fail && !advices.known.contains(&result);
      }))
    return "";
  const ToDo& first = all.front();
  const std::size_t others = first.subjects.size() - 1;
  return fmt::format("first {} {}{}: {} Then measure again.", first.advice.action, first.subjects.front(),
                     others == 0 ? "" : fmt::format(" and {} more", others), first.advice.says);
}

}  // namespace

std::string next_step(const Verdict& verdict, const Advices& advices) {
  if (verdict.simulated) return "";
  if (verdict.overall == Overall::accepted)
    return "hand over the dossier; whoever receives it checks it with `assay-report verify`.";
  const auto first = [&](auto matches) {
    const auto found = std::ranges::find_if(verdict.results, [&](const Result& result) {
      return result.required && result.outcome != Outcome::pass && matches(result);
    });
    return found == verdict.results.end() ? nullptr : &*found;
  };
  constexpr const char* kWhole =
      "measure the whole profile without --quick or --only; `assay run --resume RUN` continues one that was stopped.";
  if (verdict.overall == Overall::rejected) {
    if (std::string action = first_action(verdict, advices); !action.empty()) return action;
  }
  if (const auto* one = first([](const Result& result) { return result.outcome == Outcome::fail; })) {
    if (verdict.overall != Overall::rejected) return kWhole;  // a rehearsal, which decides nothing
    return fmt::format("repair what is listed under `not passed`, first {} on {}, then measure again.",
                       one->requirement, one->node);
  }
  if (const auto* one = first([](const Result& result) { return !result.set_aside.empty(); }))
    return fmt::format("stop other programs on {} and run the same command again: {} was disturbed.", one->node,
                       one->requirement);
  for (const Result& result : verdict.results) {
    for (const ConditionSeen& condition : result.conditions) {
      if (result.required && result.outcome != Outcome::pass && !condition.met)
        return fmt::format("{} demands {} {} on {}: {} Then run the same command again.", result.requirement,
                           condition.name, condition.demanded, result.node, seen_to(advices.of(result)));
    }
  }
  if (const auto* one = first([](const Result& result) { return result.outcome == Outcome::inconclusive; }))
    return fmt::format(
        "run the same command again while nothing else uses {}; if {} is open again, the machine itself is not steady.",
        one->node, one->requirement);
  if (const auto* one = first([](const Result& result) { return !is_conditional(result) && !result.step.empty(); }))
    return fmt::format("see the reason of {} on {}: it says what could not be measured.", one->requirement, one->node);
  if (const auto* one = first([](const Result& result) { return result.step.empty(); }))
    return fmt::format("measure the whole profile; {} on {} is not part of the plan: {}", one->requirement, one->node,
                       one->reason);
  std::size_t open = 0, within = 0;
  for (const Result& result : verdict.results) {
    if (!result.required || result.outcome == Outcome::pass) continue;
    ++open;
    within += in_guard_band(result) ? 1 : 0;
  }
  if (open > 0)
    return "measure again with more attempts, or on a quiet machine: " +
           (open != within ? fmt::format("{} figures are not decided, {} of them", open, within)
            : open == 1    ? "one figure lies"
                           : fmt::format("{} figures lie", open)) +
           fmt::format(" within the guard band of {}.", open == 1 && within == 1 ? "its limit" : "their limits");
  return kWhole;
}

}  // namespace assay::judge
