// knees: puts planned groups and tests of a search together, and compares the counters that their records have.
#include "orchestrator/judge/locate/knees.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/judge/cells/judge_inputs.h"
#include "orchestrator/judge/locate/searches.h"
#include "orchestrator/judge/metering/site_evidence.h"
#include "probes/core/scale.h"
#include "probes/core/statistics.h"

namespace assay::judge {
namespace {

/// What rises where a storage or a fabric is full: a condition in the records of the nodes, or a count of the ports of
/// the site's switches.
struct Counter {
  std::string_view name;
  double least = 1;  ///< standard deviation at least: one event, or the noise of a gauge
  bool of_switches = false;
};
constexpr Counter kCounters[] = {{.name = "rpc_backlog", .least = 0.1},
                                 {.name = "rpc_slots"},
                                 {.name = "segments_retransmitted"},
                                 {.name = "retransmits"},
                                 {.name = "discards"},
                                 {.name = "pauses"},
                                 {.name = "congestion_marks"},
                                 {.name = "in_discards", .of_switches = true},
                                 {.name = "out_discards", .of_switches = true},
                                 {.name = "in_pause_frames", .of_switches = true},
                                 {.name = "out_pause_frames", .of_switches = true}};
constexpr double kRose = 3;              // standard deviations of the groups before
constexpr double kLeastRelative = 0.05;  // standard deviation of a counter that few attempts show

bool keeps(const Result& result) {
  return result.outcome == Outcome::pass || result.outcome == Outcome::conditional_pass ||
         result.outcome == Outcome::conditional_fail;
}

/// The counter in the records of one attempt, a mean over the nodes that have it; of several ports the sum.
std::optional<double> read_in(const Record& first, const std::vector<Record>& others, std::string_view name) {
  double sum = 0;
  std::size_t nodes = 0;
  const auto add = [&](const Record& record) {
    bool has = false;
    for (const auto& condition : record.conditions) {
      const auto value = condition.name == name ? number_in(condition.value) : std::nullopt;
      if (value) sum += *value;
      has = has || value;
    }
    nodes += has ? 1 : 0;
  };
  add(first);
  for (const auto& record : others) add(record);
  return nodes == 0 ? std::nullopt : std::optional(sum / static_cast<double>(nodes));
}

/// The same of all ports of switches that count it while the attempt ran; nothing if one of `ports` does not.
std::optional<double> read_at_ports(const Record& switches, std::size_t nodes, std::string_view name,
                                    const std::set<Subject>& ports) {
  double sum = 0;
  std::size_t found = 0;
  for (const auto& measured : switches.measurements) {
    if (measured.metric != name || !ports.contains(measured.subject)) continue;
    sum += measured.samples.front();
    ++found;
  }
  return ports.empty() || found < ports.size() ? std::nullopt : std::optional(sum / static_cast<double>(nodes));
}

/// The evidence of one group: of its nodes, and of the site's switches during the same attempts.
struct GroupEvidence {
  StepEvidence nodes, switches;

