// judge: collects the samples of every planned cell; judge.h lists the refusals in their order.
#include "orchestrator/judge/cells/judge.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/judge/cells/conditions.h"
#include "orchestrator/judge/cells/contrast.h"
#include "orchestrator/judge/cells/counter_rises.h"
#include "orchestrator/judge/cells/demand.h"
#include "orchestrator/judge/cells/judge_inputs.h"
#include "orchestrator/judge/cells/judged_steps.h"
#include "orchestrator/judge/cells/pool.h"
#include "orchestrator/judge/cells/references.h"
#include "orchestrator/judge/cells/subject_count.h"
#include "orchestrator/judge/cells/unjudged.h"
#include "orchestrator/judge/decide/chance.h"
#include "orchestrator/judge/metering/site_efficiency.h"
#include "orchestrator/judge/metering/site_evidence.h"
#include "orchestrator/judge/metering/site_step.h"
#include "orchestrator/plan/metered.h"
#include "orchestrator/plan/passes.h"
#include "probes/core/scale.h"

namespace assay::judge {
namespace {

constexpr double kAboveCeiling = 1.02;  // by more than the instruments' uncertainty

/// Judges steps one at a time, so that one step's evidence is in memory, whatever the size of the fleet. Each thread
/// has one of its own.
class Judge {
 public:
  explicit Judge(const JudgeInputs& given)
      : given_(given),
        plan_(given.plan),
        demands_(plan_.site),
        contrasts_(plan_, demands_),
        references_(plan_, demands_, [this](const plan::Step& step) { return evidence_of(step); }),
        rises_(plan_, [this](const plan::Step& step) { return evidence_of(step); }),
        components_(ComponentStatements::demanded_by(plan_)) {}

  References& references() { return references_; }

  void judge(const plan::Step& step, const CellsOfSteps& cells) {
    const auto mine = cells.find(step.id);
    if (mine == cells.end() && step.nodes.size() > 1) return;
    const StepEvidence found = evidence_of(step);
    if (mine == cells.end()) return judged_.parts.look(plan_, step, found);  // one that others are compared with
    judged_.look(plan_, components_, step, found);
    for (const std::size_t i : mine->second)
      for (auto& cell : judge_cell(plan_.coverage[i], given_.requirement(plan_.coverage[i].requirement), step, found))
        judged_.cells.take(i, std::move(cell));
  }
  /// Cell `i` of the plan, which does not measure it. Figures of what the site does not have are not reported.
  void judge_without_step(std::size_t i) {
    const plan::Cell& cell = plan_.coverage[i];
    const plan::Requirement& requirement = given_.requirement(cell.requirement);
    const bool untold = requirement.when_told && plan::site_lacks(plan_.site, requirement);
    Result result = blank(cell, requirement);
    judged_.cells.take(i,
                       untold ? unchecked_cell(std::move(result), cell.reason + ".") : settled_cell(std::move(result)));
  }

  /// Results of these cells of one step, without the fleet; of one attempt of it, or of those from one on.
  Results results_of(const plan::Step& step, const std::vector<plan::Cell>& cells) {
    const auto attempts = given_.attempts_of(step);
    const StepEvidence found = evidence_of(step, attempts.empty() ? 1 : attempts.front().number);
    CellResults all;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      for (auto& cell : judge_cell(cells[i], given_.requirement(cells[i].requirement), step, found))
        all.take(i, std::move(cell));
    }
    all.decide(1);
    return std::move(all).in_order();
  }

  /// The steps judged since the last call.
  JudgedSteps take() { return std::exchange(judged_, {}); }

 private:
  StepEvidence evidence_of(const plan::Step& step, int first = 1) {
    fault_of_ = {};  // other evidence may get the address of the last one
    demands_.forget();
    StepEvidence found =
        collect(plan_, step, given_.attempts_of(step), given_.journal, given_.machines, given_.evidence, first);
    for (const auto& [node, seconds] : found.outside_s) judged_.note_outside(node, seconds);
    return found;
  }

