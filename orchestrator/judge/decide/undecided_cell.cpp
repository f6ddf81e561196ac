// undecided_cell: decides one cell in the order that judge.h states: decision, findings, doubt, conditions.
#include "orchestrator/judge/decide/undecided_cell.h"

#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/judge/decide/contrast_words.h"

namespace assay::judge {
namespace {

/// Calls `act` for each number of `result` that may be missing.
template <class R, class Act>
void each_number(R& result, Act act) {
  EachField io{[&]<class T>(const char*, T& member) {
    if constexpr (Of<T, std::optional<double>>) act(member);
  }};
  fields(io, result);
}

bool finite(const Result& result) {
  bool all = true;
  each_number(result, [&](const auto& number) { all = all && (!number || std::isfinite(*number)); });
  return all;
}

/// JSON has no infinity, so a verdict that cannot be computed has no numbers.
void clear_numbers(Result& result) {
  each_number(result, [](auto& number) { number.reset(); });
  result.interval.reset();
  result.terms.reset();
  result.each.clear();
}

}  // namespace

UndecidedCell settled_cell(Result result) { return {.result = std::move(result), .settled = true}; }

UndecidedCell unchecked_cell(Result result, const std::string& what) {
  result.required = false;
  result.outcome = Outcome::not_measured;
  result.unchecked = true;
  result.reason = "Not checked: " + what;
  return settled_cell(std::move(result));
}

void settle(UndecidedCell& cell, const Scatter& scatter) {
  if (cell.settled) return;
  cell.settled = true;
  Result& result = cell.result;
  const auto inconclusive = [&](std::string reason) {
    result.outcome = Outcome::inconclusive;
    result.reason = std::move(reason);
  };
  decide(cell.requirement->limit, cell.estimate, scatter, cell.instrument, cell.reference, cell.risk, result);
  if (cell.requirement->contrast)
    result.reason = contrast_words(*cell.requirement, cell.unit, scatter, cell.risk, result);
  if (!finite(result)) {
    clear_numbers(result);
    return inconclusive("The limit or the samples are outside the range of the arithmetic.");
  }
  if (!cell.requirement->contrast)
    note_findings(cell.seen, cell.estimate, scatter.unsteady, cell.requirement->statistic, result);
  const bool passes = result.outcome == Outcome::pass || result.outcome == Outcome::conditional_pass;
  if (result.outcome != Outcome::pass && !cell.words.empty()) result.reason += fmt::format(" {}.", cell.words);
  if (passes && !cell.doubt.empty()) inconclusive(std::move(cell.doubt));
  if (!cell.unmet.empty()) inconclusive(std::move(cell.unmet));
}

}  // namespace assay::judge
