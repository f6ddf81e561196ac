// judge: finds the samples of every planned cell, or the reason why there are none.
#include "orchestrator/judge/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "orchestrator/judge/conclude.h"
#include "orchestrator/judge/conditions.h"
#include "orchestrator/judge/decision.h"

namespace assay::judge {
namespace {

constexpr std::size_t kSmallestFleet = 3;  // with two, the median is between them and says nothing of either

/// Pooled samples of one subject, the records they came from, and those of the other ranks beside them.
struct Pool {
  std::vector<double> samples;
  std::vector<const Record*> records;
  std::vector<const Record*> others;
};

class Judge {
 public:
  Judge(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence)
      : plan_(plan), journal_(journal), evidence_(evidence), machines_(journal) {
    for (const auto& requirement : plan.profile.requirements) requirements_[requirement.id] = &requirement;
    for (const auto& attempt : journal.attempts) attempts_[attempt.step].push_back(&attempt);
  }

  /// Results of every cell of the plan. Goes step by step, so that one step's evidence is in memory at a time, whatever
  /// the size of the fleet.
  std::vector<Result> results() {
    std::vector<std::vector<Result>> of_cell(plan_.coverage.size());
    std::unordered_map<std::string_view, std::vector<std::size_t>> cells;
    for (std::size_t i = 0; i < plan_.coverage.size(); ++i) {
      const plan::Cell& cell = plan_.coverage[i];
      if (cell.step.empty())
        of_cell[i] = {blank(cell, *requirements_.at(cell.requirement))};
      else
        cells[cell.step].push_back(i);
    }
    take_fleets();
    take_smallest();
    for (const auto& step : plan_.steps) {
      const auto mine = cells.find(step.id);
      if (mine == cells.end()) continue;
      const StepEvidence found = evidence_of(step);
      for (const std::size_t i : mine->second)
        of_cell[i] = judge_cell(plan_.coverage[i], *requirements_.at(plan_.coverage[i].requirement), step, found);
    }
    std::vector<Result> all;
    for (auto& results : of_cell) std::ranges::move(results, std::back_inserter(all));
    return all;
  }

  /// Results of these cells of one step, without the fleet.
  std::vector<Result> results_of(const plan::Step& step, const std::vector<plan::Cell>& cells) {
    const StepEvidence found = evidence_of(step);
    std::vector<Result> all;
    for (const auto& cell : cells)
      std::ranges::move(judge_cell(cell, *requirements_.at(cell.requirement), step, found), std::back_inserter(all));
    return all;
  }

 private:
  StepEvidence evidence_of(const plan::Step& step) {
    const auto attempts = attempts_.find(step.id);
    static const std::vector<const Attempt*> kNone;
    return collect(plan_, step, attempts == attempts_.end() ? kNone : attempts->second, journal_, machines_, evidence_);
  }

  static Result blank(const plan::Cell& cell, const plan::Requirement& requirement) {
    return {.requirement = requirement.id,
            .subject = cell.subject,
            .node = cell.subject.id,
            .step = cell.step,
            .required = requirement.required,
            .outcome = Outcome::not_measured,
            .reason = cell.reason,
            .unit = requirement.limit.unit};
  }

  std::vector<Result> judge_cell(const plan::Cell& cell, const plan::Requirement& requirement,
                                 const plan::Step& planned, const StepEvidence& step) {
    Result whole = blank(cell, requirement);
    whole.evidence = step.paths;
    whole.attempts = step.attempts;
    if (step.broken || step.records.empty()) {
      // A crash beside a good attempt is not passed over: what failed once is not shown to work.
      whole.outcome = step.broken && !step.records.empty() ? Outcome::inconclusive : step.absence;
      whole.reason = step.reason;
      return {whole};
    }
    const auto pools = pooled(step, requirement);
    if (pools.empty()) {
      whole.reason = fmt::format("The record has no {} of a {}.", requirement.metric, requirement.scope);
      return {whole};
    }
    std::vector<Result> all;
    for (const auto& [subject, pool] : pools) {
      Result one = whole;
      if ((subject.kind != "node" && cell.subject.kind == "node") || pools.size() > 1) one.subject = subject;
      judge_pool(requirement, planned, subject, pool, one);
      if (pool.records.size() != step.records.size()) {
        one.outcome = Outcome::inconclusive;
        one.reason = fmt::format("Measured in {} of {} attempts.", pool.records.size(), step.records.size());
      }
      all.push_back(std::move(one));
    }
    if (auto wrong = wrong_number(whole, requirement, pools.size())) all.push_back(std::move(*wrong));
    return all;
  }

