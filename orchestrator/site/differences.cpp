// differences: groups the nodes of a fact by value.
#include "orchestrator/site/differences.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

namespace assay::site {
namespace {

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
    const std::string who =
        has_usual && i == 0 ? fmt::format("{} node{}", usual, usual == 1 ? "" : "s") : nodes_words(groups[i].second);
    line += fmt::format("{}{} {}", i == 0 ? "" : "; ", who, quoted ? "\"" + values[i] + "\"" : values[i]);
  }
  if (left_out > 0) line += fmt::format("; {} nodes {} other values", left_out_nodes, left_out);
  return line;
}

}  // namespace assay::site
