// pair_chart: matrices of pairs of nodes, and of pairs within a node.
#include "reports/figures/pair_chart.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "reports/figures/html.h"

namespace assay::figures {
namespace {

constexpr std::size_t kMostSmallMaps = 24;  // four rows of six
constexpr std::size_t kMostNodesNamed = 5;
constexpr char kArrow = '>';  // between source and target of a pair within a node

bool replace_word(std::string& text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  if (at == std::string::npos) return false;
  text.replace(at, from.size(), to);
  return true;
}

std::vector<const judge::Result*> results_of(const std::vector<PairResult>& pairs) {
  std::vector<const judge::Result*> results;
  for (const auto& pair : pairs) results.push_back(pair.result);
  return results;
}

/// Nodes with two or more cells that do not pass, if these are more than half of their cells in both directions.
std::string nodes_words(const std::vector<PairResult>& pairs) {
  struct Count {
    std::size_t open = 0, all = 0;
  };
  std::map<std::string_view, Count> counts;
  for (const auto& pair : pairs) {
    for (const auto node : {pair.row, pair.column}) {
      ++counts[node].all;
      if (pair.result->outcome != judge::Outcome::pass) ++counts[node].open;
    }
  }
  std::vector<std::pair<std::string_view, Count>> named;
  std::ranges::copy_if(counts, std::back_inserter(named),
                       [](const auto& one) { return one.second.open > 1 && 2 * one.second.open > one.second.all; });
  std::ranges::stable_sort(named, std::greater<>(), [](const auto& one) {
    return static_cast<double>(one.second.open) / static_cast<double>(one.second.all);
  });
  std::string words;
  for (std::size_t i = 0; i < std::min(named.size(), kMostNodesNamed); ++i)
    words += fmt::format("{}{} ({} of {})", i == 0 ? "Nodes with most cells not passing: " : ", ",
                         escape(named[i].first), named[i].second.open, named[i].second.all);
  if (named.size() > kMostNodesNamed) words += fmt::format(" and {} more nodes", named.size() - kMostNodesNamed);
  return words.empty() ? words : words + ".";
}

/// Results of steps on two nodes, with the nodes that their figure is from and to.
std::vector<PairResult> node_pairs(const StepIndex& steps, Direction direction,
                                   const std::vector<const judge::Result*>& results) {
  std::vector<PairResult> pairs;
  for (const judge::Result* result : results) {
    const auto step = steps.find(result->step);
    if (step == steps.end() || step->second->nodes.size() != 2) continue;
    const auto& nodes = step->second->nodes;
    const bool back = direction == Direction::backward;
    pairs.push_back({.row = nodes[back ? 1 : 0],
                     .column = nodes[back ? 0 : 1],
                     .directed = direction != Direction::none,
                     .result = result});
  }
  return pairs;
}

/// worst_lines with the direction of each: a pair has two.
std::vector<std::string> worst_directions(const std::vector<PairResult>& pairs) {
  std::vector<std::string> lines = {kWorstHeading};
  for (const judge::Result* one : worst_of(results_of(pairs), kWorstLines)) {
    const auto pair = std::ranges::find(pairs, one, &PairResult::result);
    lines.push_back(line_of(fmt::format("{} to {}", pair->row, pair->column), *one));
  }
  return lines;
}

Chart node_chart(const plan::Plan& plan, const plan::Requirement& requirement, const std::vector<PairResult>& pairs,
                 std::size_t results) {
  const NodePlaces places = node_places(plan.site);
  HeatMap map = pair_map(pairs, places);
  const bool directed = pairs.front().directed;
  const std::size_t nodes = plan.site.nodes.size();
  const bool numbered = std::ranges::any_of(map.cells, [](const HeatCell& cell) { return !cell.text.empty(); });
  const std::string metric = directed ? fmt::format("{}, every direction", requirement.metric) : requirement.metric;
  const auto all = results_of(pairs);
  const std::string unit = numbered ? cell_scale(all, requirement.limit.unit).unit : "";
  map.title = fmt::format("{} ({}) between nodes{}{}{}", metric, requirement.statistic, setting_words(requirement),
                          unit.empty() ? "" : ", in ", unit);
  const std::string by = places.axis.bands.empty() ? "" : fmt::format(", by {}", band_kind(plan.site));
  map.rows.name = directed ? "sender" : "node";
  map.columns.name = (directed ? "receiver" : "node") + by;
  map.beside = directed ? worst_directions(pairs) : worst_lines(all);
  std::set<std::pair<std::string_view, std::string_view>> planned;
  for (const auto& pair : pairs) planned.insert(std::minmax(pair.row, pair.column));
  map.description = fmt::format("A matrix of {} nodes. {}.", nodes, outcome_counts(all));
  std::string caption = fmt::format(
      "{}{} of {} pairs of {} nodes planned{}. Cells: {}. ", kind_words(plan), planned.size(), nodes * (nodes - 1) / 2,
      nodes, requirement.rounds > 0 ? fmt::format(" ({} rounds of a tournament)", requirement.rounds) : "",
      outcome_counts(all));
  caption += directed ? "Row: sending node; column: receiving node. " : "Each pair is shown in both of its cells. ";
  if (const auto kind = band_kind(plan.site); !places.axis.bands.empty())
    caption += fmt::format("Lines separate one {} from the next. ", kind);
  if (places.largest > 1)
    caption += fmt::format("Each square covers up to {0} × {0} nodes and shows the worst cell among them, not a mean. ",
                           places.largest);
  if (!requirement.plane.empty()) caption += "A pair with several rails shows the worst of them. ";
  if (numbered) caption += "Numbers are rounded; evidence/verdict.json has all digits. ";
  if (all.size() < results) caption += fmt::format("{} results without a planned pair. ", results - all.size());
  return {.svg = heat_map(map), .caption = caption + nodes_words(pairs)};
}

/// One node's own pairs, each name ("GPU-8f2…") at its place in the order of names.
HeatMap inner_map(std::string_view node, const std::vector<const judge::Result*>& results, bool numbered) {
  std::vector<PairResult> pairs;
  std::set<std::string_view> names;
  for (const judge::Result* result : results) {
    const std::string_view id = result->subject.id;
    const auto at = id.find(kArrow);
    pairs.push_back({.row = id.substr(0, at), .column = id.substr(at + 1), .directed = true, .result = result});
    names.insert({pairs.back().row, pairs.back().column});
  }
  NodePlaces places;
  for (const auto name : names) {
    places.of_node.emplace(name, places.axis.labels.size());
    places.axis.labels.emplace_back(name);
  }
  HeatMap map = pair_map(pairs, places);
  map.title = node;
  if (!numbered) {
    for (auto& cell : map.cells) cell.text.clear();
  }
  return map;
}

bool is_inner(const judge::Result* result) { return result->subject.id.find(kArrow) != std::string::npos; }

/// The one matrix of a single node.
Chart single_chart(HeatMap map, const std::string& title, const std::string& description, const std::string& caption,
                   const std::vector<const judge::Result*>& results) {
  const std::string unit = cell_scale(results, results.front()->unit).unit;
  map.title = unit.empty() ? title : fmt::format("{}, in {}", title, unit);
  map.description = description;
  map.rows.name = "source";
  map.columns.name = "target";
  return {.svg = heat_map(map), .caption = caption};
}

Chart inner_chart(const plan::Plan& plan, const plan::Requirement& requirement,
                  const std::vector<const judge::Result*>& results) {
  std::map<std::string_view, std::vector<const judge::Result*>> of_node;
  std::vector<const judge::Result*> others;  // of nodes that were not measured
  for (const judge::Result* result : results) (is_inner(result) ? of_node[result->node] : others).push_back(result);
  std::vector<const judge::Result*> worst;
  for (const auto& [node, own] : of_node) worst.push_back(worst_of(own, 1).front());
  const std::size_t nodes = worst.size();
  if (nodes > kMostSmallMaps) worst = worst_of(worst, kMostSmallMaps);
  std::vector<HeatMap> maps;
  for (const judge::Result* one : worst) {
    maps.push_back(inner_map(one->node, of_node[one->node], nodes == 1));
    if (maps.back().columns.labels.size() > kMostHeatPlaces) return {};
  }
  if (maps.empty()) return {};
  const std::string title = fmt::format("{} ({}) within {}{}", requirement.metric, requirement.statistic,
                                        nodes == 1 ? "the node" : "each node", setting_words(requirement));
  const std::string description = fmt::format("{} of {} nodes, each with a matrix of its own pairs. {}.", maps.size(),
                                              nodes, outcome_counts(results));
  std::string caption = fmt::format("{}Row: source; column: target, sorted by name. Cells of all nodes: {}. ",
                                    kind_words(plan), outcome_counts(results));
  if (maps.size() < nodes)
    caption += fmt::format("Shown: the {} of {} nodes with the worst cells, worst first. ", maps.size(), nodes);
  if (!others.empty())
    caption +=
        fmt::format("Without a matrix, because no pair was measured: {} ({}). ",
                    others.size() == 1 ? "1 node" : fmt::format("{} nodes", others.size()), outcome_counts(others));
  caption += worst_words(results);
  if (nodes == 1) return single_chart(std::move(maps.front()), title, description, caption, results);
  return {.svg = heat_maps(title, description, maps), .caption = caption};
}

}  // namespace

Direction direction_of(const std::string& metric) {
  if (metric.find("forward") != std::string::npos) return Direction::forward;
  return metric.find("backward") != std::string::npos ? Direction::backward : Direction::none;
}

const plan::Requirement* other_direction(const plan::Profile& profile, const plan::Requirement& requirement) {
  std::string metric = requirement.metric;
  if (!replace_word(metric, "forward", "backward") && !replace_word(metric, "backward", "forward")) return nullptr;
  const auto found = std::ranges::find_if(profile.requirements, [&](const plan::Requirement& one) {
    return one.metric == metric && !one.contrast && !requirement.contrast && one.probe == requirement.probe &&
           one.parameters == requirement.parameters && one.at == requirement.at && one.scope == requirement.scope &&
           one.statistic == requirement.statistic && one.rounds == requirement.rounds &&
           one.plane == requirement.plane && one.pairs == requirement.pairs && one.alone == requirement.alone;
  });
  return found == profile.requirements.end() ? nullptr : &*found;
}

HeatMap pair_map(const std::vector<PairResult>& pairs, const NodePlaces& places) {
  std::map<std::pair<std::size_t, std::size_t>, const judge::Result*> worst;
  const auto put = [&](std::size_t row, std::size_t column, const judge::Result* result) {
    const auto [cell, is_new] = worst.try_emplace({row, column}, result);
    if (!is_new && is_worse(*result, *cell->second)) cell->second = result;
  };
  for (const auto& pair : pairs) {
    const std::size_t row = places.of_node.at(pair.row);
    const std::size_t column = places.of_node.at(pair.column);
    put(row, column, pair.result);
    if (!pair.directed) put(column, row, pair.result);
  }
  HeatMap map{.rows = places.axis, .columns = places.axis};
  const bool numbered = places.largest == 1 && places.axis.labels.size() <= kMostNumberedPlaces;
  const Scale scale = cell_scale(results_of(pairs), pairs.empty() ? "1" : pairs.front().result->unit);
  for (const auto& [place, result] : worst)
    map.cells.push_back({.row = place.first,
                         .column = place.second,
                         .shade = shade_of(*result),
                         .text = numbered ? cell_text(*result, scale) : ""});
  map.margins =
      std::ranges::any_of(pairs, [](const PairResult& pair) { return acceptance_margin(*pair.result).has_value(); });
  return map;
}

Chart pair_chart(const plan::Plan& plan, const StepIndex& steps, const plan::Requirement& requirement,
                 const std::vector<const judge::Result*>& results, const std::vector<const judge::Result*>& reverse) {
  const Direction direction = direction_of(requirement.metric);
  auto pairs = node_pairs(steps, direction, results);
  const auto back =
      node_pairs(steps, direction == Direction::forward ? Direction::backward : Direction::forward, reverse);
  pairs.insert(pairs.end(), back.begin(), back.end());
  if (!pairs.empty()) return node_chart(plan, requirement, pairs, results.size() + reverse.size());
  return inner_chart(plan, requirement, results);
}

}  // namespace assay::figures
