// listed_parts: collects names of parts, and compares them with the results of each requirement; see listed_parts.h.
#include "orchestrator/judge/cells/listed_parts.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::judge {
namespace {

constexpr std::string_view kGpusListed = "gpus_listed", kDrives = "drives";

/// The kind of part of which `record` lists all; empty if it lists none.
std::string kind_of_inventory(const Record& record) {
  if (std::ranges::find(record.conditions, kGpusListed, &Condition::name) != record.conditions.end()) return "gpu";
  if (std::ranges::find(record.measurements, kDrives, &Measurement::metric) != record.measurements.end())
    return "drive";
  return "";
}

/// `text` in small letters, and the domain of a PCI address with four digits, where NVML gives eight.
std::string spelling_of(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::size_t kDomain = 8, kAddress = 16;
  if (text.size() == kAddress && text[kDomain] == ':' && text.starts_with("0000")) text.erase(0, 4);
  return text;
}

/// The names of the parts of one kind in a record.
struct PartNames {
  std::set<std::string> all;     ///< their subjects
  std::set<std::string> usable;  ///< every name of those that are no port without a link
  bool with_rdma = false;
};

PartNames names_in(const Record& record, std::string_view kind) {
  constexpr std::string_view kNames[] = {"serial", "pci_address", "mac_address", "rdma_device", "guid"};
  PartNames names;
  std::set<std::string> down;
  for (const auto& one : record.conditions) {
    if (one.subject.kind == kind && one.name == "link" && one.value == Value{std::string("down")})
      down.insert(one.subject.id);
  }
  const auto note = [&](const Subject& subject) {
    if (subject.kind != kind || !names.all.insert(spelling_of(subject.id)).second) return;
    if (!down.contains(subject.id)) names.usable.insert(spelling_of(subject.id));
  };
  for (const auto& one : record.measurements) note(one.subject);
  for (const auto& one : record.conditions) {
    note(one.subject);
    const auto* text = std::get_if<std::string>(&one.value);
    if (one.subject.kind != kind || text == nullptr || std::ranges::find(kNames, one.name) == std::end(kNames))
      continue;
    names.with_rdma = names.with_rdma || one.name == "rdma_device";
    if (down.contains(one.subject.id)) continue;
    std::istringstream words(*text);
    for (std::string word; words >> word;) names.usable.insert(spelling_of(word));
  }
  return names;
}

/// The parts of `kind` that the site names of `node`, in its parts or as RDMA devices of its planes, and `record`
/// lacks. Devices of planes only where the record has any: one of software is no part of an inventory.
std::set<std::string> absent_in(const Record& record, const site::Node& node, const std::string& kind) {
  const auto named = node.part_names.find(kind);
  const bool of_planes = kind == "nic" && !node.planes.empty();
  std::set<std::string> absent;
  if (named == node.part_names.end() && !of_planes) return absent;
  const PartNames names = names_in(record, kind);
  if (named != node.part_names.end()) {
    for (const auto& name : named->second) {
      if (!names.usable.contains(spelling_of(name))) absent.insert(name);
    }
  }
  if (!of_planes || !names.with_rdma) return absent;
  for (const auto& [plane, ports] : node.planes) {
    for (const auto& port : ports) {
      const std::string whole = spelling_of(port.device);
      const std::string name = names.all.contains(whole) ? whole : whole.substr(0, whole.find('/'));
      if (!name.empty() && !names.usable.contains(name)) absent.insert(port.device);
    }
  }
  return absent;
}

/// The result among those that `of` takes that shows wrong parts of `kind` best: of a requirement of that kind, else
/// one that would pass and is required; of several the last.
template <class Of>
std::optional<std::size_t> shown_by(const plan::Plan& plan, const Results& results, std::string_view kind, Of of) {
  std::optional<std::size_t> best;
  int highest = -1;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& one = results[i];
    if (!of(one)) continue;
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

std::string_view listed_kind(const Description& description) {
  if (description.has_condition(kGpusListed)) return "gpu";
  return description.metric(kDrives) != nullptr ? "drive" : "";
}

void ListedParts::look(const plan::Plan& plan, const plan::Step& step, const StepEvidence& found) {
  if (step.nodes.size() != 1) return;
  const site::Node* const node = plan.site.node(step.nodes.front());
  for (const Record& record : found.records) {
    if (node != nullptr) count(*node, step, record);
    const std::string kind = kind_of_inventory(record);
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
    const auto [known, fresh] = counted_.try_emplace(place, std::move(count));
    if (fresh) continue;
    Count& own = known->second;
    if (count.lowest < own.lowest || own.step.empty()) own.step = std::move(count.step);
    own.lowest = std::min(own.lowest, count.lowest);
    own.highest = std::max(own.highest, count.highest);
    own.absent.merge(count.absent);
    own.partitioned.merge(count.partitioned);
    own.tells_mode = own.tells_mode || count.tells_mode;
  }
}

void ListedParts::count(const site::Node& node, const plan::Step& step, const Record& record) {
  const auto of_kind = [&](std::string_view kind) -> Count& {
    Count& own = counted_[{node.name, std::string(kind)}];
    if (own.step.empty()) own.step = step.id;
    return own;
  };
  const auto name_absent = [&](const std::string& kind) {
    if (auto absent = absent_in(record, node, kind); !absent.empty()) of_kind(kind).absent.merge(absent);
  };
  for (const auto& measured : record.measurements) {
    const auto* known = std::ranges::find(kPartCounts, measured.metric, [](const auto& one) { return one.first; });
    if (known == std::end(kPartCounts) || measured.subject.kind != "node") continue;
    Count& own = of_kind(known->second);
    const auto [lowest, highest] = std::ranges::minmax(measured.samples);
    if (lowest < own.lowest) own.step = step.id;
    own.lowest = std::min(own.lowest, lowest);
    own.highest = std::max(own.highest, highest);
    name_absent(std::string(known->second));
  }
  if (const std::string kind = kind_of_inventory(record); !kind.empty()) name_absent(kind);
  for (const auto& one : record.conditions) {
    if ((one.name != "mig_mode" && one.name != "mig") || one.subject.kind != "gpu") continue;
    Count& own = of_kind("gpu");
    own.tells_mode = true;
    if (one.value == Value{true}) own.partitioned.insert(one.subject.id);
  }
}

std::map<std::size_t, std::string> ListedParts::unlike_site(const plan::Plan& plan, const Results& results) const {
  std::map<std::size_t, std::string> reasons;
  for (const auto& [place, count] : counted_) {
    const auto& [name, kind] = place;
    const site::Node* const node = plan.site.node(name);
    if (node == nullptr) continue;
    const auto stated = node->parts.find(kind);
    const bool designed = plan.profile.per_node.contains(kind);
    std::string why;
    const auto add = [&](std::string reason) { why += (why.empty() ? "" : " ") + std::move(reason); };
    if (stated != node->parts.end() && !designed) {
      const bool more = kind == "gpu_instance" && count.highest > stated->second;
      if (count.lowest < stated->second || more)
        add(fmt::format("{} parts of kind {} counted; the site says that {} has {}.",
                        more ? count.highest : count.lowest, kind, name, stated->second));
    }
    const auto gpus = designed && kind == "gpu" && node->parts.contains("gpu_instance")
                          ? plan::designed_parts(plan.profile, *node, kind)
                          : std::nullopt;
    if (gpus && count.lowest < *gpus)
      add(fmt::format("{} GPUs of {} counted; the design has {}.", count.lowest, name, *gpus));
    if (!count.absent.empty())
      add(fmt::format("Of the parts of kind {} that the site names of {}, absent or without a link: {}.", kind, name,
                      fmt::join(count.absent, ", ")));
    if (!count.partitioned.empty() && (stated != node->parts.end() || designed) &&
        !node->parts.contains("gpu_instance"))
      add(fmt::format(
          "Partitioned (MIG), so no whole GPU of {}: {}. Switch MIG off, or state gpu_instance in the site.", name,
          fmt::join(count.partitioned, ", ")));
    if (count.tells_mode && count.partitioned.empty() && node->parts.contains("gpu_instance"))
      add(fmt::format("No GPU of {} is partitioned (MIG), and the site states gpu_instance.", name));
    if (why.empty()) continue;
    auto shown = shown_by(plan, results, kind, [&](const Result& one) { return one.step == count.step; });
    if (!shown)  // a step without a result of its own, as one that others are compared with
      shown = shown_by(plan, results, kind, [&](const Result& one) { return one.node == name; });
    if (!shown) continue;
    std::string& reason = reasons[*shown];
    reason += (reason.empty() ? "" : " ") + why;
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
  std::map<std::size_t, std::string> unlike = unlike_site(plan, results);
  if (of_node_.empty() && unlike.empty()) return;
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
  if (reasons.empty() && unlike.empty()) return;
  Results all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    all.push_back(std::move(results[i]));
    if (const auto reason = reasons.find(i); reason != reasons.end())
      open_node(all, reason->second, all.back().required);
    if (const auto reason = unlike.find(i); reason != unlike.end()) open_node(all, reason->second, true);
  }
  results = std::move(all);
}

}  // namespace assay::judge
