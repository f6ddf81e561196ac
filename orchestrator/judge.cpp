// judge: finds the samples of every planned cell, or the reason why there are none.
#include "orchestrator/judge.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "orchestrator/decision.h"

namespace assay {
namespace {

constexpr std::size_t kSmallestFleet = 3;  // with two, the median is between them and says nothing of either

/// Pooled samples of one subject.
struct Pool {
  std::vector<double> samples;
  std::vector<const Record*> records;
};

class Judge {
 public:
  Judge(const Plan& plan, const Journal& journal, const EvidenceReader& evidence)
      : plan_(plan), journal_(journal), evidence_(evidence) {
    for (const auto& step : plan.steps) steps_[step.id] = &step;
    for (const auto& requirement : plan.profile.requirements) requirements_[requirement.id] = &requirement;
    for (const auto& attempt : journal.attempts) attempts_[attempt.step].push_back(&attempt);
  }

  /// Results of every cell of the plan, or of one step's when it is named.
  std::vector<Result> results(const std::string& only_step = "") {
    std::vector<Result> all;
    for (const auto& cell : plan_.coverage) {
      if (!only_step.empty() && cell.step != only_step) continue;
      std::ranges::move(judge_cell(cell, *requirements_.at(cell.requirement)), std::back_inserter(all));
    }
    return all;
  }

 private:
  const StepEvidence& evidence_of(const std::string& step) {
    const auto known = evidence_of_.find(step);
    if (known != evidence_of_.end()) return known->second;
    return evidence_of_[step] = collect(plan_, *steps_.at(step), attempts_[step], journal_, evidence_);
  }

  static Result blank(const Cell& cell, const Requirement& requirement) {
    return {.requirement = requirement.id, .subject = cell.subject, .node = cell.subject.id, .step = cell.step,
            .required = requirement.required, .outcome = Outcome::not_measured, .reason = cell.reason,
            .unit = requirement.limit.unit};
  }

  std::vector<Result> judge_cell(const Cell& cell, const Requirement& requirement) {
    Result whole = blank(cell, requirement);
    if (cell.step.empty()) return {whole};
    const StepEvidence& step = evidence_of(cell.step);
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
      if (subject.kind != "node") one.subject = subject;
      judge_pool(requirement, subject, pool, one);
      if (pool.records.size() != step.records.size()) {
        one.outcome = Outcome::inconclusive;
        one.reason = fmt::format("It was seen in {} of {} attempts.", pool.records.size(), step.records.size());
      }
      all.push_back(std::move(one));
    }
    return all;
  }

  static std::map<Subject, Pool> pooled(const StepEvidence& step, const Requirement& requirement) {
    std::map<Subject, Pool> pools;
    for (const auto& record : step.records) {
      for (const auto& measured : record.measurements) {
        if (measured.metric != requirement.metric || measured.at != requirement.at) continue;
        if (measured.subject.kind != requirement.scope) continue;
        Pool& pool = pools[measured.subject];
        pool.samples.insert(pool.samples.end(), measured.samples.begin(), measured.samples.end());
        pool.records.push_back(&record);
      }
    }
    return pools;
  }

  void judge_pool(const Requirement& requirement, const Subject& subject, const Pool& pool, Result& result) {
    result.samples = pool.samples.size();
    const auto inconclusive = [&](std::string reason) {
      result.outcome = Outcome::inconclusive;
      result.reason = std::move(reason);
    };
    const auto& probe = plan_.probes.at(requirement.probe).description;
    const auto value = estimate(pool.samples, requirement.statistic, plan_.profile.confidence, probe.metric(requirement.metric)->instrument);
    if (value) {
      result.value = value->value;
      result.interval = value->interval;
      result.uncertainty = value->uncertainty;
    }
    const bool proved = check_conditions(requirement, subject, pool, result);
    if (pool.samples.size() < static_cast<std::size_t>(requirement.repeat_n)) {
      return inconclusive(fmt::format("{} samples where {} are demanded.", pool.samples.size(), requirement.repeat_n));
    }
    if (!value) {
      return inconclusive(fmt::format("{} samples are too few for an interval of the {} at {:g} % confidence.", pool.samples.size(),
                                      requirement.statistic, plan_.profile.confidence * 100));
    }
    const auto reference = reference_of(requirement, subject, pool);
    if (!reference) return inconclusive(reference.error());
    decide(requirement.limit, *value, *reference, guard_factor_for(plan_.profile.guard_factor, steps_.at(result.step)->looks), result);
    if (!finite(result)) {
      clear_numbers(result);
      return inconclusive("The limit or the samples are outside of what can be computed.");
    }
    if (!proved) {
      const auto unmet = std::ranges::find(result.conditions, false, &ConditionSeen::met);
      inconclusive(fmt::format("The condition {} {} is {}.", unmet->name, unmet->demanded,
                               unmet->seen ? "not met: it was " + to_json(*unmet->seen).dump() : "not recorded"));
    }
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

  static std::optional<double> number_in(const Value& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value)) return *real;
    return std::nullopt;
  }

