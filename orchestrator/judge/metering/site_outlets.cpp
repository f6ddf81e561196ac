// site_outlets: compares the outlets that rise while only one node works with those that the site lists for it; see
// site_outlets.h.
#include "orchestrator/judge/metering/site_outlets.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "probes/meters/agreement.h"
#include "probes/meters/load_shape.h"

namespace assay::judge {
namespace {

constexpr double kShortestWindow_s = 10;  // of readings, once a second: below it one late answer moves the mean
constexpr double kSettled = 0.5;          // of the time in which all are idle: fans and averages follow the load late

using Refusal = std::unexpected<std::string>;
using Figures = std::map<std::string, std::expected<JoinedFigure, std::string>>;

std::string outlet_name(const MeterPoint& point) { return fmt::format("{}/{}", point.first, point.second); }

/// When only each node works, and the idle time before it.
std::vector<meters::LoadedAlone> turns_of(const std::vector<std::string>& order, const HeldLoad& load) {
  const meters::TurnTime turn = meters::turn_of(load.hold_s, load.ramp_s);
  std::vector<meters::LoadedAlone> turns;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double begin_s = load.begin_s + static_cast<double>(rank) * 2 * load.hold_s;
    turns.push_back(
        {.node = order[rank], .idle_s = begin_s + kSettled * load.hold_s, .loaded_s = begin_s + turn.loaded_s});
  }
  return turns;
}

std::string outlet_words(const meters::OutletFinding& finding, const std::map<std::string, std::string>& map) {
  std::string words;
  const auto add = [&](std::string one) { words += (words.empty() ? "" : "; ") + std::move(one); };
  for (const auto& outlet : finding.moved) {
    if (std::ranges::find(finding.mapped, outlet) != finding.mapped.end()) continue;
    const auto owner = map.find(outlet);
    add(owner == map.end()
            ? fmt::format("{} rose with {}, and the site has it for no node", outlet, finding.node)
            : fmt::format("{} rose with {}, and the site has it for {}", outlet, finding.node, owner->second));
  }
  for (const auto& outlet : finding.mapped) {
    if (std::ranges::find(finding.moved, outlet) == finding.moved.end())
      add(fmt::format("{} is {}'s by the site and did not rise with it", outlet, finding.node));
  }
  return words;
}

/// Why nothing is known of a node's outlets; nothing if it is.
std::optional<std::string> why_unproved(const site::Site& site, const std::string& node,
                                        const std::vector<std::string>& order, const HeldLoad& load,
                                        const std::map<MeterPoint, std::vector<meters::MeterReading>>& readings,
                                        const std::map<int, Record>& watches) {
  if (load.shape != "turns")
    return fmt::format("The load has the shape {}; outlets show by turns, in which one node after another works.",
                       load.shape);
  if (std::ranges::find(order, node) == order.end()) return fmt::format("Node {} had no part in the load.", node);
  for (const auto& meter : site.meters) {
    if (meter.outlets.empty()) continue;
    for (const auto& [outlet, mapped] : meter.outlets) {
      if (mapped == node && !readings.contains({meter.name, outlet}))
        return fmt::format("{} gave no power of outlet {}.", meter.name, outlet);
    }
    const bool of_node = std::ranges::any_of(meter.outlets, [&](const auto& one) { return one.second == node; });
    if (!of_node) continue;
    if (auto doubt = doubt_of_meter(watches, meter.name)) return doubt;
  }
  return std::nullopt;
}

}  // namespace

Figures outlets_wrong(const site::Site& site, const std::vector<std::string>& order, const HeldLoad& load,
                      const std::map<int, Record>& watches) {
  const auto readings = power_readings(watches);
  std::map<std::string, std::vector<meters::MeterReading>> by_outlet;
  for (const auto& [point, series] : readings)
    if (point.second != 0) by_outlet.emplace(outlet_name(point), series);
  std::map<std::string, std::string> map;
  std::set<std::string> nodes;
  for (const auto& meter : site.meters) {
    for (const auto& [outlet, node] : meter.outlets) {
      map.emplace(outlet_name({meter.name, outlet}), node);
      nodes.insert(node);
    }
  }
  Figures all;
  const meters::TurnTime turn = meters::turn_of(load.hold_s, load.ramp_s);
  const double window_s = std::floor(std::min(kSettled * load.hold_s, turn.length_s));
  std::map<std::string, meters::OutletFinding> findings;
  if (load.shape == "turns" && window_s >= kShortestWindow_s) {
    const auto turns = turns_of(order, load);
    for (auto& one : meters::prove_outlets(by_outlet, map, turns, window_s)) findings.emplace(one.node, std::move(one));
  }
  for (const auto& node : nodes) {
    if (const auto why = why_unproved(site, node, order, load, readings, watches)) {
      all.emplace(node, Refusal(*why));
    } else if (const auto found = findings.find(node); found == findings.end()) {
      all.emplace(node, Refusal(fmt::format("Turns of {:g} s leave {:.0f} s of readings; {:.0f} s are needed.",
                                            load.hold_s, window_s, kShortestWindow_s)));
    } else if (const auto gap = std::ranges::find_if(found->second.mapped,
                                                     [&](const std::string& one) {
                                                       return std::ranges::find(found->second.seen, one) ==
                                                              found->second.seen.end();
                                                     });
               gap != found->second.mapped.end()) {
      all.emplace(node, Refusal(fmt::format("{} has too few readings in the turn of {}.", *gap, node)));
    } else if (found->second.moved.empty()) {
      all.emplace(node, Refusal(fmt::format("No outlet rose when {} alone worked: its load is too small.", node)));
    } else {
      std::vector<std::string> wrong;
      std::ranges::set_symmetric_difference(found->second.mapped, found->second.moved, std::back_inserter(wrong));
      all.emplace(node,
                  JoinedFigure{.value = static_cast<double>(wrong.size()), .words = outlet_words(found->second, map)});
    }
  }
  return all;
}

}  // namespace assay::judge
