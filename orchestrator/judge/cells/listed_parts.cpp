// listed_parts: collects names of parts, and compares them with the results of each requirement; see listed_parts.h.
#include "orchestrator/judge/cells/listed_parts.h"

#include <algorithm>
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
  if (of_node_.empty()) return;
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
  if (reasons.empty()) return;
  Results all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    all.push_back(std::move(results[i]));
    const auto reason = reasons.find(i);
    if (reason == reasons.end()) continue;
    const Result& last = all.back();
    if (last.subject.kind == "node") {
      all.back().reason += " " + reason->second;
      continue;
    }
    all.push_back({.requirement = last.requirement,
                   .subject = {"node", last.node},
                   .node = last.node,
                   .step = last.step,
                   .required = last.required,
                   .outcome = Outcome::not_measured,
                   .reason = reason->second,
                   .unit = last.unit,
                   .attempts = last.attempts,
                   .evidence = last.evidence});
  }
  results = std::move(all);
}

}  // namespace assay::judge
