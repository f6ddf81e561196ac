// states: output of schedulers on their nodes.
#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "orchestrator/drain/actor.h"
#include "orchestrator/site/slurm_nodes.h"
#include "probes/core/json_io.h"
#include "probes/core/strict_object.h"
#include "probes/core/text.h"

namespace assay::drain {
namespace {

using nlohmann::json;
using Nodes = std::map<std::string, NodeNow>;

constexpr const char* kTaint = "assay.dev/drift";
constexpr const char* kAnnotation = "assay.dev/reason";
constexpr const char* kHint = "pass the output of the program unchanged";

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  return text;
}

/// One word of Slurm's state, in lower case and without its marks.
void take_state(std::string word, NodeNow& node) {
  if (word.ends_with('*')) node.down = true;  // it does not answer
  while (!word.empty() && std::string_view("*~#!%$@^-+").contains(word.back())) word.pop_back();
  if (word == "drain" || word == "draining" || word == "drained") node.drained = true;
  if (word == "allocated" || word == "mixed" || word == "completing" || word == "draining") node.busy = true;
  if (word == "down" || word == "fail" || word == "failing" || word == "not_responding" || word == "unknown")
    node.down = true;
}

std::expected<Nodes, InputError> from_slurm_json(std::string_view printed, const std::string& where) {
  const auto document = parse_json(printed, where, {.max_values = kMostValuesOfRun});
  if (!document) return std::unexpected(document.error());
  const auto wrong = [&](std::size_t number) {
    return std::unexpected(InputError{fmt::format("{}: nodes[{}]", where, number), "is no node of Slurm", kHint});
  };
  if (!document->is_object() || !document->contains("nodes") || !document->at("nodes").is_array())
    return std::unexpected(InputError{where, "has no list of nodes", kHint});
  Nodes nodes;
  std::size_t number = 0;
  for (const auto& entry : document->at("nodes")) {
    const std::size_t here = number++;
    if (!entry.is_object() || !entry.contains("name") || !entry.at("name").is_string() || !entry.contains("state"))
      return wrong(here);
    NodeNow node;
    for (const char* field : {"state", "state_flags"}) {
      if (!entry.contains(field)) continue;
      const json& words = entry.at(field);
      if (words.is_string()) take_state(lower(words), node);
      if (!words.is_array()) continue;
      for (const auto& word : words) {
        if (!word.is_string()) return wrong(here);
        take_state(lower(word), node);
      }
    }
    if (entry.contains("reason") && entry.at("reason").is_string()) node.reason = entry.at("reason");
    nodes[entry.at("name")] = std::move(node);
  }
  return nodes;
}

std::expected<Nodes, InputError> from_slurm_lines(std::string_view printed, const std::string& where, bool& sure) {
  const auto read = site::read_slurm_nodes(printed, where);
  if (!read) return std::unexpected(read.error());
  Nodes nodes;
  for (const auto& one : *read) {
    const auto states = one.fields.find("State");
    if (states == one.fields.end() || states->second.empty())
      return std::unexpected(InputError{fmt::format("{}: line {}", where, one.line), "has no state", kHint});
    NodeNow node{.reason = one.reason};
    std::istringstream parts(states->second);
    for (std::string part; std::getline(parts, part, '+');) take_state(lower(part), node);
    sure = sure && (one.reason.empty() || one.reason_ends_surely);
    nodes[one.name] = std::move(node);
  }
  return nodes;
}

}  // namespace

std::expected<Nodes, InputError> nodes_from_slurm(std::string_view printed, const std::string& where, bool* sure) {
  const auto first = printed.find_first_not_of(" \t\r\n");
  bool all_sure = true;
  auto nodes = first != std::string_view::npos && printed[first] == '{' ? from_slurm_json(printed, where)
                                                                        : from_slurm_lines(printed, where, all_sure);
  if (sure != nullptr) *sure = all_sure;
  return nodes;
}

namespace {

/// The condition Ready is True; a node that reports no conditions is taken for one that just joined.
bool is_ready(const json& node) {
  const json::json_pointer conditions("/status/conditions");
  if (!node.contains(conditions) || !node.at(conditions).is_array()) return true;
  return std::ranges::none_of(node.at(conditions), [](const json& one) {
    return one.is_object() && one.value("type", json()) == "Ready" && one.value("status", json()) != "True";
  });
}

}  // namespace

std::expected<Nodes, InputError> nodes_from_kubernetes(std::string_view printed, const std::string& where) {
  const auto document = parse_json(printed, where, {.max_values = kMostValuesOfRun});
  if (!document) return std::unexpected(document.error());
  if (!document->is_object() || !document->contains("items") || !document->at("items").is_array())
    return std::unexpected(InputError{where, "is not a list of nodes", kHint});
  Nodes nodes;
  std::size_t number = 0;
  for (const auto& item : document->at("items")) {
    const std::string here = fmt::format("{}: items[{}]", where, number++);
    const json::json_pointer name("/metadata/name"), cordoned("/spec/unschedulable"), taints("/spec/taints"),
        annotations("/metadata/annotations");
    if (!item.is_object() || !item.contains(name) || !item.at(name).is_string())
      return std::unexpected(InputError{here, "is no node", kHint});
    NodeNow node;
    const bool by_others = item.contains(cordoned) && item.at(cordoned) == true;
    bool by_us = false;
    if (item.contains(taints) && item.at(taints).is_array()) {
      for (const auto& taint : item.at(taints))
        by_us = by_us || (taint.is_object() && taint.value("key", json()) == kTaint);
    }
    if (item.contains(annotations) && item.at(annotations).is_object() && item.at(annotations).contains(kAnnotation) &&
        item.at(annotations).at(kAnnotation).is_string())
      node.reason = item.at(annotations).at(kAnnotation);
    if (by_others && !by_us) node.reason = "cordoned";
    node.down = !is_ready(item);
    node.drained = by_others || by_us;
    nodes[item.at(name)] = std::move(node);
  }
  return nodes;
}

std::expected<Nodes, InputError> nodes_from_hook(std::string_view printed, const std::string& where) {
  Nodes nodes;
  std::istringstream lines{std::string(printed)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (line.empty()) continue;
    const std::string here = fmt::format("{}: line {}", where, number);
    const auto document = parse_json(line, here);
    if (!document) return std::unexpected(document.error());
    auto read = read_strictly(here, [&] {
      StrictObject object(*document, "", "the hook prints one object a node: node, drained, busy, down, reason");
      std::pair<std::string, NodeNow> one{object.text("node", is_node_name), {}};
      one.second = {.drained = object.flag("drained"),
                    .busy = object.flag("busy"),
                    .down = object.flag("down"),
                    .reason = object.text("reason")};
      object.done();
      return one;
    });
    if (!read) return std::unexpected(read.error());
    nodes.insert(std::move(*read));
  }
  return nodes;
}

}  // namespace assay::drain