  static Result blank(const plan::Cell& cell, const plan::Requirement& requirement, std::size_t nodes = 0) {
    return {.requirement = requirement.id,
            .subject = cell.subject,
            .node = cell.subject.id,
            .step = cell.step,
            .required = requirement.required && (!requirement.knee || requirement.knee->demands(nodes)),
            .outcome = Outcome::not_measured,
            .reason = cell.reason,
            .unit = requirement.limit.unit};
  }

  std::vector<UndecidedCell> judge_cell(const plan::Cell& cell, const plan::Requirement& requirement,
                                        const plan::Step& planned, const StepEvidence& step) {
    Result whole = blank(cell, requirement, planned.nodes.size());
    whole.evidence = step.paths;
    whole.attempts = step.attempts;
    if (step.broken || step.records.empty()) {
      // A crash next to a good attempt is not ignored: a step that failed once is not shown to work.
      whole.outcome = step.broken && !step.records.empty() ? Outcome::inconclusive : step.absence;
      whole.reason = step.reason;
      return {settled_cell(std::move(whole))};
    }
    if (!requirement.during.empty()) return {metered_cell(cell, requirement, planned, step, std::move(whole))};
    auto pools = pooled(step, requirement, plan_.probes.at(requirement.probe).description);
    subjects_ = static_cast<double>(pools.size());
    const auto unknown = rises_.take(requirement, planned, pools);
    if (pools.empty() && unknown.empty()) {
      const std::string& judged = requirement.judged();
      if (const std::string kind = other_kind(step, requirement); !kind.empty()) {
        whole.outcome = Outcome::inconclusive;
        whole.reason = fmt::format("The record has {} of a {}, and a {} is judged.", judged, kind, requirement.scope);
        return {settled_cell(std::move(whole))};
      }
      if (requirement.when_told && !is_owed(plan_.probes.at(requirement.probe).description, requirement, planned))
        return {unchecked_cell(std::move(whole), fmt::format("this machine does not report {}.", judged))};
      whole.reason = fmt::format("No {} was recorded.", requirement.figure());
      return {settled_cell(std::move(whole))};
    }
    if (const auto most = most_subjects(plan_, requirement, planned); most && pools.size() > *most) {
      whole.outcome = Outcome::error;
      whole.reason = fmt::format("The record has {} subjects of kind {}; the design has {}.", pools.size(),
                                 requirement.scope, *most);
      return {settled_cell(std::move(whole))};
    }
    if (requirement.contrast)
      contrasts_.take(cell, requirement, [this](const plan::Step& one) { return evidence_of(one); });
    std::vector<UndecidedCell> all;
    for (const auto& [subject, pool] : pools) {
      Result one = whole;
      one.evidence = evidence_ == pool.evidence ? evidence_ : (evidence_ = pool.evidence);
      if ((subject.kind != "node" && cell.subject.kind == "node") || pools.size() > 1) one.subject = subject;
      all.push_back(requirement.contrast ? contrast_cell(requirement, planned, step, subject, pool, std::move(one))
                    : requirement.demand ? demand_cell(requirement, planned, subject, pool, std::move(one))
                                         : open_cell(requirement, planned, step, subject, pool, std::move(one)));
      if (std::string missing = missing_attempts(requirement, planned, step, pool, step); !missing.empty()) {
        all.back().settled = true;
        all.back().result.outcome = Outcome::inconclusive;
        all.back().result.reason = std::move(missing);
      }
    }
    for (const auto& [subject, why] : unknown) {
      Result one = whole;
      one.subject = subject;
      one.outcome = Outcome::inconclusive;
      one.reason = why;
      all.push_back(settled_cell(std::move(one)));
    }
    if (auto wrong = wrong_number(plan_, requirement, pools, whole)) all.push_back(settled_cell(std::move(*wrong)));
    return all;
  }

