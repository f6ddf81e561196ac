// component_statements: compares the values that different steps recorded of one component of a node.
#include "orchestrator/judge/cells/component_statements.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "orchestrator/plan/required_condition.h"
#include "orchestrator/plan/version.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

/// A component and the conditions that state it, of any probe.
struct Component {
  const char* words;
  bool one_a_node;  ///< for any subject of the condition
  std::array<std::string_view, 3> names;
};

constexpr Component kComponents[] = {
    {"the NVIDIA driver", true, {"driver_version", "nvml_driver", "nvidia_version"}},
    {"the kernel", true, {"kernel"}},
    {"NCCL", true, {"nccl_version"}},
    {"RCCL", true, {"rccl_version"}},
    {"the firmware", false, {"firmware"}},
    {"the video BIOS", false, {"vbios"}},
    {"ECC", false, {"ecc", "ecc_mode"}},
    {"persistence mode", false, {"persistence_mode"}},
};

std::optional<std::size_t> component_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kComponents); ++i) {
    if (std::ranges::find(kComponents[i].names, name) != kComponents[i].names.end()) return i;
  }
  return std::nullopt;
}

std::string shown(Value value) {
  constexpr std::size_t kLongest = 100;
  if (auto* text = std::get_if<std::string>(&value)) *text = without_controls(*text, kLongest);
  return assay::to_json(value).dump();
}

bool agree(const Value& a, const Value& b) {
  const auto order = plan::compare_versions(plan::version_in(a), plan::version_in(b));
  return order ? *order == 0 : a == b;
}

}  // namespace

std::set<std::size_t> ComponentStatements::demanded_by(const plan::Plan& plan) {
  std::set<std::size_t> components;
  const auto demand = [&](const plan::RequiredCondition& one) {
    if (const auto component = component_of(one.name)) components.insert(*component);
  };
  for (const auto& requirement : plan.profile.requirements) {
    if (requirement.demand) demand(*requirement.demand);
    for (const auto& one : requirement.conditions) demand(one);
  }
  return components;
}

void ComponentStatements::look(const std::set<std::size_t>& components, const plan::Step& step,
                               const StepEvidence& found) {
  if (components.empty()) return;
  for (const auto& record : found.records) take(components, step, record, found.paths);
  for (const auto& attempt : found.others) {
    for (const auto& record : attempt) take(components, step, record, found.paths);
  }
}

void ComponentStatements::look(const ComponentStatements& later) {
  for (const auto& [part, said] : later.all_) {
    auto& mine = all_[part];
    mine.insert(mine.end(), said.begin(), said.end());
  }
}

void ComponentStatements::take(const std::set<std::size_t>& components, const plan::Step& step, const Record& record,
                               const SharedList<std::string>& paths) {
  const std::string& node = step.nodes.at(static_cast<std::size_t>(record.start.rank));
  const auto host = record.start.host.find("name");
  for (const auto& condition : record.conditions) {
    const auto component = component_of(condition.name);
    if (!component || !components.contains(*component)) continue;
    // A record of several nodes may speak of parts of another one.
    const bool own = step.nodes.size() == 1 || (condition.subject.kind == "node" && host != record.start.host.end() &&
                                                host->second == Value{condition.subject.id});
    if (!own) continue;
    auto& said = all_[{*component, node, kComponents[*component].one_a_node ? Subject{} : condition.subject}];
    const bool known = std::ranges::any_of(said, [&](const Statement& one) {
      return one.step == step.id && one.name == condition.name && one.value == condition.value;
    });
    if (!known)
      said.push_back(
          {.step = step.id, .probe = step.probe, .name = condition.name, .value = condition.value, .paths = paths});
  }
}

void ComponentStatements::hold(Result& result, const plan::RequiredCondition& demand) const {
  const auto component = component_of(demand.name);
  if (!component) return;
  const auto said =
      all_.find({*component, result.node, kComponents[*component].one_a_node ? Subject{} : result.subject});
  if (said == all_.end()) return;
  const auto own = std::ranges::find_if(
      said->second, [&](const Statement& one) { return one.step == result.step && one.name == demand.name; });
  if (own == said->second.end()) return;
  const auto other = std::ranges::find_if(said->second, [&](const Statement& one) {
    if (one.step == result.step || agree(one.value, own->value)) return false;
    return result.outcome == Outcome::pass || fit_of(demand, one.value) != plan::Fit::missed;
  });
  if (other == said->second.end()) return;
  result.outcome = Outcome::inconclusive;
  result.reason = fmt::format("{} was {} in {}, but {} was {} in {}: they do not agree on {} of {}.", demand.name,
                              shown(own->value), own->probe, other->name, shown(other->value), other->probe,
                              kComponents[*component].words, result.node);
  std::vector<std::string> paths = result.evidence.list();
  paths.insert(paths.end(), other->paths.begin(), other->paths.end());
  result.evidence = std::move(paths);
}

void ComponentStatements::hold_together(const plan::Plan& plan, Results& results) const {
  if (all_.empty()) return;
  std::map<std::string_view, const plan::Requirement*> requirements;
  for (const auto& one : plan.profile.requirements) requirements.emplace(one.id, &one);
  for (auto& result : results) {
    const auto& requirement = *requirements.at(result.requirement);
    if (requirement.demand && (result.outcome == Outcome::pass || result.outcome == Outcome::fail))
      hold(result, *requirement.demand);
    for (const auto& demand : requirement.conditions) {
      if (result.outcome == Outcome::pass) hold(result, demand);
    }
  }
}

}  // namespace assay::judge