  /// The node's own cell when it showed more or fewer subjects than a node of this design has: the missing one is the
  /// one that is broken.
  [[nodiscard]] std::optional<Result> wrong_number(Result node, const plan::Requirement& requirement,
                                                   std::size_t seen) const {
    const auto designed = plan_.profile.per_node.find(std::string(word_of(requirement.scope)));
    if (node.subject.kind != "node") return std::nullopt;
    if (designed == plan_.profile.per_node.end() || static_cast<std::size_t>(designed->second) == seen)
      return std::nullopt;
    const bool missing = seen < static_cast<std::size_t>(designed->second);
    node.outcome = missing ? Outcome::not_measured : Outcome::inconclusive;
    node.reason =
        fmt::format("{} subjects of kind {} measured; the design has {}.", seen, requirement.scope, designed->second);
    return node;
  }

  static std::map<Subject, Pool> pooled(const StepEvidence& step, const plan::Requirement& requirement) {
    std::map<Subject, Pool> pools;
    for (std::size_t attempt = 0; attempt < step.records.size(); ++attempt) {
      for (const auto& measured : step.records[attempt].measurements) {
        if (!is_judged(measured, requirement)) continue;
        Pool& pool = pools[measured.subject];
        pool.samples.insert(pool.samples.end(), measured.samples.begin(), measured.samples.end());
        pool.records.push_back(&step.records[attempt]);
        for (const auto& other : step.others[attempt]) pool.others.push_back(&other);
      }
    }
    return pools;
  }

  void judge_pool(const plan::Requirement& requirement, const plan::Step& step, const Subject& subject,
                  const Pool& pool, Result& result) {
    result.samples = pool.samples.size();
    const auto inconclusive = [&](std::string reason) {
      result.outcome = Outcome::inconclusive;
      result.reason = std::move(reason);
    };
    const auto& probe = plan_.probes.at(requirement.probe).description;
    const auto value = estimate(pool.samples, requirement.statistic, plan_.profile.confidence,
                                probe.metric(requirement.metric)->instrument);
    if (value) {
      result.value = value->value;
      result.interval = value->interval;
      result.uncertainty = value->uncertainty;
    }
    result.conditions = check_demands(plan_.site, step, requirement, subject, pool.records, pool.others);
    if (pool.samples.size() < static_cast<std::size_t>(requirement.repeat_n)) {
      return inconclusive(
          fmt::format("{} samples measured; {} are required.", pool.samples.size(), requirement.repeat_n));
    }
    if (!value) {
      return inconclusive(fmt::format("{} samples are too few for an interval of the {} at {:g} % confidence.",
                                      pool.samples.size(), requirement.statistic, plan_.profile.confidence * 100));
    }
    const auto reference = reference_of(requirement, step, subject, pool);
    if (!reference) return inconclusive(reference.error());
    if (requirement.limit.reference != plan::Reference::none && !(reference->value > 0)) {
      result.value = value->value;
      return inconclusive("The reference of the limit is 0, so a share of it cannot be judged.");
    }
    decide(requirement.limit, *value, *reference, guard_factor_for(plan_.profile.guard_factor, step.looks), result);
    if (!finite(result)) {
      clear_numbers(result);
      return inconclusive("The limit or the samples are outside the range of the arithmetic.");
    }
    if (auto unmet = first_unmet(result.conditions); !unmet.empty()) inconclusive(std::move(unmet));
  }

  static bool finite(const Result& result) {
    for (const auto& number : {result.value, result.uncertainty, result.reference, result.limit_low, result.limit_high,
                               result.acceptance_low, result.acceptance_high, result.margin}) {
      if (number && !std::isfinite(*number)) return false;
    }
    return true;
  }

