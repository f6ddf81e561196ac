// nights: one pass over the database for a page.
#include "reports/nightly/nights.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "orchestrator/drift/unit_register.h"
#include "probes/core/statistics.h"

namespace assay::nightly {
namespace {

using drift::Date;

NodeNight of_visit(drift::VisitState state) {
  switch (state) {
    case drift::VisitState::measured:
      return NodeNight::measured;
    case drift::VisitState::not_due:
      return NodeNight::not_due;
    case drift::VisitState::busy:
      return NodeNight::busy;
    case drift::VisitState::preempted:
      return NodeNight::preempted;
    case drift::VisitState::not_measured:
    case drift::VisitState::missing:
      break;
  }
  return NodeNight::not_measured;
}

/// State of a night in which the flag's unit was measured.
NodeNight of_flag(drift::UnitState state) {
  switch (state) {
    case drift::UnitState::watch:
      return NodeNight::watch;
    case drift::UnitState::confirmed:
    case drift::UnitState::draining:
    case drift::UnitState::lemon:
      return NodeNight::confirmed;
    default:
      return NodeNight::flagged;
  }
}

/// For names as people count, n2 before n10: every number with zeros in front.
std::string counting_key(std::string_view name) {
  constexpr std::size_t kDigits = 12;
  std::string key;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t end = std::min(name.find_first_not_of("0123456789", i), name.size());
    if (end > i) key += fmt::format("{:0>{}}", name.substr(i, end - i), kDigits);
    if (end < name.size()) key += name[end];
    i = end + 1;
  }
  return key;
}

bool comes_before(const std::string& a, const std::string& b) {
  return std::pair(counting_key(a), a) < std::pair(counting_key(b), b);
}

std::vector<Date> dates_up_to(Date last, std::size_t most) {
  std::vector<Date> dates;
  for (std::size_t i = 0; i < most; ++i) dates.push_back(last - std::chrono::days(most - 1 - i));
  return dates;
}

/// Flags of each unit.
using FlagsOf = std::unordered_map<std::string, std::vector<const drift::Flag*>>;

FlagsOf flags_by_unit(const drift::DriftReport& report) {
  FlagsOf flags;
  for (const auto& flag : report.flags) flags[flag.unit].push_back(&flag);
  return flags;
}

NodeNight state_of(const drift::Visit& visit, const std::string& unit, Date night, const FlagsOf& flags) {
  NodeNight state = of_visit(visit.state);
  const auto found = flags.find(unit);
  if (state != NodeNight::measured || found == flags.end()) return state;
  for (const auto* flag : found->second) {
    if (night >= flag->onset) state = std::max(state, of_flag(flag->state));
  }
  return state;
}

}  // namespace

const char* words_for(NodeNight state) {
  constexpr const char* kWords[kNodeNights] = {"no sweep",
                                               "not due",
                                               "busy",
                                               "preempted",
                                               "not measured",
                                               "measured, as before",
                                               "measured, a small change",
                                               "measured, flagged",
                                               "measured, confirmed"};
  return kWords[static_cast<std::size_t>(state)];
}

history::Result<Overview> overview_of(const history::History& history, const drift::DriftReport& report,
                                      std::size_t most) {
  const auto fleet = history.fleet();
  if (!fleet) return std::unexpected(fleet.error());
  const auto sweeps = history.sweeps();  // by night
  if (!sweeps) return std::unexpected(sweeps.error());
  if (!sweeps->empty() && sweeps->front().night <= report.as_of)
    most = std::min(most, static_cast<std::size_t>((report.as_of - sweeps->front().night).count()) + 1);
  Overview overview{.nights = dates_up_to(report.as_of, most)};
  const FlagsOf flags = flags_by_unit(report);
  std::map<std::string, NodeRow> rows;
  // A visit may name a node that has no unit any more: renamed since, or its parts are elsewhere.
  const auto row_of = [&](const std::string& node, const drift::Unit& unit) -> NodeRow& {
    NodeRow& row = rows[node];
    row.name = node;
    if (row.leaf.empty()) row.leaf = unit.leaf;
    if (row.rack.empty()) row.rack = unit.rack;
    row.nights.resize(most, NodeNight::unseen);
    return row;
  };
  for (const auto& unit : fleet->units) row_of(unit.node, unit);
  const auto read = history.nights(overview.nights.front(), report.as_of, [&](const drift::Night& night) {
    const auto place = static_cast<std::size_t>((night.date - overview.nights.front()).count());
    for (const auto& visit : night.visits) {
      const auto& unit = fleet->units[visit.unit];
      NodeNight& cell = row_of(visit.node.empty() ? unit.node : visit.node, unit).nights[place];
      cell = std::max(cell, state_of(visit, unit.id, night.date, flags));
    }
    overview.events.insert(overview.events.end(), night.events.begin(), night.events.end());
  });
  if (!read) return std::unexpected(read.error());
  for (auto& [name, row] : rows) overview.nodes.push_back(std::move(row));
  std::ranges::sort(overview.nodes, comes_before, &NodeRow::name);
  for (const auto& sweep : *sweeps) overview.last_started = std::max(overview.last_started, sweep.started);
  return overview;
}

