// comparison: pairs the cells of two runs, tests them if possible, and names the others.
#include "reports/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "reports/dossier/target_differences.h"
#include "reports/figures/result_text.h"

namespace assay::compare {
namespace {

constexpr double kConfidence = 0.95;  // of one interval

using CellKey = std::tuple<std::string, std::string, std::string>;  // node, kind, id

CellKey key_of(const judge::Result& result) { return {result.node, result.subject.kind, result.subject.id}; }

/// Whether the figure was judged: an inconclusive one may have been measured under other load.
bool is_judged(const judge::Result* result) {
  if (result == nullptr || result->each.empty()) return false;
  using enum judge::Outcome;
  return result->outcome == pass || result->outcome == conditional_pass || result->outcome == conditional_fail ||
         result->outcome == fail;
}

std::map<std::string, std::vector<const judge::Result*>> by_requirement(const judge::Verdict& verdict) {
  std::map<std::string, std::vector<const judge::Result*>> all;
  for (const auto& result : verdict.results) all[result.requirement].push_back(&result);
  return all;
}

std::vector<CellPair> paired(const std::vector<const judge::Result*>& a, const std::vector<const judge::Result*>& b) {
  std::map<CellKey, std::size_t> place;
  std::vector<CellPair> cells;
  for (const auto* one : a) {
    place[key_of(*one)] = cells.size();
    cells.push_back({.a = one});
  }
  for (const auto* one : b) {
    const auto found = place.find(key_of(*one));
    if (found == place.end()) {
      cells.push_back({.b = one});
    } else {
      cells[found->second].b = one;
    }
  }
  for (auto& cell : cells) {
    if (cell.a == nullptr || cell.b == nullptr || !cell.a->value || !cell.b->value) continue;
    if (*cell.a->value > 0 && *cell.b->value > 0) cell.change = *cell.b->value / *cell.a->value - 1;
  }
  return cells;
}

std::map<std::string, std::size_t> outcomes_of(const std::vector<const judge::Result*>& results) {
  std::map<std::string, std::size_t> counts;
  for (const auto* result : results) ++counts[judge::to_string(result->outcome)];
  return counts;
}

/// The strata that the figures of `pair` give, and their part of the two runs.
std::vector<Stratum> strata_of(RequirementPair& pair) {
  std::vector<Stratum> strata;
  std::vector<double> values_a, values_b;
  Stratum all;
  for (const auto& cell : pair.cells) {
    if (is_judged(cell.a)) all.a.push_back(*cell.a->value);
    if (is_judged(cell.b)) all.b.push_back(*cell.b->value);
    if (is_judged(cell.a) && is_judged(cell.b)) {
      strata.push_back({.a = cell.a->each, .b = cell.b->each});
      values_a.push_back(*cell.a->value);
      values_b.push_back(*cell.b->value);
    } else if (cell.a != nullptr && cell.b != nullptr) {
      ++pair.left_out;
    }
  }
  const bool shared =
      std::ranges::any_of(pair.cells, [](const CellPair& cell) { return cell.a != nullptr && cell.b != nullptr; });
  if (!shared && !all.a.empty() && !all.b.empty()) {
    pair.design = Design::subjects;
    pair.tested = all.a.size() + all.b.size();
    values_a = all.a;
    values_b = all.b;
    strata = {std::move(all)};
  } else {
    pair.tested = strata.size();
  }
  if (!values_a.empty()) pair.value_a = median(values_a);
  if (!values_b.empty()) pair.value_b = median(values_b);
  return strata;
}

/// Fills the tests of one requirement.
void test_pair(RequirementPair& pair) {
  const auto strata = strata_of(pair);
  if (!pair.method.empty()) return;
  if (strata.empty()) {
    pair.reason = pair.limit_a.empty() || pair.limit_b.empty() ? "Only one of the runs has this requirement."
                  : pair.unit.empty() ? "A condition is judged, which has no figure: only the outcomes can be compared."
                                      : "No subject has a judged figure in both runs.";
    return;
  }
  pair.test = rank_test(strata, kConfidence);
  for (auto& cell : pair.cells) {
    if (!is_judged(cell.a) || !is_judged(cell.b)) continue;
    const Stratum own{.a = cell.a->each, .b = cell.b->each};
    cell.test = rank_test({&own, 1}, kConfidence);
  }
}

/// One sentence for the finding.
std::string reason_of(const RequirementPair& pair, double threshold) {
  const char* what = pair.design == Design::attempts ? "attempts of the subjects that both runs have"
                                                     : "subjects, of which the runs have none in common";
  switch (pair.finding) {
    case Finding::too_few:
      return fmt::format("Too few {}: the least p of any order of them is {:.2g}, {:.2g} counts as a difference.", what,
                         pair.test.smallest_p, threshold);
    case Finding::not_shown:
      return fmt::format(
          "p is {:.2g} over {}; {:.2g} counts as a difference. That none was shown does not show that "
          "there is none.",
          pair.test.p, what, threshold);
    case Finding::equal:
      return "Every subject has the same figure in all attempts of both runs.";
    case Finding::small:
      return fmt::format("The runs differ (p {:.2g}), by less than what was said to matter.", pair.test.p);
    case Finding::worse:
    case Finding::better:
    case Finding::different:
      return fmt::format("p is {:.2g} over {}; {:.2g} counts as a difference.", pair.test.p, what, threshold);
    case Finding::not_compared:
      break;
  }
  return pair.reason;
}

RequirementPair make_pair(const Side& a, const Side& b, const std::string& id,
                          const std::vector<const judge::Result*>& results_a,
                          const std::vector<const judge::Result*>& results_b) {
  const auto* of_a = a.content.run.plan.requirement(id);
  const auto* of_b = b.content.run.plan.requirement(id);
  const plan::Requirement& either = of_a != nullptr ? *of_a : *of_b;
  RequirementPair pair{.id = id,
                       .metric = either.contrast || either.demand ? either.figure() : either.metric,
                       .unit = either.limit.unit,
                       .statistic = std::string(word_of(either.statistic)),
                       .limit_a = of_a == nullptr ? "" : figures::target_words(a.content.run.plan.profile, *of_a),
                       .limit_b = of_b == nullptr ? "" : figures::target_words(b.content.run.plan.profile, *of_b),
                       .cells = paired(results_a, results_b),
                       .outcomes_a = outcomes_of(results_a),
                       .outcomes_b = outcomes_of(results_b)};
  if (of_a != nullptr && of_b != nullptr)
    pair.method = method_differences(a.content.run.plan, b.content.run.plan, *of_a, *of_b);
  if (!pair.method.empty()) pair.reason = "The figures do not mean the same: " + pair.method.front() + ".";
  test_pair(pair);
  return pair;
}

/// The findings of all requirements and of all cells: one family of tests.
void conclude(const Side& a, const Side& b, Comparison& all) {
  std::vector<double> smallest;
  for (const auto& pair : all.requirements) {
    if (pair.test.shift) smallest.push_back(pair.test.smallest_p);
    for (const auto& cell : pair.cells) {
      if (cell.test.shift) smallest.push_back(cell.test.smallest_p);
    }
  }
  all.threshold = tarone_threshold(smallest, all.demands.alpha);
  for (const auto& word : words_of(Finding{})) all.counts[std::string(word.text)] = 0;
  for (auto& pair : all.requirements) {
    const auto* of_a = a.content.run.plan.requirement(pair.id);
    const Side& known = of_a != nullptr ? a : b;
    const int better = better_side(known.content.run.plan, *known.content.run.plan.requirement(pair.id));
    if (pair.test.shift)
      pair.finding =
          finding_of(pair.test, all.threshold, all.demands.smallest_change, better, pair.change().value_or(0));
    pair.reason = reason_of(pair, all.threshold);
    ++all.counts[std::string(word_of(pair.finding))];
    for (auto& cell : pair.cells) {
      if (cell.test.shift)
        cell.finding =
            finding_of(cell.test, all.threshold, all.demands.smallest_change, better, cell.change.value_or(0));
    }
  }
}

}  // namespace

int better_side(const plan::Plan& plan, const plan::Requirement& requirement) {
  if (requirement.contrast) return 1;
  const auto probe = plan.probes.find(requirement.probe);
  const auto* metric = probe == plan.probes.end() ? nullptr : probe->second.description.metric(requirement.metric);
  if (metric != nullptr && metric->better == "higher") return 1;
  if (metric != nullptr && metric->better == "lower") return -1;
  if (requirement.limit.at_least && !requirement.limit.at_most) return 1;
  return requirement.limit.at_most && !requirement.limit.at_least ? -1 : 0;
}

std::optional<double> RequirementPair::change() const {
  if (!value_a || !value_b || !(*value_a > 0) || !(*value_b > 0)) return std::nullopt;
  return *value_b / *value_a - 1;
}

Finding finding_of(const RankTest& test, double threshold, double smallest_change, int better, double shown) {
  if (!test.shift) return Finding::too_few;
  const double by = test.ratio ? *test.shift - 1 : *test.shift;
  if (test.smallest_p >= 1 && by == 0) return Finding::equal;  // only ties have no other order
  if (test.smallest_p > threshold) return Finding::too_few;
  if (test.p > threshold) return Finding::not_shown;
  const bool matters = std::abs(shown) >= smallest_change;
  if (by == 0 || (test.ratio && std::abs(by) < smallest_change && !matters)) return Finding::small;
  if (better == 0 || (matters && (by > 0) != (shown > 0))) return Finding::different;
  return (by > 0) == (better > 0) ? Finding::better : Finding::worse;
}

std::string name_of(const CellPair& cell) { return figures::subject_words(cell.a != nullptr ? *cell.a : *cell.b); }

Comparison compare(const Side& a, const Side& b, const Demands& demands) {
  Comparison all{.demands = demands,
                 .notes = notes_of(a, b),
                 .targets = dossier::target_differences(b.content.run.plan.profile, a.content.run.plan.profile),
                 .counts = {}};
  const auto results_a = by_requirement(a.content.verdict);
  const auto results_b = by_requirement(b.content.verdict);
  const auto of = [](const auto& results, const std::string& id) {
    const auto found = results.find(id);
    return found == results.end() ? std::vector<const judge::Result*>{} : found->second;
  };
  for (const auto* side : {&a, &b}) {
    for (const auto& requirement : side->content.run.plan.profile.requirements) {
      if (side == &b && a.content.run.plan.requirement(requirement.id) != nullptr) continue;
      all.requirements.push_back(
          make_pair(a, b, requirement.id, of(results_a, requirement.id), of(results_b, requirement.id)));
    }
  }
  conclude(a, b, all);
  return all;
}

}  // namespace assay::compare