  /// JSON has no infinity, so a verdict that cannot be computed has no numbers.
  static void clear_numbers(Result& result) {
    for (auto* number : {&result.value, &result.uncertainty, &result.reference, &result.limit_low, &result.limit_high,
                         &result.acceptance_low, &result.acceptance_high, &result.margin, &result.false_accept}) {
      number->reset();
    }
    result.interval.reset();
  }

  std::expected<ReferenceValue, std::string> reference_of(const plan::Requirement& requirement, const plan::Step& step,
                                                          const Subject& subject, const Pool& pool) {
    switch (requirement.limit.reference) {
      case plan::Reference::none:
        return ReferenceValue{};
      case plan::Reference::peak:
        return ReferenceValue{.value = plan_.profile.peaks.at(requirement.limit.name).value};
      case plan::Reference::best_sample: {
        const bool larger =
            plan_.probes.at(requirement.probe).description.metric(requirement.metric)->better != "lower";
        return ReferenceValue{.value = larger ? std::ranges::max(pool.samples) : std::ranges::min(pool.samples)};
      }
      case plan::Reference::metric:
        return metric_reference(requirement, subject, pool);
      case plan::Reference::fleet_median:
        return fleet_reference(requirement);
      case plan::Reference::smallest_group:
      case plan::Reference::smallest_group_by_nodes:
        return smallest_reference(requirement, step);
    }
    return std::unexpected("The reference of the limit is unknown.");
  }

  std::expected<ReferenceValue, std::string> metric_reference(const plan::Requirement& requirement,
                                                              const Subject& subject, const Pool& pool) {
    std::vector<double> samples;
    for (const Record* record : pool.records) {
      for (const auto& measured : record->measurements) {
        if (measured.metric == requirement.limit.name && measured.subject == subject && measured.at == requirement.at) {
          samples.insert(samples.end(), measured.samples.begin(), measured.samples.end());
        }
      }
    }
    const auto& metric = *plan_.probes.at(requirement.probe).description.metric(requirement.limit.name);
    const auto value = samples.empty()
                           ? std::nullopt
                           : estimate(samples, plan::Statistic::median, plan_.profile.confidence, metric.instrument);
    if (!value) return std::unexpected(fmt::format("The reference {} has too few samples.", requirement.limit.name));
    return ReferenceValue{.value = value->value, .uncertainty = value->uncertainty};
  }

  /// Medians of every subject of the requirements that are judged by their fleet.
  void take_fleets() {
    std::set<std::string_view> wanted;
    for (const auto& requirement : plan_.profile.requirements) {
      if (requirement.limit.reference == plan::Reference::fleet_median) wanted.insert(requirement.id);
    }
    if (wanted.empty()) return;
    for (const auto& step : plan_.steps) {
      if (std::ranges::none_of(step.requirements, [&](const std::string& id) { return wanted.contains(id); })) continue;
      const StepEvidence found = evidence_of(step);
      if (found.broken) continue;
      for (const auto& id : step.requirements) {
        if (wanted.contains(id)) take_medians(*requirements_.at(id), step, found);
      }
    }
  }

  void take_medians(const plan::Requirement& requirement, const plan::Step& step, const StepEvidence& found) {
    for (const auto& [subject, pool] : pooled(found, requirement)) {
      // A number that is not fit to be judged is not fit to judge others by.
      if (pool.samples.size() < static_cast<std::size_t>(requirement.repeat_n)) continue;
      if (first_unmet(check_demands(plan_.site, step, requirement, subject, pool.records, pool.others)).empty())
        medians_[requirement.id].push_back(median(pool.samples));
    }
  }

  std::expected<ReferenceValue, std::string> fleet_reference(const plan::Requirement& requirement) {
    const auto known = fleets_.find(requirement.id);
    if (known != fleets_.end()) return known->second;
    const auto& medians = medians_[requirement.id];
    if (medians.size() < kSmallestFleet) {
      return std::unexpected(
          fmt::format("A fleet median needs {} subjects; {} were measured under the required conditions.",
                      kSmallestFleet, medians.size()));
    }
    // The median's standard error under normality is 1.2533 sigma / sqrt(n) (Kendall & Stuart, vol. 1, 10.11).
    const double error = 1.2533 * robust_sigma(medians) / std::sqrt(static_cast<double>(medians.size()));
    return fleets_[requirement.id] = ReferenceValue{.value = median(medians), .uncertainty = error};
  }

