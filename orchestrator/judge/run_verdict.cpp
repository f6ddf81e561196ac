// run_verdict: judges the cells, replays the searches over the extra tests of the journal, and refuses a journal with
// attempts that neither plan nor searches asked for.
#include "orchestrator/judge/run_verdict.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/cells/second_stage.h"
#include "orchestrator/judge/locate/knees.h"
#include "orchestrator/judge/locate/pairs.h"
#include "orchestrator/judge/locate/searches.h"
#include "orchestrator/judge/overall/conclude.h"
#include "orchestrator/judge/overall/limitations.h"
#include "orchestrator/judge/overall/node_verdicts.h"

namespace assay::judge {
namespace {

/// Attempts of extra tests by the id of the test; ordered, so that the first error is the same everywhere.
using ExtraAttempts = std::map<std::string, std::vector<Attempt>>;

std::expected<ExtraAttempts, InputError> extra_attempts(const plan::Plan& plan, const Journal& journal) {
  std::set<std::string_view> steps;
  for (const auto& step : plan.steps) steps.insert(step.id);
  ExtraAttempts extra;
  for (const auto& attempt : journal.attempts) {
    if (attempt.is_extra())
      extra[attempt.step].push_back(attempt);
    else if (!steps.contains(attempt.step))
      return std::unexpected(InputError{
          "journal.jsonl", fmt::format("has an attempt of '{}', which is no step of the plan", attempt.step), ""});
  }
  return extra;
}

/// Gives the searches the journal's entries of the tests that they ask for.
void replay(Searches& searches, const Journal& journal, const ExtraAttempts& extra, const EvidenceReader& evidence) {
  const auto part_of = [&](const ExtraTest& test) {
    Journal part;
    if (const auto made = extra.find(test.step.id); made != extra.end()) {
      for (const auto& attempt : made->second) part.attempts.push_back(attempt);
    }
    for (const auto& node : test.step.nodes) {
      if (const auto facts = journal.node_facts.find(node); facts != journal.node_facts.end())
        part.node_facts.insert(*facts);
    }
    return part;
  };
  for (bool more = journal.localising; more;) {
    more = false;
    for (const auto& test : searches.open()) {
      const auto shown = searches.shown(test, part_of(test), evidence);
      if (!shown) continue;
      searches.take(test.step.id, *shown);
      more = true;
    }
  }
}

/// A test that its search would not have asked for, or that was made more than once.
std::optional<InputError> check_asked(const Searches& searches, const ExtraAttempts& extra) {
  for (const auto& [step, attempts] : extra) {
    const auto ended =
        std::ranges::count_if(attempts, [](const Attempt& one) { return one.outcome != AttemptOutcome::interrupted; });
    const bool asked = std::ranges::all_of(attempts, [&](const Attempt& one) { return searches.has_asked(one); });
    if (asked && ended <= 1) continue;
    return InputError{
        "journal.jsonl",
        fmt::format("has the test {}{}", step, asked ? " twice" : ", which its search would not have asked for"),
        "extra tests follow from the plan and the outcomes before them; restore the journal"};
  }
  return std::nullopt;
}

}  // namespace

Verdict judge(const plan::Plan& plan, const std::string& plan_sha256, const Journal& journal,
              const EvidenceReader& evidence) {
  JudgedCells cells = judge_cells_and_clocks(plan, journal, evidence);
  Verdict verdict{.plan_sha256 = plan_sha256,
                  .run_id = journal.run_id,
                  .profile = plan.profile.name,
                  .site = plan.site.name,
                  .simulated = plan.simulation.has_value() || journal.simulated,
                  .overall = Overall::incomplete,
                  .results = std::move(cells.results),
                  .counts = {},
                  .deviations = deviations(plan, journal)};
  std::ranges::move(set_aside_deviations(verdict.results), std::back_inserter(verdict.deviations));
  std::ranges::move(clock_deviations(cells.outside_s), std::back_inserter(verdict.deviations));
  conclude(plan, journal.finished, verdict);
  return verdict;
}

std::expected<Verdict, InputError> judge_run(const plan::Plan& plan, const std::string& plan_sha256,
                                             const Journal& journal, const EvidenceReader& evidence,
                                             JournalOrigin origin) {
  const auto extra = extra_attempts(plan, journal);
  if (!extra) return std::unexpected(extra.error());
  if (origin == JournalOrigin::handed_in) {
    if (auto problem = check_second_stage(plan, journal, evidence)) return std::unexpected(std::move(*problem));
  }
  Verdict verdict = judge(plan, plan_sha256, journal, evidence);
  Searches searches(plan, verdict.results, journal, evidence);
  replay(searches, journal, *extra, evidence);
  if (auto problem = check_asked(searches, *extra)) return std::unexpected(std::move(*problem));
  std::set<std::string> lost;
  for (const auto& event : journal.node_events) lost.insert(event.node);
  if (!plan.quick)  // a rehearsal names no node
    verdict.localised = localise_pairs(plan, verdict.results, lost, nodes_by_host(journal));
  std::ranges::move(searches.found(), std::back_inserter(verdict.localised));
  verdict.knees = knees_of(plan, verdict, journal, evidence);
  name_culprits(verdict);
  claim_less(plan, verdict);
  verdict.nodes = node_verdicts(plan, journal.finished, verdict);
  return verdict;
}

}  // namespace assay::judge