  /// A cell of the site's meters: their readings while the attempts of `planned` held their load. A meter without
  /// readings leaves its own cells open, and no others.
  UndecidedCell metered_cell(const plan::Cell& cell, const plan::Requirement& requirement, const plan::Step& planned,
                             const StepEvidence& step, Result whole) {
    if (metered_of_ != planned.id) {
      demands_.forget();
      metered_ = site_evidence(plan_, planned, step, given_.journal, given_.evidence);
      metered_of_ = planned.id;
    }
    whole.evidence = metered_.step.paths;
    whole.outcome = Outcome::inconclusive;
    const auto pools = pooled(metered_.step, requirement, plan_.probes.at(requirement.probe).description);
    const auto pool = pools.find(cell.subject);
    if (pool == pools.end()) {
      if (requirement.when_told && is_untold(metered_, requirement.metric, cell.subject))
        return unchecked_cell(std::move(whole), fmt::format("the {} {} does not report {}.", cell.subject.kind,
                                                            cell.subject.id, requirement.metric));
      whole.reason = fmt::format("No {} of the {} {} during the load. {}", requirement.metric, cell.subject.kind,
                                 cell.subject.id, why_missing(metered_, requirement.metric, cell.subject));
      return settled_cell(std::move(whole));
    }
    if (whole.reason = missing_attempts(requirement, planned, step, pool->second, metered_.step); !whole.reason.empty())
      return settled_cell(std::move(whole));
    UndecidedCell open = open_cell(requirement, planned, metered_.step, cell.subject, pool->second, std::move(whole));
    open.words = words_of(metered_, requirement.metric, cell.subject);
    return open;
  }

  /// Why a cell stays open: too few attempts, or some of `measured` without it; empty if nothing is missing.
  [[nodiscard]] std::string missing_attempts(const plan::Requirement& requirement, const plan::Step& planned,
                                             const StepEvidence& made, const Pool& pool,
                                             const StepEvidence& measured) const {
    // Without a second stage unfit() asks for the attempts.
    const bool second = given_.up_to == plan::Stage::second && given_.journal.more_attempts.contains(planned.id);
    if (const int due = second ? due_attempts(requirement, planned, made) : 0; made.attempts < due)
      return fmt::format("{} of {} planned attempts were made.", made.attempts, due);
    if (second && planned.after && measured.records.size() == measured.first_stage)
      return "Not measured after the load of the second stage.";
    if (pool.records.size() == measured.records.size()) return "";
    return fmt::format("Measured in {} of {} attempts.", pool.records.size(), measured.records.size());
  }

  /// Why a cell may not pass, with any figure; empty if it may.
  std::string doubt_of(const plan::Requirement& requirement, const plan::Step& step, const StepEvidence& found,
                       const Subject& subject, const Pool& pool, double value) {
    if (const std::string& fault = fault_in(step, found); !fault.empty()) return fault;
    if (std::string drive = emulated_drive(requirement, pool.records); !drive.empty()) return drive;
    const auto ceiling = references_.ceiling_of(requirement, step, subject, pool);
    if (ceiling && value > kAboveCeiling * *ceiling) {
      return fmt::format("{} is above what is physically possible, {}.", for_people(value, requirement.limit.unit),
                         for_people(*ceiling, requirement.limit.unit));
    }
    return references_.common_cause(requirement);
  }

  /// The fault in the evidence of `step` that no requirement judges, or that ended its load; the same for all cells.
  const std::string& fault_in(const plan::Step& step, const StepEvidence& found) {
    if (fault_of_ == std::pair(&step, &found)) return fault_;
    std::vector<const plan::Requirement*> judging;
    for (const auto& id : step.requirements) judging.push_back(&given_.requirement(id));
    fault_ = unjudged_fault(found, judging, plan_.probes.at(step.probe).description);
    if (fault_.empty()) fault_ = found.cut_short;
    fault_of_ = {&step, &found};
    return fault_;
  }

  /// `seen`, shared with the requirement's last cell if it is the same: of a fleet, most are.
  SharedList<ConditionSeen> shared(const plan::Requirement& requirement, SharedList<ConditionSeen> seen) {
    auto& last = conditions_[requirement.id];
    if (last != seen) last = std::move(seen);
    return last;
  }

