// pool: sorts the measurements of a step by subject, and sets aside attempts that other programs disturbed; see pool.h.
#include "orchestrator/judge/cells/pool.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "orchestrator/judge/cells/unjudged.h"
#include "orchestrator/plan/repeat.h"
#include "probes/core/json_io.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

void take(Pool& pool, const StepEvidence& step, std::size_t attempt, const Measurement* measured) {
  if (measured != nullptr) {
    pool.samples.insert(pool.samples.end(), measured->samples.begin(), measured->samples.end());
    pool.measured.push_back(measured);
  }
  pool.records.push_back(&step.records[attempt]);
  pool.attempts.push_back(attempt);
}

/// The samples of one attempt that a requirement judges, and the ranks whose records have them.
struct Judged {
  std::vector<const Measurement*> parts;
  std::set<int> ranks;

  void add(const Measurement& measured, const Record& record) {
    parts.push_back(&measured);
    ranks.insert(record.start.rank);
  }
};

using JudgedBySubject = std::map<Subject, Judged>;

JudgedBySubject judged_in(const Record& record, const plan::Requirement& requirement) {
  JudgedBySubject found;
  const auto host = record.start.host.find("name");
  for (const auto& measured : record.measurements) {
    if (!is_judged(measured, requirement)) continue;
    // The head's record of meters has figures of many nodes; any other one is of its own.
    const bool of_another_node = requirement.during.empty() && measured.subject.kind == "node" &&
                                 host != record.start.host.end() && host->second != Value{measured.subject.id};
    if (!of_another_node) found[measured.subject].add(measured, record);
  }
  return found;
}

/// Adds faults found by the other ranks: to their subject's, or to the first if rank 0 does not know it.
void add_faults(const std::vector<Record>& others, const plan::Requirement& requirement, JudgedBySubject& found) {
  for (const auto& other : others) {
    for (const auto& measured : other.measurements) {
      if (!is_judged_of_other(measured, requirement)) continue;
      const auto same = found.find(measured.subject);
      (same == found.end() ? found.begin() : same)->second.add(measured, other);
    }
  }
}

/// The subjects of a demand in `record`, and of each its rank: where the record has the condition, of that kind of
/// subject or of the node, all of that kind that it names. Nodes that work together are judged by the record's node,
/// and by those of the other ranks.
JudgedBySubject demanded_in(const Record& record, const plan::Requirement& requirement) {
  JudgedBySubject found;
  const bool together = plan::is_together(requirement.scope);
  const auto is_own = [&](const Subject& subject) {
    const auto kind = from_word<plan::JudgedScope>(subject.kind);
    return kind && (kind == requirement.scope || (together && plan::is_together(*kind)));
  };
  const bool is_known = std::ranges::any_of(record.conditions, [&](const Condition& one) {
    return one.name == requirement.demand->name && (one.subject.kind == "node" || is_own(one.subject));
  });
  if (!is_known) return found;
  if (requirement.scope == plan::JudgedScope::node || (together && record.start.world > 1)) {
    const auto host = record.start.host.find("name");
    const auto* name = host == record.start.host.end() ? nullptr : std::get_if<std::string>(&host->second);
    found[{.kind = "node", .id = name == nullptr ? "" : *name}].ranks.insert(record.start.rank);
    return found;
  }
  const auto add = [&](const Subject& subject) {
    if (is_own(subject)) found[subject].ranks.insert(record.start.rank);
  };
  for (const auto& one : record.measurements) add(one.subject);
  for (const auto& one : record.conditions) add(one.subject);
  return found;
}

/// All of them as one measurement.
Measurement joined(const std::vector<const Measurement*>& parts) {
  Measurement whole = *parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i)
    whole.samples.insert(whole.samples.end(), parts[i]->samples.begin(), parts[i]->samples.end());
  return whole;
}

/// The paths of `step` that are of these ranks or of none. A step of many ranks has as many files, and most figures
/// are in one.
SharedList<std::string> paths_of(const StepEvidence& step, const std::set<int>& ranks) {
  std::vector<std::string> found;
  std::ranges::copy_if(step.paths, std::back_inserter(found), [&](const std::string& path) {
    const auto rank = rank_in(path);
    return !rank || ranks.contains(*rank);
  });
  if (found.size() == step.paths.size()) return step.paths;
  return found;
}

