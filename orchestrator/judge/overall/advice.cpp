// advice: which findings a result has: its metric, the conditions that it does not meet, and what their rows go by.
#include "orchestrator/judge/overall/advice.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orchestrator/judge/overall/ranking.h"
#include "orchestrator/plan/repeat.h"
#include "probes/core/json_io.h"

namespace assay::judge {
namespace {

using profiles::ActionRow;
using profiles::Advice;
using profiles::Found;

bool missed_its_limit(const Result& result) {
  return result.outcome == Outcome::fail || result.outcome == Outcome::conditional_fail;
}

std::string text_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : assay::to_json(value).dump();
}

/// The records of steps, each read when it is first asked for.
class Records {
 public:
  Records(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence)
      : plan_(plan), journal_(journal), evidence_(evidence), machines_(journal) {}

  /// The values of the condition `name` on the subject of `result`, of a node on all of its subjects, with commas.
  std::string condition(const Result& result, const std::string& name) {
    std::string all;
    const auto look = [&](const Record& record) {
      for (const auto& one : record.conditions) {
        const bool is_its =
            one.subject == result.subject || result.subject.kind == "node" || one.subject.kind == "node";
        if (one.name == name && is_its) all += (all.empty() ? "" : ", ") + text_of(one.value);
      }
    };
    const StepEvidence* step = evidence_of(result.step);
    if (step == nullptr) return all;
    std::ranges::for_each(step->records, look);
    for (const auto& ranks : step->others) std::ranges::for_each(ranks, look);
    return all;
  }

 private:
  const StepEvidence* evidence_of(const std::string& id) {
    if (const auto known = steps_.find(id); known != steps_.end()) return &known->second;
    const plan::Step* step = plan_.step(id);
    if (step == nullptr) return nullptr;
    return &steps_.emplace(id, collect(plan_, *step, journal_.attempts.of(id), journal_, machines_, evidence_))
                .first->second;
  }

  const plan::Plan& plan_;
  const Journal& journal_;
  const EvidenceReader& evidence_;
  Machines machines_;
  std::map<std::string, StepEvidence> steps_;
};

/// The most urgent of what the findings of `result` ask for.
Advice advice_for(const Result& result, const plan::Requirement& judged, Records& records) {
  const auto& table = profiles::actions();
  Advice worst;
  bool listed = false;
  const auto add = [&](const Advice& advice) {
    worst = listed ? more_urgent(worst, advice) : advice;
    listed = true;
  };
  if (missed_its_limit(result) && !judged.demand) {
    const ActionRow* row = table.find(Found::metric, judged.metric, judged.probe);
    const bool by_other = row != nullptr && !row->by.empty();
    add(table.of_metric(judged.probe, judged.metric, by_other ? records.condition(result, row->by) : ""));
  }
  for (const auto& condition : result.conditions) {
    if (condition.met || !condition.seen) continue;
    const ActionRow* row = table.find(Found::condition, condition.name, judged.probe);
    const bool by_other = row != nullptr && !row->by.empty();
    add(by_other ? table.of_condition(judged.probe, row->by, records.condition(result, row->by))
                 : table.of_condition(judged.probe, condition.name, text_of(*condition.seen)));
  }
  return worst;
}

/// Whether other guests of its host may take what `result` is a rate or time of: a figure, measured anew by each run,
/// of a whole node that is a virtual machine by its own facts.
bool is_of_guest(const Result& result, const plan::Requirement& judged, const plan::Plan& plan,
                 const Journal& journal) {
  const auto probe = plan.probes.find(judged.probe);
  const auto* metric = probe == plan.probes.end() ? nullptr : probe->second.description.metric(judged.metric);
  if (metric != nullptr && (metric->kind == MetricKind::fault || metric->course != Course::each_run)) return false;
  const auto facts = journal.node_facts.find(result.node);
  if (facts == journal.node_facts.end() || result.subject.kind != "node" || judged.demand ||
      !plan::varies_between_runs(judged.statistic))
    return false;
  const auto said = facts->second.find("hypervisor");
  return said != facts->second.end() && *said != "none";
}

/// The places of `results`, which differ: "n01", "n01 gpu GPU-8f2…", or "n01 (gpu: 8)" where more than two are parts of
/// one node.
std::vector<std::string> places_of(const std::vector<const Result*>& results) {
  constexpr std::size_t kMostParts = 2;
  std::map<std::string_view, std::map<std::string_view, std::size_t>> parts;  // by node and kind
  std::map<std::string_view, std::size_t> of_node;
  for (const Result* one : results) {
    ++parts[one->node][one->subject.kind];
    ++of_node[one->node];
  }
  std::vector<std::string> words;
  std::set<std::string_view> counted;
  for (const Result* one : results) {
    if (of_node[one->node] <= kMostParts) {
      words.push_back(place_of(*one));
    } else if (counted.insert(one->node).second) {
      std::string kinds;
      for (const auto& [kind, count] : parts[one->node])
        kinds += fmt::format("{}{}: {}", kinds.empty() ? "" : ", ", kind, count);
      words.push_back(fmt::format("{} ({})", one->node, kinds));
    }
  }
  return words;
}

}  // namespace