  /// The pairs of one subject of a contrast.
  UndecidedCell contrast_cell(const plan::Requirement& requirement, const plan::Step& step, const StepEvidence& found,
                              const Subject& subject, const Pool& pool, Result result) {
    const Opposite& off = contrasts_.opposite();
    const auto without = off.pools.find(subject);
    const std::string missing = without == off.pools.end()
                                    ? ""
                                    : missing_attempts(requirement, *off.step, off.found, without->second, off.found);
    UndecidedCell cell = contrasts_.open(requirement, {step, found, pool}, subject, missing, std::move(result));
    if (!cell.settled) cell.doubt = fault_in(step, found);
    if (!cell.settled && cell.doubt.empty()) cell.doubt = fault_in(*off.step, off.found);
    return cell;
  }

  /// A cell of one subject's recorded condition, which needs no other cell.
  UndecidedCell demand_cell(const plan::Requirement& requirement, const plan::Step& step, const Subject& subject,
                            const Pool& pool, Result result) {
    const auto& probe = plan_.probes.at(requirement.probe).description;
    auto states = demands_.states(step, *requirement.demand, probe, subject, pool.records, pool.others.list());
    result.samples = pool.records.size();
    judge_demand(*requirement.demand, states, result);
    result.conditions = shared(requirement, std::move(states));
    if (result.outcome == Outcome::not_measured && requirement.when_told)
      return unchecked_cell(std::move(result), fmt::format("this machine does not report {}.", requirement.judged()));
    return settled_cell(std::move(result));
  }

  /// The samples of one subject, and the inputs of its decision.
  UndecidedCell open_cell(const plan::Requirement& requirement, const plan::Step& step, const StepEvidence& found,
                          const Subject& subject, const Pool& all, Result result) {
    UndecidedCell cell{.result = std::move(result), .requirement = &requirement, .settled = true};
    const auto leave = [&](Outcome outcome, std::string reason) {
      cell.result.outcome = outcome;
      cell.result.reason = std::move(reason);
      return cell;
    };
    const auto& probe = plan_.probes.at(requirement.probe).description;
    const FitPool fit = fit_part(demands_, step, requirement, probe, subject, found, all);
    cell.result.set_aside = fit.set_aside;
    const Pool& pool = fit.pool.measured.empty() ? all : fit.pool;
    cell.result.samples = pool.samples.size();
    cell.instrument = plan::is_of_meter_class(requirement) ? efficiency_instrument(all.records, all.measured)
                                                           : probe.metric(requirement.metric)->instrument;
    cell.stated = stated_scatter(*probe.metric(requirement.metric), requirement.reproducibility);
    cell.risk = risk_of(plan_.profile.guard_factor, step.more_attempts > 0);
    const auto estimate =
        estimate_attempts(pool.measured, requirement.statistic, {plan_.profile.confidence, cell.risk});
    if (estimate) {
      cell.result.value = estimate->value;
      cell.result.interval = estimate->interval;
      cell.result.each = estimate->each;
    }
    cell.result.conditions =
        shared(requirement, demands_.check(step, requirement, probe, subject, pool.records, pool.others.list()));
    if (auto cause = unfit(step, requirement, fit, found)) return leave(cause->outcome, std::move(cause->reason));
    if (!estimate) {
      return leave(Outcome::inconclusive, fmt::format("{} samples are too few for intervals of the {}.",
                                                      pool.samples.size(), requirement.statistic));
    }
    if (const auto size = size_not_measured(step, requirement, pool))
      return leave(Outcome::inconclusive, fmt::format("{} was not measured at {} B.", requirement.metric, *size));
    const auto reference = references_.of(requirement, step, subject, pool);
    if (!reference && reference.error().untold && requirement.when_told)
      return unchecked_cell(std::move(cell.result), reference.error().reason);
    if (!reference) return leave(Outcome::inconclusive, reference.error().reason);
    if (requirement.limit.reference != plan::Reference::none && !(reference->value > 0))
      return leave(Outcome::inconclusive, "The reference of the limit is 0, so a share of it cannot be judged.");
    cell.estimate = *estimate;
    cell.reference = *reference;
    const auto second = std::ranges::lower_bound(pool.attempts, found.first_stage);
    cell.seen = steadiness_of(pool.measured, {.begin = static_cast<std::size_t>(second - pool.attempts.begin()),
                                              .figures = std::max(given_.figures, subjects_)});
    cell.doubt = doubt_of(requirement, step, found, subject, pool, estimate->value);
    cell.words = places_missed(all, requirement, reference->value);
    cell.unmet = first_unmet(requirement, cell.result.conditions.list(), probe);
    cell.settled = false;
    return cell;
  }