/// The records of the other ranks in these attempts.
SharedList<const Record*> others_in(const StepEvidence& step, const std::vector<std::size_t>& attempts) {
  std::vector<const Record*> found;
  for (const std::size_t attempt : attempts) {
    for (const auto& other : step.others[attempt]) found.push_back(&other);
  }
  return found;
}

constexpr std::size_t kMostPlaces = 3;  // a sentence, not a table

/// "class hang, size 4".
std::string place_of(const Values& at) {
  std::string text;
  for (const auto& [name, value] : at) {
    const auto* words = std::get_if<std::string>(&value);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", harmless(name),
                        words != nullptr ? harmless(*words) : assay::to_json(value).dump());
  }
  return text;
}

/// Only the demands of `requirement` on the surroundings.
plan::Requirement demands_on_surroundings(const plan::Requirement& requirement) {
  plan::Requirement part = requirement;
  std::erase_if(part.conditions, [](const plan::RequiredCondition& one) { return !one.surroundings; });
  return part;
}

}  // namespace

std::map<Subject, Pool> pooled(const StepEvidence& step, const plan::Requirement& requirement,
                               const Description& probe) {
  std::map<Subject, Pool> pools;
  const auto* metric = probe.metric(requirement.metric);
  const bool is_fault = metric != nullptr && metric->kind == MetricKind::fault;
  for (std::size_t attempt = 0; attempt < step.records.size(); ++attempt) {
    auto measured = requirement.demand ? demanded_in(step.records[attempt], requirement)
                                       : judged_in(step.records[attempt], requirement);
    if (is_fault && !measured.empty()) add_faults(step.others[attempt], requirement, measured);
    for (const auto& [subject, judged] : measured) {
      const auto& parts = judged.parts;
      Pool& pool = pools[subject];
      take(pool, step, attempt,
           parts.empty()       ? nullptr
           : parts.size() == 1 ? parts.front()
                               : &pool.joined.emplace_back(joined(parts)));
      pool.parts.insert(pool.parts.end(), parts.begin(), parts.end());
      pool.ranks.insert(judged.ranks.begin(), judged.ranks.end());
    }
  }
  // A step of many ranks has as many subjects, and these lists are as long: most of them are the same.
  std::map<std::set<int>, SharedList<std::string>> paths;
  std::map<std::vector<std::size_t>, SharedList<const Record*>> others;
  for (auto& [subject, pool] : pools) {
    const auto [of_ranks, is_new] = paths.try_emplace(pool.ranks);
    if (is_new) of_ranks->second = paths_of(step, pool.ranks);
    pool.evidence = of_ranks->second;
    const auto [beside, are_new] = others.try_emplace(pool.attempts);
    if (are_new) beside->second = others_in(step, pool.attempts);
    pool.others = beside->second;
  }
  return pools;
}

std::string places_missed(const Pool& pool, const plan::Requirement& requirement, double reference) {
  const plan::Limit& limit = requirement.limit;
  const bool highest = requirement.statistic == plan::Statistic::max;  // with at_most, else min with at_least
  if (!requirement.at_every) return "";
  const double bound = (highest ? *limit.at_most : *limit.at_least) * reference, sign = highest ? 1 : -1;
  std::map<std::string, double> worst;
  for (const Measurement* part : pool.parts) {
    const double value = sign * (highest ? std::ranges::max(part->samples) : std::ranges::min(part->samples));
    if (part->at.empty() || value <= sign * bound) continue;
    const auto found = worst.emplace(place_of(part->at), value).first;
    found->second = std::max(found->second, value);
  }
  std::vector<std::pair<std::string, double>> all(worst.begin(), worst.end());
  std::ranges::stable_sort(all, std::greater{}, [](const auto& one) { return one.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMostPlaces); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "Missed at " : ", ", all[i].first,
                        for_people(sign * all[i].second, limit.unit));
  if (all.size() > kMostPlaces) text += fmt::format(", and {} more", all.size() - kMostPlaces);
  return text;
}

