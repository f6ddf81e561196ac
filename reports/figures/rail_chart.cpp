// rail_chart: a matrix of rails (rows) by leaves (columns).
#include "reports/figures/rail_chart.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "reports/figures/heat.h"
#include "reports/figures/node_places.h"

namespace assay::figures {
namespace {

/// Names as rows or columns, several to a place if there are too many; the place of each.
struct Places {
  HeatAxis axis;
  std::unordered_map<std::string, std::size_t> of_name;
  std::size_t each = 1;
};

Places places_of(const std::vector<std::string>& names, const char* what) {
  Places places;
  places.each = (names.size() + kMostHeatPlaces - 1) / kMostHeatPlaces;
  places.axis.name = what;
  for (std::size_t from = 0; from < names.size(); from += places.each) {
    const std::size_t to = std::min(from + places.each, names.size());
    for (std::size_t i = from; i < to; ++i) places.of_name.emplace(names[i], places.axis.labels.size());
    places.axis.labels.push_back(to - from == 1 ? names[from] : fmt::format("{} – {}", names[from], names[to - 1]));
  }
  return places;
}

/// Every rail among `results`, mlx5_2 before mlx5_10.
std::vector<std::string> rails_of(const std::vector<const judge::Result*>& results) {
  std::vector<std::string> rails;
  for (const judge::Result* one : results) {
    if (const auto rail = rail_of(*one); !rail.empty()) rails.emplace_back(rail);
  }
  std::ranges::sort(rails, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  rails.erase(std::ranges::unique(rails).begin(), rails.end());
  return rails;
}

/// Each leaf once, in the site's order.
std::vector<std::string> leaves_of(const site::Site& site) {
  std::vector<std::string> leaves;
  std::unordered_set<std::string> seen;
  for (const auto& node : site.nodes) {
    const std::string leaf = band_of(node, "leaf");
    if (seen.insert(leaf).second) leaves.push_back(leaf);
  }
  return leaves;
}

/// The nodes that `result` is about.
std::vector<std::string> nodes_of(const StepIndex& steps, const judge::Result& result) {
  const auto step = steps.find(result.step);
  return step == steps.end() ? std::vector<std::string>{result.node} : step->second->nodes;
}

/// The worst result of each rail (row) and leaf (column). A result without a rail, because the node was not measured,
/// is of every one.
using Worst = std::map<std::pair<std::size_t, std::size_t>, const judge::Result*>;

Worst worst_cells(const site::Site& site, const StepIndex& steps, const std::vector<const judge::Result*>& results,
                  const Places& rails, const Places& leaves) {
  std::unordered_map<std::string_view, std::size_t> leaf_of;
  for (const auto& node : site.nodes) leaf_of.emplace(node.name, leaves.of_name.at(band_of(node, "leaf")));
  Worst worst;
  const auto put = [&](std::size_t rail, std::size_t leaf, const judge::Result* one) {
    const auto [cell, is_new] = worst.try_emplace({rail, leaf}, one);
    if (!is_new && is_worse(*one, *cell->second)) cell->second = one;
  };
  for (const judge::Result* one : results) {
    const std::string rail(rail_of(*one));
    for (const auto& node : nodes_of(steps, *one)) {
      const auto leaf = leaf_of.find(node);
      if (leaf == leaf_of.end()) continue;  // planned for no node
      if (!rail.empty()) put(rails.of_name.at(rail), leaf->second, one);
      for (std::size_t all = 0; rail.empty() && all < rails.axis.labels.size(); ++all) put(all, leaf->second, one);
    }
  }
  return worst;
}

}  // namespace

std::string_view rail_of(const judge::Result& result) {
  const std::string_view id = result.subject.id;
  if (result.subject.kind == "nic") return id;
  const auto at = id.rfind('@');
  return at == std::string_view::npos ? std::string_view() : id.substr(at + 1);
}

Chart rail_chart(const plan::Plan& plan, const StepIndex& steps, const plan::Requirement& requirement,
                 const std::vector<const judge::Result*>& results) {
  const auto names = rails_of(results);
  if (names.empty() || band_kind(plan.site) != "leaf") return {};
  const auto leaf_names = leaves_of(plan.site);
  const Places rails = places_of(names, "rail");
  const Places leaves = places_of(leaf_names, "leaf");
  HeatMap map{.rows = rails.axis, .columns = leaves.axis};
  const Worst worst = worst_cells(plan.site, steps, results, rails, leaves);
  const Scale scale = cell_scale(results, requirement.limit.unit);
  const bool numbered = std::max(leaves.axis.labels.size(), rails.axis.labels.size()) <= kMostNumberedPlaces;
  for (const auto& [place, one] : worst)
    map.cells.push_back({.row = place.first,
                         .column = place.second,
                         .shade = shade_of(*one),
                         .text = numbered ? cell_text(*one, scale) : ""});
  map.beside = worst_lines(results);
  map.margins =
      std::ranges::any_of(results, [](const judge::Result* one) { return acceptance_margin(*one).has_value(); });
  map.title = fmt::format("{} ({}), the worst of each rail and leaf{}{}", requirement.metric, requirement.statistic,
                          setting_words(requirement), numbered && !scale.unit.empty() ? ", in " + scale.unit : "");
  map.description =
      fmt::format("A matrix of {} rails and {} leaves. {}.", names.size(), leaf_names.size(), outcome_counts(results));
  std::string caption = fmt::format(
      "{}Each cell shows the worst result of a rail among the nodes of a leaf, not a mean; a node without any "
      "measurement counts for every rail. {}. ",
      kind_words(plan), outcome_counts(results));
  if (leaves.each > 1) caption += fmt::format("Each column covers up to {} leaves. ", leaves.each);
  if (rails.each > 1) caption += fmt::format("Each row covers up to {} rails. ", rails.each);
  if (numbered) caption += "Numbers are rounded; evidence/verdict.json has all digits. ";
  return {.svg = heat_map(map), .caption = caption};
}

}  // namespace assay::figures
