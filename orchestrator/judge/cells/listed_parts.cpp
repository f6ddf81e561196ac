// listed_parts: collects names of parts, and compares them with the results of each requirement; see listed_parts.h.
#include "orchestrator/judge/cells/listed_parts.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace assay::judge {
namespace {

/// The kind of part of which `record` lists all; empty if it lists none.
std::string listed_kind(const Record& record) {
  if (std::ranges::find(record.conditions, "gpus_listed", &Condition::name) != record.conditions.end()) return "gpu";
  if (std::ranges::find(record.measurements, "drives", &Measurement::metric) != record.measurements.end())
    return "drive";
  return "";
}

/// The result of `step` that shows a wrong number of parts best: of a requirement of that kind, else one that would
/// pass and is required; of several the last.
std::optional<std::size_t> shown_by(const plan::Plan& plan, const Results& results, std::string_view step,
                                    std::string_view kind) {
  std::optional<std::size_t> best;
  int highest = -1;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& one = results[i];
    if (one.step != step) continue;
    const auto* requirement = plan.requirement(one.requirement);
    const bool same = requirement != nullptr && word_of(requirement->scope) == kind;
    const int rank = (same ? 4 : 0) + (one.required ? 2 : 0) + (one.outcome == Outcome::pass ? 1 : 0);
    if (rank < highest) continue;
    highest = rank;
    best = i;
  }
  return best;
}

/// Leaves the node of the last result open: by a result of its own, or by that one if it is the node's.
void open_node(Results& all, const std::string& reason, bool required) {
  Result& last = all.back();
  if (last.subject.kind == "node") {
    const bool passes = last.outcome == Outcome::pass || last.outcome == Outcome::conditional_pass;
    if (passes || (required && !last.required)) last.outcome = Outcome::not_measured;
    last.required = last.required || required;
    last.unchecked = false;
    last.reason += " " + reason;
    return;
  }
  all.push_back({.requirement = last.requirement,
                 .subject = {"node", last.node},
                 .node = last.node,
                 .step = last.step,
                 .required = required,
                 .outcome = Outcome::not_measured,
                 .reason = reason,
                 .unit = last.unit,
                 .attempts = last.attempts,
                 .evidence = last.evidence});
}

/// Whether `step` measures all parts of its node: devices may be chosen by a parameter.
bool is_of_all(const plan::Step* step) {
  if (step == nullptr || step->nodes.size() != 1) return false;
  const auto chosen = step->parameters.find("device");
  return chosen == step->parameters.end() || chosen->second == Value{std::string("all")};
}

}  // namespace

void ListedParts::look(const plan::Step& step, const StepEvidence& found) {
  if (step.nodes.size() != 1) return;
  for (const Record& record : found.records) {
    count(step, record);
    const std::string kind = listed_kind(record);
    if (kind.empty()) continue;
    Parts& parts = of_node_[{step.nodes.front(), kind}];
    const auto note = [&](const Subject& subject) {
      if (subject.kind == kind) parts.emplace(subject.id, step.probe);
    };
    for (const auto& one : record.conditions) note(one.subject);
    for (const auto& one : record.measurements) note(one.subject);
  }
}

void ListedParts::look(ListedParts&& later) {
  for (auto& [place, parts] : later.of_node_) of_node_[place].merge(parts);
  for (auto& [place, count] : later.counted_) {
    if (Count& own = counted_[place]; count.lowest < own.lowest) own = std::move(count);
  }
}

void ListedParts::count(const plan::Step& step, const Record& record) {
  for (const auto& measured : record.measurements) {
    const auto* known = std::ranges::find(kPartCounts, measured.metric, [](const auto& one) { return one.first; });
    if (known == std::end(kPartCounts) || measured.subject.kind != "node") continue;
    const double lowest = std::ranges::min(measured.samples);
    if (Count& own = counted_[{step.nodes.front(), std::string(known->second)}]; lowest < own.lowest)
      own = {.lowest = lowest, .step = step.id};
  }
}

std::map<std::size_t, std::string> ListedParts::fewer_than_said(const plan::Plan& plan, const Results& results) const {
  std::map<std::size_t, std::string> reasons;
  for (const auto& [place, count] : counted_) {
    const auto& [name, kind] = place;
    const site::Node* const node = plan.site.node(name);
    if (node == nullptr || !node->parts.contains(kind) || plan.profile.per_node.contains(kind)) continue;
    const int said = node->parts.at(kind);
    const auto shown = count.lowest < said ? shown_by(plan, results, count.step, kind) : std::nullopt;
    if (!shown) continue;
    std::string& reason = reasons[*shown];
    reason += fmt::format("{}{} parts of kind {} counted; the site says that {} has {}.", reason.empty() ? "" : " ",
                          count.lowest, kind, name, said);
  }
  return reasons;
}

std::string ListedParts::missing(const std::string& node, const std::string& kind, const Results& results,
                                 std::size_t begin, std::size_t end) const {
  const auto listed = of_node_.find({node, kind});
  if (listed == of_node_.end()) return "";
  std::set<std::string_view> seen;
  for (std::size_t i = begin; i < end; ++i) {
    const Subject& subject = results[i].subject;
    if (subject.kind == kind && listed->second.contains(subject.id)) seen.insert(subject.id);
  }
  if (seen.empty() || seen.size() == listed->second.size()) return "";
  std::string text;
  for (const auto& [id, probe] : listed->second) {
    if (!seen.contains(id)) text += fmt::format("{}{}", text.empty() ? "" : ", ", id);
  }
  return fmt::format("Of {}, which {} lists, there is no figure.", text, listed->second.begin()->second);
}

void ListedParts::hold(const plan::Plan& plan, Results& results) const {
  std::map<std::size_t, std::string> fewer = fewer_than_said(plan, results);
  if (of_node_.empty() && fewer.empty()) return;
  std::map<std::string_view, const plan::Requirement*> requirements;
  for (const auto& one : plan.profile.requirements) requirements.emplace(one.id, &one);
  std::map<std::size_t, std::string> reasons;  // by the last result of a requirement on a node
  for (std::size_t begin = 0, end = 0; begin < results.size(); begin = end) {
    const Result& first = results[begin];
    for (end = begin; end < results.size() && results[end].requirement == first.requirement &&
                      results[end].node == first.node && results[end].step == first.step;)
      ++end;
    const auto& requirement = *requirements.at(first.requirement);
    const std::string kind(word_of(requirement.scope));
    if (requirement.when_told || (kind != "gpu" && kind != "drive") || !is_of_all(plan.step(first.step))) continue;
    if (std::string reason = missing(first.node, kind, results, begin, end); !reason.empty())
      reasons[end - 1] = std::move(reason);
  }
  if (reasons.empty() && fewer.empty()) return;
  Results all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    all.push_back(std::move(results[i]));
    if (const auto reason = reasons.find(i); reason != reasons.end())
      open_node(all, reason->second, all.back().required);
    if (const auto reason = fewer.find(i); reason != fewer.end()) open_node(all, reason->second, true);
  }
  results = std::move(all);
}

}  // namespace assay::judge
