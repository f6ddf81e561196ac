// site_joins: adds joined figures to the record of an attempt: efficiency, steps of a load, outlets, agreement. Outlets
// that rise while only one node works are compared with those that the site lists for it, and the neighbours that a
// switch has with the site, as the LLDP of its nodes is (site/topology.h).
#include "orchestrator/judge/metering/site_joins.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "orchestrator/judge/metering/site_agreement.h"
#include "orchestrator/judge/metering/site_step.h"
#include "orchestrator/plan/metered.h"
#include "orchestrator/site/topology.h"
#include "probes/meters/agreement.h"
#include "probes/meters/load_shape.h"

namespace assay::judge {
namespace {

constexpr const char* kUndated =
    "The record of the load does not say its shape, hold and ramp, and from when it held them (hold_begin_s).";

bool is_wanted(const MeteredAttempt& attempt, std::string_view metric) {
  return std::ranges::any_of(attempt.step.requirements, [&](const std::string& id) {
    const auto* requirement = attempt.plan.requirement(id);
    return requirement != nullptr && requirement->metric == metric;
  });
}

void add_joined(std::string_view metric, std::string_view unit, const Subject& subject, double value, Record& made) {
  made.measurements.push_back({.metric = std::string(metric),
                               .unit = std::string(unit),
                               .subject = subject,
                               .samples = {value},
                               .stopped = "fixed"});
}

void join_efficiency(const MeteredAttempt& attempt, const std::vector<RackPower>& racks, Record& made,
                     SiteEvidence& site) {
  for (const auto& rack : racks) {
    const Subject subject{.kind = "rack", .id = rack.rack};
    const auto joined = efficiency_of(attempt.plan, attempt.step, attempt.load, attempt.watches, rack);
    if (!joined) {
      site.missing.insert_or_assign(subject, joined.error());
      continue;
    }
    add_joined(kEfficiency, "FLOP/J", subject, joined->flop_per_joule, made);
    made.conditions.push_back({.name = "energy_boundary", .subject = subject, .value = joined->boundary});
    made.conditions.push_back({.name = "method_level", .subject = subject, .value = joined->method_level});
    made.conditions.push_back({.name = "accuracy_bound", .subject = subject, .value = joined->accuracy});
  }
}

void join_steps(const MeteredAttempt& attempt, Record& made, SiteEvidence& site) {
  StepFigures figures = steps_of(attempt.load, attempt.watches);
  std::ranges::move(figures.measurements, std::back_inserter(made.measurements));
  std::ranges::move(figures.conditions, std::back_inserter(made.conditions));
  for (auto& [subject, words] : figures.missing) site.missing.insert_or_assign(subject, std::move(words));
}

void join_outlets(const MeteredAttempt& attempt, const HeldLoad& load, Record& made, SiteEvidence& site) {
  const std::string metric(kOutletsWrong);
  for (const auto& [node, figure] : outlets_wrong(attempt.plan.site, attempt.step.nodes, load, attempt.watches)) {
    const Subject subject{.kind = "node", .id = node};
    if (!figure) {
      site.not_joined[{metric, subject}] = figure.error();
      continue;
    }
    add_joined(metric, "1", subject, figure->value, made);
    if (!figure->words.empty()) site.words[{metric, subject}] = figure->words;
  }
}

void join_agreement(const MeteredAttempt& attempt, const HeldLoad& load, Record& made, SiteEvidence& site) {
  for (const auto& [subject, figure] : agreements(attempt.plan.site, load, attempt.watches)) {
    for (const auto metric : {kAgreementRatio, kAgreementGain, kAgreementOffset}) {
      if (!figure)
        site.not_joined[{std::string(metric), subject}] = figure.error();
      else
        site.words[{std::string(metric), subject}] = figure->words;
    }
    if (!figure) continue;
    add_joined(kAgreementRatio, "1", subject, figure->ratio, made);
    add_joined(kAgreementGain, "1", subject, figure->gain, made);
    add_joined(kAgreementOffset, "W", subject, figure->offset_w, made);
    for (std::size_t i = 0; i < figure->meter_w.size(); ++i) {
      const auto level = [&](const char* side, double power_w) {
        add_joined(kAgreementPower, "W", subject, power_w, made);
        made.measurements.back().at = {{"load", std::int64_t{kAgreementLoads.at(i)}}, {"side", std::string(side)}};
      };
      level("meter", figure->meter_w[i]);
      level("reference", figure->reference_w[i]);
    }
  }
}

/// Neighbours that switches report, and for every figure of a switch's port the port at the other end of its cable.
void join_cables(const MeteredAttempt& attempt, Record& made, SiteEvidence& site) {
  const std::string metric(kCablingWrong);
  for (const auto& [subject, figure] : cabling_wrong(attempt.plan.site, attempt.watches)) {
    if (!figure) {
      site.not_joined[{metric, subject}] = figure.error();
      continue;
    }
    add_joined(metric, "1", subject, figure->value, made);
    if (!figure->words.empty()) site.words[{metric, subject}] = figure->words;
  }
  for (const auto& port : plan::cabled_ports(attempt.plan.site)) {
    if (port.end == nullptr) continue;
    for (const auto& one : made.measurements)
      if (one.subject == port.subject())
        site.words.try_emplace({one.metric, one.subject}, "Its cable leads to " + port.end_words());
  }
}

/// The nodes behind a number of lost ones.
void name_lost_nodes(const Record& made, SiteEvidence& site) {
  for (const auto& one : made.conditions) {
    const auto* text = one.name == "nodes_lost" ? std::get_if<std::string>(&one.value) : nullptr;
    if (text != nullptr && *text != "none") site.words[{"lost_nodes", one.subject}] = "Lost with the feed: " + *text;
  }
}

/// What the newest watch that says it reports of a port.
struct Reported {
  std::string system, port, other_name;
};

std::map<Subject, Reported> reported_in(const std::map<int, Record>& watches) {
  std::map<Subject, Reported> all;
  for (const auto& [number, record] : watches) {
    for (const auto& one : record.conditions) {
      const auto* text = std::get_if<std::string>(&one.value);
      if (text == nullptr || one.subject.kind != "switch_port") continue;
      if (one.name == "neighbour") all[one.subject] = {.system = *text};
      if (one.name == "neighbour_port") all[one.subject].port = *text;
      if (one.name == "neighbour_port_name") all[one.subject].other_name = *text;
    }
  }
  return all;
}

/// The node of a system's name: as the site writes it, or the first part of a name with a domain.
const site::Node* node_of(const site::Site& site, const std::string& system) {
  if (const auto* node = site.node(system)) return node;
  return site.node(system.substr(0, system.find('.')));
}

bool has_port(const site::Node& node, const std::string& name) {
  return !name.empty() && std::ranges::any_of(node.planes, [&](const auto& plane) {
    return std::ranges::any_of(plane.second, [&](const site::Port& port) { return port.interface == name; });
  });
}

std::expected<JoinedFigure, std::string> compared(const site::Site& site, const plan::CabledPort& port,
                                                  const Reported& seen) {
  if (seen.system.find(',') != std::string::npos)
    return std::unexpected(fmt::format("The switch reports several neighbours there: {}.", seen.system));
  const auto* node = node_of(site, seen.system);
  if (node == nullptr)
    return std::unexpected(fmt::format("The neighbour there, {}, is no node of the site.", seen.system));
  const std::string name = has_port(*node, seen.port) ? seen.port : seen.other_name;
  const bool known = has_port(*node, name);
  if (!known && node->name == port.node)
    return std::unexpected("The neighbour there is the right node, and names none of its ports in the site.");
  const std::string finding = known ? site::contradiction(site,
                                                          {.node = node->name,
                                                           .port = name,
                                                           .leaf = port.leaf,
                                                           .switch_port = port.switch_port,
                                                           .where = "LLDP of the switch"},
                                                          false)
                                    : "";
  if (finding.empty() && node->name == port.node &&
      (!known || name == port.end->interface || port.end->interface.empty()))
    return JoinedFigure{.value = 0};
  return JoinedFigure{
      .value = 1,
      .words = fmt::format("The switch reports {}{}{} there, and in the site it is {}{}", node->name, known ? " " : "",
                           known ? name : "", port.end_words(), finding.empty() ? "" : "; " + finding)};
}

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

void join_figures(const MeteredAttempt& attempt, const std::vector<RackPower>& racks, Record& made,
                  SiteEvidence& site) {
  name_lost_nodes(made, site);
  if (!attempt.plan.site.switches.empty()) join_cables(attempt, made, site);
  if (is_wanted(attempt, kEfficiency)) join_efficiency(attempt, racks, made, site);
  const bool steps = std::ranges::any_of(kOfSteps, [&](std::string_view metric) { return is_wanted(attempt, metric); });
  // A made-up plant has no load whose marks were measured.
  if (steps && !attempt.plan.simulation && !attempt.load.start.host.contains(plan::kSimulated))
    join_steps(attempt, made, site);
  const bool outlets = is_wanted(attempt, kOutletsWrong);
  const bool agreement =
      is_wanted(attempt, kAgreementRatio) || is_wanted(attempt, kAgreementGain) || is_wanted(attempt, kAgreementOffset);
  if (!outlets && !agreement) return;
  const auto load = held_load(attempt.load, attempt.begin_s, attempt.end_s);
  if (!load) {
    site.step.reason = kUndated;
    return;
  }
  if (outlets) join_outlets(attempt, *load, made, site);
  if (agreement) join_agreement(attempt, *load, made, site);
}

std::map<Subject, std::expected<JoinedFigure, std::string>> cabling_wrong(const site::Site& site,
                                                                          const std::map<int, Record>& watches) {
  std::map<Subject, std::expected<JoinedFigure, std::string>> figures;
  const auto reported = reported_in(watches);
  for (const auto& port : plan::cabled_ports(site)) {
    if (port.end == nullptr) continue;
    const auto seen = reported.find(port.subject());
    if (seen == reported.end())
      figures.emplace(port.subject(), std::unexpected("The switch reports no neighbour there."));
    else
      figures.emplace(port.subject(), compared(site, port, seen->second));
  }
  return figures;
}

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
