// ranking: orders results by severity and distance from the limit, and groups them by requirement.
#include "orchestrator/judge/overall/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

namespace assay::judge {
namespace {

/// A known failure comes before an unknown result, and that before a good one.
int severity(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return 0;
    case Outcome::conditional_pass:
      return 1;
    case Outcome::not_measured:
      return 2;
    case Outcome::inconclusive:
      return 3;
    case Outcome::conditional_fail:
      return 4;
    case Outcome::fail:
      return 5;
    case Outcome::error:
      return 6;
  }
  return 6;
}

/// The same for display, where rejections come first: fail before error.
int urgency(Outcome outcome) {
  constexpr int kFirst = 7;
  return outcome == Outcome::fail ? kFirst : severity(outcome);
}

bool is_read_first(const Result* a, const Result* b) {
  const int one = urgency(a->outcome), other = urgency(b->outcome);
  return one != other ? one > other : is_worse(*a, *b);
}

/// The text without the attempt, so that several steps can say the same.
std::string_view said(const Deviation& deviation) {
  return deviation.kind == DeviationKind::attempt ? deviation.said : deviation.what;
}

}  // namespace

std::optional<double> acceptance_margin(const Result& result) {
  if (!result.value) return std::nullopt;
  std::optional<double> nearest;
  const auto side = [&](const std::optional<double>& limit, const std::optional<double>& acceptance, double sign) {
    if (!limit || !acceptance) return true;
    if (*limit == 0) return false;
    const double distance = sign * (*result.value - *acceptance) / std::abs(*limit);
    nearest = std::min(nearest.value_or(distance), distance);
    return true;
  };
  if (!side(result.limit_low, result.acceptance_low, 1) || !side(result.limit_high, result.acceptance_high, -1))
    return std::nullopt;
  return nearest;
}

bool guard_exceeds_limit(const Result& result) {
  return result.limit_high && *result.limit_high >= 0 && result.acceptance_high && *result.acceptance_high < 0;
}

bool is_worse(const Result& a, const Result& b) {
  if (a.outcome != b.outcome) return severity(a.outcome) > severity(b.outcome);
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return acceptance_margin(a).value_or(kNone) < acceptance_margin(b).value_or(kNone);
}

std::vector<RequirementSummary> summaries(const Verdict& verdict) {
  std::vector<RequirementSummary> all;
  std::map<std::string_view, std::size_t> place;
  for (const auto& result : verdict.results) {
    const auto [found, is_new] = place.try_emplace(result.requirement, all.size());
    if (is_new) all.push_back({.requirement = result.requirement, .required = result.required});
    RequirementSummary& one = all[found->second];
    ++one.cells;
    if (result.outcome == Outcome::pass) {
      ++one.passed;
    } else {
      one.open.push_back(&result);
    }
    if (one.worst == nullptr || is_read_first(&result, one.worst)) one.worst = &result;
  }
  for (auto& one : all) std::ranges::stable_sort(one.open, is_read_first);
  std::ranges::stable_sort(all, {}, [](const RequirementSummary& one) {
    return std::tuple(one.open.empty(), !one.required, -urgency(one.worst->outcome));
  });
  return all;
}

std::vector<CommonDeviation> common_deviations(const Verdict& verdict) {
  std::vector<CommonDeviation> all;
  std::map<std::pair<bool, std::string_view>, std::size_t> place;
  for (const auto& deviation : verdict.deviations) {
    const auto [found, is_new] = place.try_emplace({deviation.step.empty(), said(deviation)}, all.size());
    if (is_new) {
      all.push_back({.what = deviation.what, .step = deviation.step, .steps = 1});
      continue;
    }
    CommonDeviation& one = all[found->second];
    one.what = said(deviation);
    ++one.steps;
  }
  return all;
}

ShownDeviations shown_deviations(const std::vector<std::string>& steps, std::size_t most) {
  constexpr std::size_t kMostOfStep = 3;
  ShownDeviations all;
  std::map<std::string_view, std::size_t> of_step;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].empty() && ++of_step[steps[i]] > kMostOfStep)
      ++all.more[steps[i]];
    else if (all.shown.size() < most)
      all.shown.push_back(i);
    else
      ++all.others;
  }
  return all;
}

bool is_required(const Verdict& verdict, const Localised& search) {
  return std::ranges::any_of(search.requirements, [&](const std::string& id) {
    const auto known = std::ranges::find(verdict.results, id, &Result::requirement);
    return known != verdict.results.end() && known->required;
  });
}

std::vector<Accused> all_accused(const Verdict& verdict) {
  std::vector<Accused> all;
  for (const auto& search : verdict.localised) {
    if (!is_required(verdict, search)) continue;
    for (const auto& culprit : search.culprits) {
      auto known = std::ranges::find(all, name_of(culprit), [](const Accused& one) { return name_of(*one.culprit); });
      if (known == all.end()) known = all.insert(all.end(), {.culprit = &culprit});
      for (const auto& id : search.requirements) {
        if (std::ranges::find(known->requirements, id) == known->requirements.end()) known->requirements.push_back(id);
      }
    }
  }
  return all;
}

std::string name_of(const Culprit& culprit) {
  std::string name =
      fmt::format("{} {}", culprit.fault, culprit.fault == Fault::leaf ? culprit.leaf : culprit.nodes.front());
  if (culprit.fault == Fault::pair) name += " and " + culprit.nodes.back();
  return name;
}

}  // namespace assay::judge
