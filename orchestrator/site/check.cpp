// check: the facts of a node by name, their comparison, and the nodes of each fact by value.
#include "orchestrator/site/check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/ranges.h>

#include "probes/core/description.h"
#include "probes/core/how_many.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::site {
namespace {

/// Host facts that machines of one kind share; a host's name and boot are its own.
constexpr std::array<std::string_view, 9> kHostFacts = {"kernel",  "machine",    "cpu_model", "cpus",      "cores",
                                                        "sockets", "numa_nodes", "memory",    "hypervisor"};
/// Inventory facts that belong to one machine, or to one of its slots.
constexpr std::array<std::string_view, 10> kOwn = {
    "serial",      "product_serial", "mac_address", "pci_address", "numa_node",
    "rdma_device", "nvml_library",   "uuid",        "kernel",      "link"};
/// Inventory metrics that change with the kernel's or a power state.
constexpr std::array<std::string_view, 3> kMoving = {"pcie_rate", "pcie_degraded_links", "memory_total"};
constexpr double kGiB = 1024.0 * 1024 * 1024;

/// What every record has says how busy the machine was at that moment; only its clock's source is a fact of it.
bool is_of_the_moment(std::string_view name) {
  return name != "clock_synchronised" &&
         std::ranges::find(common_conditions(), name, &ConditionSpec::name) != common_conditions().end();
}

template <std::size_t count>
bool is_one_of(std::string_view name, const std::array<std::string_view, count>& names) {
  return std::ranges::find(names, name) != names.end();
}

std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return printable(*text, kLongestValue);
  return assay::to_json(value).dump();
}

/// A measured count or rate; link rates in Gb/s.
std::string text_of(const Measurement& measurement) {
  if (measurement.samples.empty()) return "absent";
  const double value = measurement.samples.front();
  constexpr double kBitsPerByte = 8, kGiga = 1e9;
  if (measurement.metric == "link_rate") return fmt::format("{:g} Gb/s", value * kBitsPerByte / kGiga);
  return fmt::format("{:.15g}", value);
}

/// "8 x a, 1 x b", sorted; one alone without its count.
std::string counted(const std::multiset<std::string>& values) {
  if (values.size() == 1) return *values.begin();
  std::string text;
  for (auto value = values.begin(); value != values.end(); value = values.upper_bound(*value)) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", values.count(*value), *value);
  }
  return text;
}

std::string value_in(const NodeAnswer& answer, const std::string& fact) {
  const auto found = answer.facts.find(fact);
  return found == answer.facts.end() ? "absent" : found->second;
}

constexpr std::size_t kMostNamed = 4;      // nodes of a group that are named
constexpr std::size_t kMostValues = 6;     // values in a line
constexpr std::size_t kLongValue = 80;     // characters, from which on only what differs is shown
constexpr std::size_t kLongestPart = 160;  // characters of it

std::optional<double> memory_of(const std::string& fact, const std::string& value) {
  if (fact != "memory") return std::nullopt;
  return std::strtod(value.c_str(), nullptr);
}

bool same_value(const std::string& fact, const std::string& a, const std::string& b) {
  const auto x = memory_of(fact, a), y = memory_of(fact, b);
  if (!x || !y) return a == b;
  return std::abs(*x - *y) <= kMemoryTolerance * std::max(*x, *y);
}

