// demand: counts the values that meet and miss a demand; see demand.h.
#include "orchestrator/judge/cells/demand.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/judge/cells/condition_words.h"
#include "orchestrator/judge/cells/conditions.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

/// "\"580.82\" and \"570.10\", and not recorded in some".
std::string values_in(std::span<const ConditionSeen> states) {
  constexpr std::size_t kMost = 4, kLongest = 100;  // of a value; the conditions have more of it
  std::string text;
  std::size_t values = 0;
  for (const auto& one : states) {
    if (!one.seen || ++values > kMost) continue;
    Value value = *one.seen;
    if (auto* words = std::get_if<std::string>(&value)) *words = without_controls(*words, kLongest);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", assay::to_json(value).dump());
  }
  if (values > kMost) text += fmt::format(" and {} more", values - kMost);
  return values == states.size() ? text : text + ", and no value in a record";
}

/// What the advisories that `demand` asks of say of the branches of `states`, which meet it: "; of branch 580 they have
/// 1 row"; empty if it asks of none.
std::string branch_words(const plan::RequiredCondition& demand, std::span<const ConditionSeen> states) {
  if (!demand.version || demand.version->advisories.empty()) return "";
  std::string words;
  for (const auto& one : states) {
    const auto found = rows_on_branch(*demand.version, plan::version_in(*one.seen));
    const std::string said = found.rows == 0 ? fmt::format("; no row of them speaks of branch {}", found.branch)
                                             : fmt::format("; rows of them on branch {}: {}", found.branch, found.rows);
    if (words.find(said) == std::string::npos) words += said;
  }
  return words;
}

}  // namespace

void judge_demand(const plan::RequiredCondition& demand, std::span<const ConditionSeen> states, Result& result) {
  const auto is_unknown = [&](const ConditionSeen& one) {
    return one.seen && demand.site.empty() && fit_of(demand, *one.seen) == plan::Fit::unknown;
  };
  const auto is_absent = [](const ConditionSeen& one) { return !one.seen; };
  const auto unknown = std::ranges::find_if(states, is_unknown);
  if (all_met(states)) {
    result.outcome = Outcome::pass;
    result.reason = fmt::format("{} was {}, as demanded: {}{}.", demand.name, values_in(states),
                                states.front().demanded, branch_words(demand, states));
  } else if (std::ranges::all_of(states, is_absent)) {
    result.outcome = Outcome::not_measured;
    result.reason = condition_sentence(demand, states.front(), "");
  } else if (unknown != states.end()) {
    result.outcome = Outcome::inconclusive;
    result.reason = fmt::format("{} was {}, which is not a version that can be compared with the {} demanded.",
                                demand.name, values_in({&*unknown, 1}), states.front().demanded);
  } else if (std::ranges::none_of(states, &ConditionSeen::met) && std::ranges::none_of(states, is_absent)) {
    result.outcome = Outcome::fail;
    result.reason = condition_sentence(demand, states.front(), "");
    if (states.size() > 1) result.reason += fmt::format(" In all it was {}.", values_in(states));
  } else {
    result.outcome = Outcome::inconclusive;
    result.reason = fmt::format("{} was {}: the records do not agree on what is demanded, {}.", demand.name,
                                values_in(states), states.front().demanded);
  }
}

}  // namespace assay::judge