  /// The ports that have this count in any attempt.
  void add_ports(std::string_view name, std::set<Subject>& ports) const {
    for (const auto& record : switches.records) {
      for (const auto& measured : record.measurements)
        if (measured.metric == name && measured.subject.kind == "switch_port") ports.insert(measured.subject);
    }
  }
  /// `counter` in each attempt that has it, in a group of `count` nodes.
  [[nodiscard]] std::vector<double> values(const Counter& counter, std::size_t count,
                                           const std::set<Subject>& ports) const {
    std::vector<double> all;
    for (std::size_t i = 0; i < nodes.records.size(); ++i) {
      const auto value = counter.of_switches ? read_at_ports(switches.records[i], count, counter.name, ports)
                                             : read_in(nodes.records[i], nodes.others[i], counter.name);
      if (value) all.push_back(*value);
    }
    return all;
  }
};

GroupEvidence evidence_of(const JudgeInputs& given, const plan::Step& step) {
  GroupEvidence found{
      .nodes = collect(given.plan, step, given.attempts_of(step), given.journal, given.machines, given.evidence),
      .switches = {}};
  if (given.plan.probes.contains(plan::kSwitchCompanion))
    found.switches = site_evidence(given.plan, step, found.nodes, given.journal, given.evidence).step;
  else
    found.switches.records.resize(found.nodes.records.size());
  return found;
}

/// The counter that rose most in the group that falls out; also gives the points of `knee` its values.
std::optional<KneeCounter> risen(const JudgeInputs& given, const KneeRange& range, KneeFound& knee) {
  std::optional<CounterRise> most;
  std::vector<GroupEvidence> found;
  for (const auto& [step, result] : range.groups) found.push_back(evidence_of(given, *step));
  for (const Counter& counter : kCounters) {
    std::vector<double> before, at;
    std::map<std::string_view, double> by_step;
    std::set<Subject> ports;
    for (const auto& group : found)
      if (counter.of_switches) group.add_ports(counter.name, ports);
    for (std::size_t i = 0; i < range.groups.size(); ++i) {
      const auto& [step, result] = range.groups[i];
      const std::vector<double> values = found[i].values(counter, step->nodes.size(), ports);
      if (values.empty()) continue;
      by_step[step->id] = median(values);
      if (result == range.first) at = values;
      if (step->nodes.size() <= range.kept) before.insert(before.end(), values.begin(), values.end());
    }
    auto rise = rise_of(std::string(counter.name), before, at, counter.least);
    if (!rise || (most && rise->deviations <= most->deviations)) continue;
    most = std::move(rise);
    for (auto& point : knee.points) {
      const auto value = by_step.find(point.step);
      point.counter = value == by_step.end() ? std::nullopt : std::optional(value->second);
    }
  }
  return most ? std::optional(std::move(most->counter)) : std::nullopt;
}

double divisor(const plan::Requirement& requirement, std::size_t nodes) {
  return requirement.limit.reference == plan::Reference::smallest_group_by_nodes ? static_cast<double>(nodes) : 1;
}

/// The groups that have a figure. The smallest one has no cell: it is the plateau of the next.
void add_points(const plan::Requirement& requirement, const KneeRange& range, KneeFound& knee) {
  for (std::size_t i = 0; i < range.groups.size(); ++i) {
    const auto& [step, result] = range.groups[i];
    const std::size_t nodes = step->nodes.size();
    if (result != nullptr && result->value) {
      KneePoint point{.nodes = nodes, .value = *result->value / divisor(requirement, nodes), .step = step->id};
      if (result->limit_low) point.limit = *result->limit_low / divisor(requirement, nodes);
      point.kept = keeps(*result);
      knee.points.push_back(std::move(point));
    } else if (result == nullptr && i + 1 < range.groups.size() && range.groups[i + 1].result->reference) {
      const auto& next = range.groups[i + 1];
      knee.points.push_back({.nodes = nodes,
                             .value = *next.result->reference / divisor(requirement, next.step->nodes.size()),
                             .kept = true,
                             .step = step->id});
    }
  }
}

/// The tests of the search of the group that falls out.
void add_tests(const plan::Requirement& requirement, const KneeRange& range, const Localised& search, KneeFound& knee) {
  const Result& lost = *range.first;
  const auto lost_group = std::ranges::find(range.groups, range.first, &KneeRange::Group::result);
  const double limit = lost.limit_low.value_or(0) / divisor(requirement, lost_group->step->nodes.size());
  for (const auto& test : search.tests) {
    if (!test.share || test.control) continue;
    knee.points.push_back({.nodes = test.nodes,
                           .value = *test.share * limit,
                           .limit = limit,
                           .kept = test.outcome == TestOutcome::good,
                           .step = test.id});
    if (test.outcome == TestOutcome::good)
      knee.kept = std::max(knee.kept, test.nodes);
    else
      knee.lost = std::min(knee.lost, test.nodes);
  }
  std::ranges::stable_sort(knee.points, {}, &KneePoint::nodes);
}

std::string counter_words(const KneeFound& knee) {
  if (!knee.counter) return "no counter that was read rose there";
  return fmt::format("{} rose there most: {} a node, {} before", knee.counter->name, for_people(knee.counter->at, "1"),
                     for_people(knee.counter->before, "1"));
}

/// State and reason; `search` is that of the group that falls out, or nullptr.
void tell(const KneeRange& range, const Localised* search, KneeFound& knee) {
  if (range.first == nullptr) {
    // A group below its limit by less than the guard band shows neither that it keeps the figure nor that it does not.
    const auto below = [](const KneePoint& point) {
      return !point.kept || (point.limit && point.value < *point.limit);
    };
    const auto first = std::ranges::find_if(knee.points, below);
    knee.state = range.open || first != knee.points.end() ? KneeState::open : KneeState::none;
    if (first != knee.points.end() && first != knee.points.begin()) knee.kept = std::prev(first)->nodes;
    knee.reason =
        knee.state == KneeState::none
            ? fmt::format("No knee: all {} nodes keep the figure.", knee.kept)
            : fmt::format("The knee is open: up to {} nodes keep the figure, and a group is not decided.", knee.kept);
    return;
  }
  knee.state = KneeState::open;
  if (range.open) {
    knee.reason = fmt::format(
        "The knee is open: {} nodes fall out, but not every other group is on the same side of it as they are.",
        knee.lost);
  } else if (search == nullptr) {
    knee.reason = fmt::format(
        "The knee is open: {} nodes keep the figure and {} do not; whether the number matters was not searched.",
        knee.kept, knee.lost);
  } else if (search->state == SearchState::common_cause) {
    knee.state = KneeState::found;
    knee.reason = fmt::format("Knee at {} nodes: they keep the figure, and {} do not; {}.", knee.kept, knee.lost,
                              counter_words(knee));
  } else if (search->state == SearchState::found) {
    knee.reason = fmt::format("The knee is open: the fall at {} nodes is of {}.", knee.lost,
                              search->culprits.front().nodes.front());
  } else {
    knee.reason = search->reason;
  }
}

}  // namespace

std::optional<CounterRise> rise_of(const std::string& name, const std::vector<double>& before,
                                   const std::vector<double>& at, double least) {
  if (before.size() < 2 || at.empty()) return std::nullopt;
  // Robust, because a counter rises before the figure leaves its band.
  const double usual = median(before), now = median(at);
  const double spread = std::max({robust_sigma(before), least, kLeastRelative * std::abs(usual)});
  const double rise = (now - usual) / spread;
  if (rise <= kRose) return std::nullopt;
  return CounterRise{{.name = name, .before = usual, .at = now, .spread = spread}, rise};
}

KneeRange knee_at(const plan::Plan& plan, const Results& results, const plan::Requirement& requirement,
                  const plan::Step& step) {
  std::map<std::size_t, KneeRange::Group> groups;
  std::map<std::string_view, KneeRange::Group*> by_step;
  for (const auto& one : plan.steps) {
    if (one.rail != step.rail || std::ranges::find(one.requirements, requirement.id) == one.requirements.end())
      continue;
    by_step[one.id] = &groups.emplace(one.nodes.size(), KneeRange::Group{&one, nullptr}).first->second;
  }
  for (const auto& result : results) {
    if (result.requirement != requirement.id || result.step.empty()) continue;
    if (const auto group = by_step.find(result.step); group != by_step.end()) group->second->result = &result;
  }
  KneeRange range;
  double squares = 0, count = 0;
  for (const auto& [nodes, group] : groups) {
    range.groups.push_back(group);
    const Result* result = group.result;
    if (result != nullptr && result->terms && *result->value > 0) {
      const double deviation = result->between.value_or(result->terms->repeatability) / *result->value;
      squares += deviation * deviation;
      ++count;
    }
    const bool fails = result != nullptr && result->outcome == Outcome::fail && misses_limit(*result);
    const bool kept = result == nullptr || keeps(*result);
    if (range.first != nullptr) {
      range.open = range.open || (result != nullptr && kept);
    } else if (fails) {
      range.first = result;
    } else if (kept) {
      range.kept = nodes;
      range.kept_share = result == nullptr ? 1 / requirement.limit.at_least.value_or(1) : share_of(*result);
    } else {
      range.open = true;
    }
  }
  if (count > 0) range.scatter = std::sqrt(squares / count);
  return range;
}

std::vector<KneeFound> knees_of(const plan::Plan& plan, const Verdict& verdict, const Journal& journal,
                                const EvidenceReader& evidence) {
  std::vector<KneeFound> all;
  std::optional<JudgeInputs> given;
  std::set<std::pair<std::string_view, std::string_view>> seen;  // requirement and rail
  for (const auto& requirement : plan.profile.requirements) {
    if (!requirement.knee || plan.quick) continue;
    for (const auto& step : plan.steps) {
      if (std::ranges::find(step.requirements, requirement.id) == step.requirements.end()) continue;
      if (!seen.emplace(requirement.id, step.rail).second) continue;
      const KneeRange range = knee_at(plan, verdict.results, requirement, step);
      KneeFound knee{.requirement = requirement.id, .rail = step.rail, .kept = range.kept};
      add_points(requirement, range, knee);
      const Localised* search = nullptr;
      if (range.first != nullptr) {
        const auto of_step = [&](const Localised& one) {
          return one.step == range.first->step &&
                 std::ranges::find(one.requirements, requirement.id) != one.requirements.end();
        };
        const auto found = std::ranges::find_if(verdict.localised, of_step);
        if (found != verdict.localised.end()) search = &*found;
        knee.lost = plan.step(range.first->step)->nodes.size();
        // The tests were ruled by the first figure of the search.
        if (search != nullptr && search->requirements.front() == requirement.id)
          add_tests(requirement, range, *search, knee);
        if (!given) given.emplace(plan, journal, evidence);
        knee.counter = risen(*given, range, knee);
      }
      tell(range, search, knee);
      all.push_back(std::move(knee));
    }
  }
  return all;
}

}  // namespace assay::judge