std::set<std::string> distinct_words(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

/// `value` without the words that all of `values` have.
std::string unlike_part(const std::string& value, const std::set<std::string>& common) {
  std::string part;
  std::istringstream words(value);
  for (std::string word; words >> word;) {
    if (!common.contains(word)) part += (part.empty() ? "... " : " ") + word;
  }
  if (part.empty()) return "... nothing else";
  if (part.size() <= kLongestPart) return part + " ...";
  return part.substr(0, kLongestPart) + " ...";
}

using Group = std::pair<std::string, std::vector<std::string>>;  // a value, and the nodes that have it

/// Values as a line shows them, in the order of `groups`.
std::vector<std::string> shown_values(const std::vector<Group>& groups, const std::string& usual) {
  std::vector<std::string> values;
  for (const auto& group : groups) values.push_back(group.first);
  if (std::ranges::none_of(values, [](const auto& value) { return value.size() > kLongValue; })) return values;
  const auto reported = std::ranges::count_if(values, [](const auto& value) { return value != "absent"; });
  if (reported == 1) {
    for (auto& value : values) value = value == "absent" ? value : value.substr(0, kLongValue) + " ...";
    return values;
  }
  std::set<std::string> common = distinct_words(usual.empty() ? values.front() : usual);
  for (const auto& value : values) {
    const auto words = distinct_words(value);
    if (value != "absent") std::erase_if(common, [&](const auto& word) { return !words.contains(word); });
  }
  for (auto& value : values) {
    if (value != "absent") value = unlike_part(value, common);
  }
  return values;
}

std::string nodes_words(const std::vector<std::string>& nodes) {
  if (nodes.size() > kMostNamed) return fmt::format("{} nodes ({}, {}, ...)", nodes.size(), nodes[0], nodes[1]);
  if (nodes.size() == 1) return nodes.front();
  const std::vector<std::string> first(nodes.begin(), nodes.end() - 1);
  return fmt::format("{} and {}", fmt::join(first, ", "), nodes.back());
}

}  // namespace

std::map<std::string, std::string> facts_of(const nlohmann::json& host, const std::vector<Record>& records) {
  std::map<std::string, std::string> facts;
  for (const auto name : kHostFacts) {
    const auto found = host.find(name);
    if (found == host.end()) continue;
    if (name == "memory" && found->is_number()) {
      facts[std::string(name)] = fmt::format("{:.2f} GiB", found->get<double>() / kGiB);
    } else {
      facts[std::string(name)] = found->is_string() ? printable(found->get<std::string>()) : printable(found->dump());
    }
  }
  const auto name_of = [](const Subject& subject, const std::string& name) {
    return subject.kind == "node" ? name : subject.kind + " " + name;
  };
  for (const Record& record : records) {
    std::map<std::string, std::multiset<std::string>> parts;
    for (const auto& condition : record.conditions) {
      if (!is_one_of(condition.name, kOwn) && !is_of_the_moment(condition.name))
        parts[name_of(condition.subject, condition.name)].insert(text_of(condition.value));
    }
    for (const auto& measurement : record.measurements) {
      if (!is_one_of(measurement.metric, kMoving))
        parts[name_of(measurement.subject, measurement.metric)].insert(text_of(measurement));
    }
    for (const auto& [name, values] : parts) facts.emplace(name, counted(values));
  }
  return facts;
}

double clock_offset(double before, double there, double after) {
  if (there < before) return there - before;
  return there > after ? there - after : 0;
}

SiteCheck compare_nodes(const std::vector<NodeAnswer>& answers) {
  SiteCheck check{.nodes = answers.size()};
  std::vector<const NodeAnswer*> there;
  std::set<std::string> names;
  for (const auto& answer : answers) {
    if (answer.failure) {
      check.unreachable.push_back(answer);
      continue;
    }
    if (!answer.reason.empty()) check.partial.push_back(answer);
    there.push_back(&answer);
    for (const auto& [name, value] : answer.facts) names.insert(name);
    if (answer.clock_offset_s && std::abs(*answer.clock_offset_s) > kClockTolerance_s)
      check.clocks[answer.node] = *answer.clock_offset_s;
  }
  for (const auto& name : names) {
    std::map<std::string, std::string> by_node;
    for (const auto* answer : there) by_node[answer->node] = value_in(*answer, name);
    if (auto difference = difference_of(name, by_node)) {
      check.differences.push_back(std::move(*difference));
    } else {
      check.same[name] = usual_value(name, by_node);
    }
  }
  return check;
}

