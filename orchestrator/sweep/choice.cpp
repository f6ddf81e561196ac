// choice: value per second, greedily.
#include "orchestrator/sweep/choice.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "probes/core/text.h"

namespace assay::sweep {
namespace {

constexpr const char* kTitle = " (nightly sweep: never an acceptance)";
constexpr std::size_t kLongestTitle = 200;  // profiles/schemas/schema.json

double value_per_second(const Candidate& one) {
  return static_cast<double>(one.figures) * one.nights_since / std::max(one.cost_s, kStepOverhead_s);
}

}  // namespace

std::vector<std::string> idle_checks(const plan::Profile& profile, bool after) {
  std::vector<std::string> ids;
  for (const auto& one : profile.requirements) {
    if (one.id.starts_with(kIdlePrefix) && one.after == after) ids.push_back(one.id);
  }
  return ids;
}

std::vector<Candidate> candidates_of(const plan::Plan& plan) {
  struct Found {
    double cost_s = 0;
    std::size_t nodes = 1;
    std::map<std::string, int> steps_of;  // by node
  };
  std::map<std::vector<std::string>, Found> found;
  for (const auto& step : plan.steps) {
    Found& one = found[step.requirements];
    one.cost_s = std::max(one.cost_s, step.typical_s + kStepOverhead_s);
    one.nodes = std::max(one.nodes, step.nodes.size());
    for (const auto& node : step.nodes) ++one.steps_of[node];
  }
  std::vector<Candidate> all;
  for (const auto& [requirements, one] : found) {
    int most = 0;
    for (const auto& [node, steps] : one.steps_of) most = std::max(most, steps);
    std::set<std::string> metrics;
    for (const auto& id : requirements) metrics.insert(plan.requirement(id)->metric);
    all.push_back({.requirements = requirements,
                   .cost_s = one.cost_s * most,
                   .figures = metrics.size(),
                   .is_check = std::ranges::any_of(requirements,
                                                   [](const std::string& id) { return id.starts_with(kIdlePrefix); }),
                   .nodes = one.nodes});
  }
  return all;
}

std::vector<std::string> too_large(std::vector<Candidate>& candidates, std::size_t most) {
  std::vector<std::string> ids;
  std::erase_if(candidates, [&](const Candidate& one) {
    if (one.nodes <= most) return false;
    ids.insert(ids.end(), one.requirements.begin(), one.requirements.end());
    return true;
  });
  return ids;
}

Choice choose(std::vector<Candidate> candidates, double budget_s) {
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::tuple(!a.is_check, -value_per_second(a), a.requirements) <
           std::tuple(!b.is_check, -value_per_second(b), b.requirements);
  });
  Choice choice;
  for (const auto& one : candidates) {
    const bool fits = one.is_check || choice.cost_s + one.cost_s <= budget_s;
    auto& ids = fits ? choice.only : choice.left_out;
    ids.insert(ids.end(), one.requirements.begin(), one.requirements.end());
    if (fits) choice.cost_s += one.cost_s;
  }
  return choice;
}

plan::Profile as_sweep(plan::Profile profile) {
  for (auto& one : profile.requirements) {
    one.required = false;
    one.attempts = 1;
    one.more_attempts = 0;
  }
  const std::string title = kTitle;
  if (!profile.title.ends_with(title)) {
    if (profile.title.size() + title.size() > kLongestTitle)
      profile.title = without_controls(profile.title, kLongestTitle - title.size());
    profile.title += title;
  }
  return profile;
}

}  // namespace assay::sweep