std::optional<Advice> Advices::of(const Result& result) const {
  if (const auto found = known.find(&result); found != known.end()) return found->second;
  return missed_its_limit(result) ? std::optional(Advice{}) : std::nullopt;
}

Advices advices_of(const plan::Plan& plan, const Journal& journal, const Verdict& verdict,
                   const EvidenceReader& evidence) {
  Advices advices{.today = journal.last};
  Records records(plan, journal, evidence);
  std::map<std::string_view, const plan::Requirement*> requirements;
  for (const auto& one : plan.profile.requirements) requirements.emplace(one.id, &one);
  for (const auto& result : verdict.results) {
    const auto judged = requirements.find(result.requirement);
    if (result.outcome == Outcome::pass || judged == requirements.end()) continue;
    Advice advice = advice_for(result, *judged->second, records);
    const bool of_figure = advice.finding == judged->second->metric;  // of no condition
    if ((advice.action == profiles::Action::not_known || of_figure) && missed_its_limit(result) &&
        is_of_guest(result, *judged->second, plan, journal))
      advice = profiles::actions().of_condition("", "hypervisor", "");
    if (advice.action != profiles::Action::not_known) advices.known.emplace(&result, std::move(advice));
  }
  return advices;
}

Advice advice_of(const Culprit& culprit) { return profiles::actions().of_culprit(std::string(word_of(culprit.fault))); }

std::vector<ToDo> to_do(const Verdict& verdict, const Advices& advices) {
  std::vector<ToDo> all;
  std::vector<std::vector<const Result*>> results;                         // of each of `all`
  std::map<std::pair<profiles::Action, std::string>, std::size_t> places;  // by action and sentence
  std::set<std::pair<std::size_t, std::string>> named;
  /// The index in `all` of what `advice` says of `subject`; nothing if that is not known, or said already.
  const auto place_for = [&](const Advice& advice, const std::string& subject) -> std::optional<std::size_t> {
    if (advice.action == profiles::Action::not_known) return std::nullopt;
    const auto [place, is_new] = places.try_emplace({advice.action, advice.says}, all.size());
    if (is_new) all.push_back({.advice = advice});
    results.resize(all.size());
    auto& findings = all[place->second].findings;
    if (std::ranges::find(findings, advice.finding) == findings.end()) findings.push_back(advice.finding);
    if (!named.emplace(place->second, subject).second) return std::nullopt;
    return place->second;
  };
  const auto add = [&](const Advice& advice, const std::string& subject) {
    if (const auto place = place_for(advice, subject)) all[*place].subjects.push_back(subject);
  };
  for (const auto& accused : all_accused(verdict)) add(advice_of(*accused.culprit), name_of(*accused.culprit));
  for (const auto& search : verdict.localised) {
    if (search.state == SearchState::common_cause && is_required(verdict, search))
      add(profiles::actions().of_culprit(std::string(word_of(search.state))),
          fmt::format("{}", fmt::join(search.requirements, ", ")));
  }
  for (const auto& result : verdict.results) {
    const auto advice = advices.of(result);
    if (!result.required || !advice) continue;
    if (const auto place = place_for(*advice, place_of(result))) results[*place].push_back(&result);
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    std::ranges::move(places_of(results[i]), std::back_inserter(all[i].subjects));
  std::ranges::stable_sort(all, {}, [](const ToDo& one) { return one.advice.action; });
  return all;
}

std::string place_of(const Result& result) {
  if (result.subject.kind == "node" || result.subject.id == result.node) return result.node;
  return fmt::format("{} {} {}", result.node, result.subject.kind, result.subject.id);
}

}  // namespace assay::judge
