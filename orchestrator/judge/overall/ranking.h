// ranking: which results a reader must see first, and one summary for each requirement.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"

namespace assay::judge {

/// Distance of the value to the nearer acceptance limit as a share of that side's limit, negative when it is missed;
/// absent without a value, and where a limit is 0.
std::optional<double> acceptance_margin(const Result& result);

/// Whether `a` is worse than `b`, which decides the outcome shown of a cell with several results: error, fail,
/// conditional fail, inconclusive, not measured, conditional pass, pass; among equals the smaller distance to the
/// acceptance limit.
bool is_worse(const Result& a, const Result& b);

/// Whether an upper limit of `result` is so small for its guard band that no value of 0 or more can pass: L - w < 0.
bool guard_exceeds_limit(const Result& result);
/// The text in place of such an acceptance limit.
inline constexpr const char* kNoAcceptance = "none: the guard band is wider than the limit";

/// The results of one requirement.
struct RequirementSummary {
  std::string requirement;
  bool required = true;
  std::size_t cells = 0, passed = 0;
  std::vector<const Result*> open;  ///< those that do not pass: failures first, then by is_worse
  const Result* worst = nullptr;    ///< the first of `open`, else the pass with the smallest distance to its limit
};

/// One for each requirement that has results, which `verdict` keeps. Required ones with a failure come first, then
/// those with another result that does not pass, worst first, then advisory ones likewise, then those that pass; equals
/// in the plan's order.
std::vector<RequirementSummary> summaries(const Verdict& verdict);

/// Deviations that say the same of several steps, as one.
struct CommonDeviation {
  std::string what;       ///< without attempt and node if it is of several steps
  std::string step;       ///< the first; empty: of the whole run
  std::size_t steps = 1;  ///< how many say the same
};

/// The deviations of `verdict` in their order, each text once.
std::vector<CommonDeviation> common_deviations(const Verdict& verdict);

/// Which deviations of a list are shown: at most so many, and at most three of one step, so that one step cannot hide
/// those of others.
struct ShownDeviations {
  std::vector<std::size_t> shown;           ///< their places in the list
  std::map<std::string, std::size_t> more;  ///< steps that have further ones, and how many
  std::size_t others = 0;                   ///< the rest
};

/// Those of a list, of which `steps` has the step of each; empty: of the whole run. At most `most` are shown.
ShownDeviations shown_deviations(const std::vector<std::string>& steps, std::size_t most);

/// A culprit with the figures that it falls short of, over all searches.
struct Accused {
  const Culprit* culprit = nullptr;
  std::vector<std::string> requirements;
};

/// Whether `search` is about a requirement that must be met; a search about advisory ones accuses no node.
bool is_required(const Verdict& verdict, const Localised& search);

/// Everything that the searches of `verdict` for required figures accuse, each once, in their order.
std::vector<Accused> all_accused(const Verdict& verdict);

/// "node n05", "pair n01 and n02", "leaf l3".
std::string name_of(const Culprit& culprit);

}  // namespace assay::judge