  static bool meets(const Demand& demand, const Value& seen) {
    const auto number = number_in(seen);
    if (demand.equals) return number ? number == number_in(*demand.equals) : *demand.equals == seen;
    if (!number) return false;
    return (!demand.at_least || *number >= *demand.at_least) && (!demand.at_most || *number <= *demand.at_most);
  }

  static std::string words(const Demand& demand) {
    if (demand.equals) return "= " + to_json(*demand.equals).dump();
    std::string text;
    if (demand.at_least) text = fmt::format(">= {:g}", *demand.at_least);
    if (demand.at_most) text += fmt::format("{}<= {:g}", text.empty() ? "" : " and ", *demand.at_most);
    return text;
  }

  /// Every demand must be met in every pooled record, by each condition of that name on the subject or on the node.
  static bool check_conditions(const Requirement& requirement, const Subject& subject, const Pool& pool, Result& result) {
    bool proved = true;
    for (const auto& demand : requirement.conditions) {
      ConditionSeen seen{.name = demand.name, .demanded = words(demand), .seen = std::nullopt, .met = true};
      for (const Record* record : pool.records) {
        bool recorded = false;
        for (const auto& condition : record->conditions) {
          if (condition.name != demand.name || (condition.subject != subject && condition.subject.kind != "node")) continue;
          recorded = true;
          if (!seen.met) continue;
          seen.seen = condition.value;
          seen.met = meets(demand, condition.value);
        }
        if (!recorded) {
          seen.met = false;
          seen.seen = std::nullopt;
        }
      }
      proved = proved && seen.met;
      result.conditions.push_back(std::move(seen));
    }
    return proved;
  }

  std::expected<ReferenceValue, std::string> reference_of(const Requirement& requirement, const Subject& subject, const Pool& pool) {
    switch (requirement.limit.reference) {
      case Reference::none: return ReferenceValue{};
      case Reference::peak: return ReferenceValue{.value = plan_.profile.peaks.at(requirement.limit.name).value};
      case Reference::best_sample: {
        const bool larger = plan_.probes.at(requirement.probe).description.metric(requirement.metric)->better != "lower";
        return ReferenceValue{.value = larger ? std::ranges::max(pool.samples) : std::ranges::min(pool.samples)};
      }
      case Reference::metric: return metric_reference(requirement, subject, pool);
      case Reference::fleet_median: return fleet_reference(requirement);
    }
    return std::unexpected("The limit refers to nothing known.");
  }

  std::expected<ReferenceValue, std::string> metric_reference(const Requirement& requirement, const Subject& subject, const Pool& pool) {
    std::vector<double> samples;
    for (const Record* record : pool.records) {
      for (const auto& measured : record->measurements) {
        if (measured.metric == requirement.limit.name && measured.subject == subject && measured.at == requirement.at) {
          samples.insert(samples.end(), measured.samples.begin(), measured.samples.end());
        }
      }
    }
    const auto& metric = *plan_.probes.at(requirement.probe).description.metric(requirement.limit.name);
    const auto value = samples.empty() ? std::nullopt : estimate(samples, "median", plan_.profile.confidence, metric.instrument);
    if (!value) return std::unexpected(fmt::format("The reference {} was not measured often enough.", requirement.limit.name));
    return ReferenceValue{.value = value->value, .uncertainty = value->uncertainty};
  }

  std::expected<ReferenceValue, std::string> fleet_reference(const Requirement& requirement) {
    const auto known = fleets_.find(requirement.id);
    if (known != fleets_.end()) return known->second;
    std::vector<double> medians;
    for (const auto& cell : plan_.coverage) {
      if (cell.requirement != requirement.id || cell.step.empty()) continue;
      for (const auto& [subject, pool] : pooled(evidence_of(cell.step), requirement)) medians.push_back(median(pool.samples));
    }
    if (medians.size() < kSmallestFleet) {
      return std::unexpected(fmt::format("A fleet median needs {} subjects, {} were measured.", kSmallestFleet, medians.size()));
    }
    // The median's standard error under normality is 1.2533 sigma / sqrt(n) (Kendall & Stuart, vol. 1, 10.11).
    const double error = 1.2533 * robust_sigma(medians) / std::sqrt(static_cast<double>(medians.size()));
    return fleets_[requirement.id] = ReferenceValue{.value = median(medians), .uncertainty = error};
  }