  /// What the smallest of growing groups reached, of each requirement that the others are held against it for and of
  /// each rail.
  void take_smallest() {
    std::map<SmallestKey, const plan::Step*> smallest;
    for (const auto& step : plan_.steps) {
      for (const auto& id : step.requirements) {
        if (!plan::is_of_smallest(requirements_.at(id)->limit.reference)) continue;
        const plan::Step*& known = smallest[{id, step.rail}];
        if (known == nullptr || step.nodes.size() < known->nodes.size()) known = &step;
      }
    }
    for (const auto& [key, step] : smallest) {
      const StepEvidence found = evidence_of(*step);
      const plan::Requirement& requirement = *requirements_.at(key.first);
      const auto pools = pooled(found, requirement);
      if (found.broken || pools.size() != 1) continue;
      const auto& [subject, pool] = *pools.begin();
      if (pool.records.size() != found.records.size() ||
          pool.samples.size() < static_cast<std::size_t>(requirement.repeat_n))
        continue;
      if (!first_unmet(check_demands(plan_.site, *step, requirement, subject, pool.records, pool.others)).empty())
        continue;
      const auto& metric = *plan_.probes.at(requirement.probe).description.metric(requirement.metric);
      const auto value = estimate(pool.samples, requirement.statistic, plan_.profile.confidence, metric.instrument);
      if (value)
        smallest_[key] = {.reference = {.value = value->value, .uncertainty = value->uncertainty},
                          .nodes = step->nodes.size()};
    }
  }

  [[nodiscard]] std::expected<ReferenceValue, std::string> smallest_reference(const plan::Requirement& requirement,
                                                                              const plan::Step& step) const {
    const auto known = smallest_.find({requirement.id, step.rail});
    if (known == smallest_.end())
      return std::unexpected("The smallest of the growing groups was not measured under the required conditions.");
    ReferenceValue reference = known->second.reference;
    if (requirement.limit.reference == plan::Reference::smallest_group_by_nodes) {
      const double times = static_cast<double>(step.nodes.size()) / static_cast<double>(known->second.nodes);
      reference = {.value = reference.value * times, .uncertainty = reference.uncertainty * times};
    }
    return reference;
  }

  using SmallestKey = std::pair<std::string, std::string>;  ///< requirement and rail
  struct Smallest {
    ReferenceValue reference;
    std::size_t nodes = 0;
  };

  const plan::Plan& plan_;
  const Journal& journal_;
  const EvidenceReader& evidence_;
  Machines machines_;
  std::map<std::string_view, const plan::Requirement*> requirements_;
  std::unordered_map<std::string_view, std::vector<const Attempt*>> attempts_;
  std::map<std::string, std::vector<double>> medians_;  ///< by requirement, in plan order
  std::map<std::string, ReferenceValue> fleets_;
  std::map<SmallestKey, Smallest> smallest_;
};

}  // namespace

Verdict judge(const plan::Plan& plan, const std::string& plan_sha256, const Journal& journal,
              const EvidenceReader& evidence) {
  Verdict verdict{.plan_sha256 = plan_sha256,
                  .run_id = journal.run_id,
                  .profile = plan.profile.name,
                  .site = plan.site.name,
                  .simulated = plan.simulation.has_value() || journal.simulated,
                  .overall = Overall::incomplete,
                  .reason = "",
                  .results = Judge(plan, journal, evidence).results(),
                  .localised = {},
                  .counts = {},
                  .deviations = deviations(plan, journal)};
  conclude(plan, journal.finished, verdict);
  return verdict;
}

std::vector<Result> judge_cells(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence) {
  return Judge(plan, journal, evidence).results();
}

std::vector<Result> judge_step(const plan::Plan& plan, const plan::Step& step, const std::vector<plan::Cell>& cells,
                               const Journal& part, const EvidenceReader& evidence) {
  return Judge(plan, part, evidence).results_of(step, cells);
}

bool another_look_decides(const std::vector<Result>& results) {
  return std::ranges::any_of(results, [](const Result& result) {
    return result.outcome == Outcome::conditional_pass || result.outcome == Outcome::conditional_fail;
  });
}

}  // namespace assay::judge