std::vector<NodeRow> grouped(const std::vector<NodeRow>& nodes, std::size_t per_row) {
  const bool leaves = std::ranges::all_of(nodes, [](const NodeRow& row) { return !row.leaf.empty(); });
  const bool racks = std::ranges::all_of(nodes, [](const NodeRow& row) { return !row.rack.empty(); });
  std::vector<NodeRow> rows;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeRow& node = nodes[i];
    const std::string key = leaves ? "leaf " + node.leaf : racks ? "rack " + node.rack : std::to_string(i / per_row);
    const auto [found, is_new] = places.emplace(key, rows.size());
    if (is_new) {
      rows.push_back(node);
      rows.back().name = leaves || racks ? key : node.name;
      continue;
    }
    NodeRow& row = rows[found->second];
    ++row.nodes;
    if (!leaves && !racks) row.name = row.name.substr(0, row.name.find(" … ")) + " … " + node.name;
    for (std::size_t night = 0; night < row.nights.size(); ++night)
      row.nights[night] = std::max(row.nights[night], node.nights[night]);
  }
  if (leaves || racks) std::ranges::sort(rows, comes_before, &NodeRow::name);
  return rows;
}

namespace {

/// The values of one metric in one night, by cohort.
using Peers = std::map<std::uint32_t, std::vector<double>>;

/// Collects the figures of a few units, and of their peers for the median.
class Collector {
 public:
  Collector(const drift::Fleet& fleet, std::vector<UnitTrend>& units) : fleet_(fleet) {
    std::map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < units.size(); ++i) places.emplace(units[i].unit.id, i);
    for (std::uint32_t i = 0; i < fleet.series.size(); ++i) {
      const auto& series = fleet.series[i];
      const auto found = places.find(fleet.units[series.unit].id);
      if (found == places.end()) continue;
      wanted_.emplace(i, &units[found->second].series.emplace_back(SeriesTrend{
                             .metric = fleet.metrics[series.metric], .accepted = series.accepted, .nights = {}}));
      metrics_.insert(series.metric);
    }
  }

  void take(const drift::Night& night) {
    std::map<std::uint32_t, Peers> peers;
    for (const auto& reading : night.readings) {
      const auto& visit = night.visits[reading.visit];
      const auto metric = fleet_.series[reading.series].metric;
      if (!visit.retest && metrics_.contains(metric)) peers[metric][visit.cohort].push_back(reading.value);
    }
    for (const auto& reading : night.readings) {
      const auto found = wanted_.find(reading.series);
      if (found == wanted_.end()) continue;
      const auto& visit = night.visits[reading.visit];
      auto& values = peers[fleet_.series[reading.series].metric][visit.cohort];
      found->second->nights.push_back({.night = night.date,
                                       .value = reading.value,
                                       .cohort = values.size() < kFewestPeers
                                                     ? std::nullopt
                                                     : std::optional(median(std::span<const double>(values))),
                                       .retest = visit.retest,
                                       .run_sha256 = visit.run_sha256});
    }
  }

 private:
  const drift::Fleet& fleet_;
  std::map<std::uint32_t, SeriesTrend*> wanted_;
  std::set<std::uint32_t> metrics_;
};

}  // namespace

history::Result<std::vector<UnitTrend>> trends_of(const history::History& history, const drift::DriftReport& report,
                                                  const std::string& unit_or_node, std::size_t most) {
  const auto fleet = history.fleet();
  if (!fleet) return std::unexpected(fleet.error());
  std::vector<UnitTrend> units;
  for (const auto& unit : fleet->units) {
    if (unit.id != unit_or_node && unit.node != unit_or_node) continue;
    const auto state = report.states.find(unit.id);
    units.push_back({.unit = unit, .state = state == report.states.end() ? drift::UnitState::steady : state->second});
  }
  if (units.empty()) return std::unexpected(history::Failure{drift::unknown_unit(*fleet, unit_or_node)});
  std::ranges::sort(units, {}, [](const UnitTrend& one) { return one.unit.id; });
  for (auto& one : units) one.series.reserve(fleet->metrics.size());  // the collector keeps addresses
  Collector collector(*fleet, units);
  const auto read =
      history.nights(report.as_of - std::chrono::days(most - 1), report.as_of, [&](const drift::Night& night) {
        collector.take(night);
        for (auto& one : units) {
          std::ranges::copy_if(night.events, std::back_inserter(one.events), [&](const drift::Event& event) {
            return event.scope == one.unit.id || event.scope == one.unit.node || event.scope == "fleet";
          });
        }
      });
  if (!read) return std::unexpected(read.error());
  for (auto& one : units) {
    std::ranges::sort(one.series, {}, [](const SeriesTrend& series) { return series.metric.name; });
    for (auto& series : one.series) {
      for (std::size_t i = 0; i < report.flags.size(); ++i) {
        if (report.flags[i].unit == one.unit.id && report.flags[i].metric == series.metric.name) series.flag = i;
      }
    }
    std::ranges::stable_partition(one.series, [](const SeriesTrend& series) { return series.flag.has_value(); });
  }
  std::ranges::stable_partition(
      units, [](const UnitTrend& one) { return !one.series.empty() && one.series.front().flag.has_value(); });
  return units;
}

}  // namespace assay::nightly