  const JudgeInputs& given_;
  const plan::Plan& plan_;
  double subjects_ = 1;  ///< of the cell of the plan: thousands of pairs of a rack, which no plan counts
  Demands demands_;
  std::pair<const plan::Step*, const StepEvidence*> fault_of_;  ///< whose fault_ is known
  std::string fault_;
  Contrasts contrasts_;
  References references_;
  CounterRises rises_;
  std::set<std::size_t> components_;  ///< whose statements are compared
  std::string metered_of_;            ///< the step of metered_
  SiteEvidence metered_;
  std::unordered_map<std::string_view, SharedList<ConditionSeen>> conditions_;  ///< of each requirement's last cell
  SharedList<std::string> evidence_;  ///< of the last cell: those of a step have mostly the same
  JudgedSteps judged_;
};

/// Judges every cell. Threads take parts of a run of steps; their results are put together in the order of the plan,
/// and decided at the end of the run.
JudgedCells judge_all(const JudgeInputs& given) {
  const plan::Plan& plan = given.plan;
  const auto threads =
      static_cast<unsigned>(std::clamp<std::size_t>(parts_of(plan.steps), 1, given.evidence.threads()));
  std::deque<Judge> judges;
  for (unsigned i = 0; i < threads; ++i) judges.emplace_back(given);
  CellsOfSteps cells;
  for (std::size_t i = 0; i < plan.coverage.size(); ++i) {
    if (plan.coverage[i].step.empty())
      judges.front().judge_without_step(i);
    else
      cells[plan.coverage[i].step].push_back(i);
  }
  each_part(plan.steps, threads, [&](unsigned, std::size_t, Steps steps) {
    for (const auto& step : steps) read_ahead(plan, step, given.attempts_of(step), given.evidence);
  });
  References& references = judges.front().references();
  references.take();
  for (unsigned i = 1; i < threads; ++i) judges[i].references().take(references);
  JudgedSteps all = judges.front().take();
  for (const Steps run : runs_of(plan, cells)) {
    std::vector<JudgedSteps> found(parts_of(run));
    each_part(run, threads, [&](unsigned thread, std::size_t part, Steps steps) {
      for (const auto& step : steps) judges[thread].judge(step, cells);
      found[part] = judges[thread].take();
    });
    for (auto& one : found) all.take(std::move(one));
    all.cells.decide(threads);
  }
  judges.clear();
  JudgedCells whole{.results = std::move(all.cells).in_order(), .outside_s = std::move(all.outside_s)};
  all.parts.hold(plan, whole.results);
  all.statements.hold_together(plan, whole.results);
  all.identities.refuse_twins(whole.results);
  hold_against_chance(whole.results);
  all.looks.add_to(plan, whole.results);
  return whole;
}

}  // namespace

JudgedCells judge_cells_and_clocks(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence) {
  return judge_all({plan, journal, evidence});
}

Results judge_cells(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence) {
  return judge_all({plan, journal, evidence}).results;
}

Results judge_first_stage(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence) {
  return judge_all({plan, journal, evidence, plan::Stage::first}).results;
}

Results judge_step(const plan::Plan& plan, const plan::Step& step, const std::vector<plan::Cell>& cells,
                   const Journal& part, const EvidenceReader& evidence) {
  const JudgeInputs given(plan, part, evidence);
  auto results = Judge(given).results_of(step, cells);
  hold_against_chance(results);
  return results;
}

}  // namespace assay::judge