  const Plan& plan_;
  const Journal& journal_;
  const EvidenceReader& evidence_;
  std::map<std::string, const Step*> steps_;
  std::map<std::string, const Requirement*> requirements_;
  std::map<std::string, std::vector<const Attempt*>> attempts_;
  std::map<std::string, StepEvidence> evidence_of_;
  std::map<std::string, ReferenceValue> fleets_;
};

std::vector<Deviation> deviations(const Plan& plan, const Journal& journal) {
  std::vector<Deviation> all;
  if (plan.quick) all.push_back({.what = "Quick parameters were used: a rehearsal, which accepts nothing.", .step = ""});
  if (plan.partial) all.push_back({.what = "Only a part of the profile was planned.", .step = ""});
  if (journal.resumed > 0) all.push_back({.what = fmt::format("The run was interrupted and resumed {} times.", journal.resumed), .step = ""});
  if (!journal.finished) all.push_back({.what = "The run did not come to its end.", .step = ""});
  for (const auto& name : plan.profile.companions) {
    if (!plan.probes.contains(name)) all.push_back({.what = fmt::format("The companion {} is not part of this build.", name), .step = ""});
  }
  for (const auto& event : journal.node_events) all.push_back({.what = fmt::format("Node {}: {}", event.node, event.reason), .step = ""});
  for (const auto& attempt : journal.attempts) {
    if (attempt.outcome == "exited" && attempt.reason.empty()) continue;
    all.push_back({.what = fmt::format("Attempt {} on {}: {}: {}", attempt.number, attempt.node, attempt.outcome, attempt.reason), .step = attempt.step});
  }
  return all;
}

/// Overall verdict and the sentence that says why.
void conclude(const Plan& plan, bool finished, Verdict& verdict) {
  std::size_t required = 0;
  std::size_t passed = 0;
  std::size_t failed = 0;
  const Result* first_open = nullptr;
  for (const auto& result : verdict.results) {
    ++verdict.counts[to_string(result.outcome)];
    if (!result.required) continue;
    ++required;
    if (result.outcome == Outcome::pass) ++passed;
    if (result.outcome == Outcome::fail) ++failed;
    if (result.outcome != Outcome::pass && (first_open == nullptr || (result.outcome == Outcome::fail && first_open->outcome != Outcome::fail))) {
      first_open = &result;
    }
  }
  const std::string count = fmt::format("{} of {} required cells pass", passed, required);
  if (plan.quick) {
    verdict.reason = count + "; quick parameters were used, so this is a rehearsal and accepts or rejects nothing.";
  } else if (failed > 0) {
    verdict.overall = Overall::rejected;
    verdict.reason = fmt::format("{}; {} fail, first {} on {}: {}", count, failed, first_open->requirement, first_open->node, first_open->reason);
  } else if (required == 0) {
    verdict.reason = "The profile requires nothing, so nothing can be accepted.";
  } else if (first_open != nullptr) {
    verdict.reason = fmt::format("{}; first open: {} on {} is {}: {}", count, first_open->requirement, first_open->node,
                                 to_string(first_open->outcome), first_open->reason);
  } else if (!finished) {
    verdict.reason = count + "; the run did not come to its end, so the whole cannot be accepted.";
  } else if (plan.partial) {
    verdict.reason = count + "; only a part of the profile was planned, so the whole cannot be accepted.";
  } else {
    verdict.overall = Overall::accepted;
    verdict.reason = count + ".";
  }
}

}  // namespace

Verdict judge(const Plan& plan, const std::string& plan_sha256, const Journal& journal, const EvidenceReader& evidence) {
  Verdict verdict{.plan_sha256 = plan_sha256, .run_id = journal.run_id, .profile = plan.profile.name,
                  .site = plan.site.name, .overall = Overall::incomplete, .reason = "",
                  .results = Judge(plan, journal, evidence).results(), .counts = {}, .deviations = deviations(plan, journal)};
  for (const auto outcome : {Outcome::pass, Outcome::conditional_pass, Outcome::conditional_fail, Outcome::fail,
                             Outcome::inconclusive, Outcome::not_measured, Outcome::error}) {
    verdict.counts[to_string(outcome)] = 0;
  }
  conclude(plan, journal.finished, verdict);
  return verdict;
}

bool another_look_decides(const Plan& plan, const Step& step, const Journal& journal, const EvidenceReader& evidence) {
  const auto results = Judge(plan, journal, evidence).results(step.id);
  const auto within_guard_band = [](const Result& result) {
    return result.outcome == Outcome::conditional_pass || result.outcome == Outcome::conditional_fail;
  };
  return std::ranges::any_of(results, within_guard_band);
}

}  // namespace assay