std::string other_kind(const StepEvidence& step, const plan::Requirement& requirement) {
  for (const auto& record : step.records) {
    if (requirement.demand) {
      const auto said = std::ranges::find(record.conditions, requirement.demand->name, &Condition::name);
      if (said != record.conditions.end()) return said->subject.kind;
    }
    for (const auto& measured : record.measurements) {
      const bool same_place = requirement.at_every || measured.at == requirement.at;
      if (measured.metric == requirement.metric && same_place && !is_judged(measured, requirement))
        return measured.subject.kind;
    }
  }
  return "";
}

FitPool fit_part(Demands& demands, const plan::Step& step, const plan::Requirement& requirement,
                 const Description& probe, const Subject& subject, const StepEvidence& found, const Pool& pool) {
  if (std::ranges::none_of(requirement.conditions, &plan::RequiredCondition::surroundings))
    return {.pool = pool, .attempts = pool.attempts.size()};
  const plan::Requirement part = demands_on_surroundings(requirement);
  FitPool fit;
  for (std::size_t i = 0; i < pool.attempts.size(); ++i) {
    const std::size_t attempt = pool.attempts[i];
    const auto others = others_in(found, {attempt});
    const Record* const record = pool.records[i];
    std::string unmet =
        first_unmet(part, demands.check(step, part, probe, subject, {&record, 1}, others.list()), probe);
    if (unmet.empty()) ++fit.attempts;
    if (unmet.empty() || !plan::varies_between_runs(requirement.statistic))
      take(fit.pool, found, attempt, pool.measured[i]);
    if (!unmet.empty()) fit.set_aside.push_back({.attempt = found.numbers[attempt], .reason = std::move(unmet)});
  }
  fit.pool.others = fit.pool.attempts == pool.attempts ? pool.others : others_in(found, fit.pool.attempts);
  return fit;
}

std::optional<Unfit> unfit(const plan::Step& step, const plan::Requirement& requirement, const FitPool& fit,
                           const StepEvidence& found) {
  for (const Measurement* measured : fit.pool.measured) {
    const auto least = std::ranges::min_element(measured->samples);
    if (*least < 0) {
      return Unfit{.outcome = Outcome::error,
                   .reason = fmt::format("A sample of {} is {:g}, and no {} is below 0: the record is refused.",
                                         requirement.metric, *least, requirement.metric)};
    }
  }
  const auto needed = static_cast<std::size_t>(std::min(requirement.attempts, step.attempts));
  if (fit.attempts < needed) {
    std::string reason = fmt::format("{} of {} required attempts measured", fit.attempts, needed);
    if (!fit.set_aside.empty()) {
      reason = fmt::format("{} under the required surroundings; attempt {} was not: {}", reason,
                           fit.set_aside.front().attempt, fit.set_aside.front().reason);
      return Unfit{.reason = reason};
    }
    if (found.lost > 0) reason += "; the node was lost in one";
    return Unfit{.reason = reason + "."};
  }
  // A node states its surroundings itself: it may not choose among more attempts than the requirement allows.
  const int most = std::min(requirement.more_attempts, step.more_attempts);
  if (fit.set_aside.size() > static_cast<std::size_t>(most)) {
    return Unfit{.reason = fmt::format("{} attempts are set aside where {} may be: {}", fit.set_aside.size(), most,
                                       fit.set_aside.front().reason)};
  }
  for (std::size_t i = 0; i < fit.pool.measured.size(); ++i) {
    const std::size_t samples = fit.pool.measured[i]->samples.size();
    if (samples >= static_cast<std::size_t>(requirement.repeat_n)) continue;
    return Unfit{.reason = fmt::format("{} samples measured in attempt {}; {} are required.", samples,
                                       found.numbers[fit.pool.attempts[i]], requirement.repeat_n)};
  }
  return std::nullopt;
}

int due_attempts(const plan::Requirement& requirement, const plan::Step& step, const StepEvidence& made) {
  const int first = std::min(requirement.attempts, step.attempts);
  const int second = step.after ? step.more_attempts : std::min(requirement.more_attempts, step.more_attempts);
  return std::max(first, made.attempts - made.more_attempts + second);
}

}  // namespace assay::judge