std::string check_text(const SiteCheck& check) {
  std::string text;
  for (const auto& one : check.unreachable)
    text += fmt::format("{}: not reached ({}): {}\n", one.node, *one.failure, harmless(one.reason));
  for (const auto& one : check.partial) text += fmt::format("{}: {}\n", one.node, harmless(one.reason));
  const std::size_t reached = check.nodes - check.unreachable.size();
  for (const auto& difference : check.differences)
    text += fmt::format("{}: {}\n", difference.fact, difference_words(difference, reached));
  for (const auto& [node, offset] : check.clocks)
    text +=
        fmt::format("{}: clock is {} by at least {:.1f} s\n", node, offset > 0 ? "ahead" : "behind", std::abs(offset));
  return text + fmt::format("{} of {} nodes reached; {} the same, {} differ\n", reached, check.nodes,
                            how_many(check.same.size(), "fact"),
                            check.differences.size() + (check.clocks.empty() ? 0 : 1));
}

nlohmann::ordered_json check_document(const SiteCheck& check) {
  using nlohmann::ordered_json;
  ordered_json unreachable = ordered_json::array(), partial = ordered_json::array(),
               differences = ordered_json::array();
  for (const auto& one : check.unreachable)
    unreachable.push_back({{"node", one.node}, {"kind", *one.failure}, {"reason", one.reason}});
  for (const auto& one : check.partial) partial.push_back({{"node", one.node}, {"reason", one.reason}});
  for (const auto& one : check.differences) {
    ordered_json entry = {{"fact", one.fact}};
    if (!one.usual.empty()) entry["usual"] = one.usual;
    entry["nodes"] = one.others;
    differences.push_back(std::move(entry));
  }
  return {{"schema", "assay.site-check/1"},
          {"nodes", check.nodes},
          {"unreachable", unreachable},
          {"partial", partial},
          {"same", check.same},
          {"differences", differences},
          {"clock_offset_s", check.clocks}};
}

std::string usual_value(const std::string& fact, const std::map<std::string, std::string>& by_node) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [node, value] : by_node) ++counts[value];
  for (const auto& [value, ignored] : counts) {
    std::size_t agree = 0;
    for (const auto& [other, count] : counts) agree += same_value(fact, value, other) ? count : 0;
    if (2 * agree > by_node.size()) return value;
  }
  return {};
}

std::optional<Difference> difference_of(const std::string& fact, const std::map<std::string, std::string>& by_node) {
  Difference difference{.fact = fact, .usual = usual_value(fact, by_node)};
  for (const auto& [node, value] : by_node) {
    if (difference.usual.empty() || !same_value(fact, value, difference.usual)) difference.others[node] = value;
  }
  if (difference.others.empty()) return std::nullopt;
  return difference;
}

std::string difference_words(const Difference& difference, std::size_t nodes) {
  std::map<std::string, std::vector<std::string>> by_value;
  for (const auto& [node, value] : difference.others) by_value[value].push_back(node);
  std::vector<Group> groups(by_value.begin(), by_value.end());
  std::ranges::stable_sort(groups, std::ranges::greater{}, [](const Group& group) { return group.second.size(); });
  std::size_t left_out = 0, left_out_nodes = 0;
  for (; groups.size() > kMostValues; groups.pop_back()) {
    ++left_out;
    left_out_nodes += groups.back().second.size();
  }
  const bool has_usual = !difference.usual.empty();
  if (has_usual) groups.emplace(groups.begin(), difference.usual, std::vector<std::string>());
  const auto values = shown_values(groups, difference.usual);
  std::string line;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool quoted = values[i].find(' ') != std::string::npos;
    const std::size_t usual = nodes - difference.others.size();
    const std::string who = has_usual && i == 0 ? how_many(usual, "node") : nodes_words(groups[i].second);
    line += fmt::format("{}{} {}", i == 0 ? "" : "; ", who, quoted ? "\"" + values[i] + "\"" : values[i]);
  }
  if (left_out > 0) line += fmt::format("; {} nodes {} other values", left_out_nodes, left_out);
  return line;
}

}  // namespace assay::site
