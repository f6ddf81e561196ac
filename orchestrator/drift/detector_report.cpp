// detector_report: builds the report from the detector's state; report.h describes its fields.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/drift/detector.h"
#include "orchestrator/drift/detector_internal.h"
#include "orchestrator/drift/report.h"
#include "orchestrator/files/digest.h"

namespace assay::drift {
namespace {

constexpr std::chrono::days kTogether{3};

bool together(const Flag& a, const Flag& b) { return a.onset - b.onset <= kTogether && b.onset - a.onset <= kTogether; }

bool active(const Flag& flag) { return flag.state != UnitState::watch && flag.state != UnitState::repaired; }

/// How many different `what` there are among flags that share `place` with `flag`, at about the same time.
template <class Place, class What>
std::size_t shared(const std::vector<Flag>& flags, const Flag& flag, Place place, What what) {
  std::set<std::string> found;
  for (const Flag& other : flags) {
    if (active(other) && together(flag, other) && place(other) == place(flag)) found.insert(what(other));
  }
  return found.size();
}

std::string node_of(const Flag& flag) { return flag.node; }
std::string unit_of(const Flag& flag) { return flag.unit; }

/// Two nodes whose common figure was never bad with another partner.
std::string pair_of(const Flag& flag) {
  return fmt::format("pair {}+{}", std::min(flag.node, flag.partners[0]), std::max(flag.node, flag.partners[0]));
}

std::string element_of(const std::vector<Flag>& flags, const Flag& flag) {
  if (!active(flag)) return "unit " + flag.unit;
  if (flag.partners.size() == 1) return pair_of(flag);
  constexpr std::size_t kSeveral = 2;
  if (!flag.leaf.empty() && shared(
                                flags, flag, [](const Flag& f) { return f.leaf; }, node_of) >= kSeveral)
    return "leaf " + flag.leaf;
  if (!flag.rack.empty() && shared(
                                flags, flag, [](const Flag& f) { return f.rack; }, node_of) >= kSeveral)
    return "rack " + flag.rack;
  if (shared(flags, flag, node_of, unit_of) >= kSeveral) return "node " + flag.node;
  return "unit " + flag.unit;
}

/// Names in each flag the smallest elements that it shares with others, and gives the groups. Flags belong together
/// when their onsets are within three nights of each other: on several units of a node, several nodes of a leaf, then
/// of a rack. A figure of two nodes that was bad with one partner only is their pair's.
std::vector<Group> group_flags(std::vector<Flag>& flags) {
  std::map<std::string, std::vector<std::string>> groups;
  for (Flag& flag : flags) {
    const std::string element = element_of(flags, flag);
    flag.suspects = {element};
    groups[element].push_back(flag.id);
  }
  std::vector<Group> all;
  for (auto& [element, ids] : groups) all.push_back({.element = element, .flags = std::move(ids)});
  return all;
}

/// Units of tonight with a flag that was raised within three nights: by how many nodes they are on, a finding of its
/// own. `nodes` is how many were measured tonight, `ratio` the share beyond which the cause is common.
std::vector<FleetFinding> common_causes(const std::vector<Flag>& flags, Date as_of, std::size_t nodes, double ratio) {
  constexpr std::size_t kFewest = 3;
  std::set<std::string> named;
  Date since = as_of;
  for (const Flag& flag : flags) {
    if (!active(flag) || as_of - flag.raised >= kTogether) continue;
    named.insert(flag.node);
    since = std::min(since, flag.raised);
  }
  const double share = nodes == 0 ? 0 : static_cast<double>(named.size()) / static_cast<double>(nodes);
  if (named.size() < kFewest || share <= ratio) return {};
  FleetFinding one{.kind = FleetFinding::Kind::many_flags, .since = since, .ratio = share, .limit = ratio};
  one.units = named.size();
  one.words = fmt::format(
      "{} of {} nodes were flagged within three nights: the cause is common, a tool, the facility or "
      "a change of software. Drain none of them.",
      named.size(), nodes);
  return {one};
}

/// The reported one of several flags of a unit.
int weight_of(UnitState state) {
  using enum UnitState;
  for (int weight = 0; const UnitState one : {watch, repaired, stale, flagged, confirmed, draining, lemon}) {
    ++weight;
    if (one == state) return weight;
  }
  return 0;
}

UnitState state_of_visit(VisitState state) {
  switch (state) {
    case VisitState::not_due:
      return UnitState::not_due;
    case VisitState::busy:
      return UnitState::busy;
    case VisitState::preempted:
      return UnitState::preempted;
    case VisitState::measured:
    case VisitState::not_measured:
    case VisitState::missing:
      break;
  }
  return UnitState::not_measured;
}

/// The state of a unit without a flag.
UnitState plain_state(const UnitTrack& track, Day tonight, bool learning) {
  if (track.last_seen != tonight) return UnitState::not_measured;
  if (track.last_state != VisitState::measured) return state_of_visit(track.last_state);
  return learning ? UnitState::learning : UnitState::steady;
}

/// Units that have series of a level, none of which was judged yet: their visits so far are the warm-up.
std::vector<bool> learning_units(const std::vector<MetricTrack>& metrics, const Fleet& fleet, double warmup) {
  std::vector<bool> has(fleet.units.size()), judged(fleet.units.size());
  for (const MetricTrack& track : metrics) {
    if (track.type != MetricClass::level) continue;
    for (std::size_t slot = 0; slot < track.series.size(); ++slot) {
      const std::uint32_t unit = fleet.series[track.series[slot]].unit;
      has[unit] = true;
      if (track.level.states[slot].now.n > warmup) judged[unit] = true;
    }
  }
  for (std::size_t i = 0; i < has.size(); ++i) has[i] = has[i] && !judged[i];
  return has;
}

Flag finished(const OpenFlag& one, const Unit& unit, const UnitTrack& track, Day tonight, const Policy& policy) {
  Flag flag = one.flag;
  flag.node = track.node;
  flag.slot = track.slot;
  flag.leaf = unit.leaf;
  flag.rack = unit.rack;
  flag.words = words_of_flag(one);
  const auto age = Date{std::chrono::days{tonight}} - flag.last_visit;
  const bool waits =
      flag.state == UnitState::flagged || flag.state == UnitState::watch;  // nothing ends a confirmed one
  if (waits && age > std::chrono::days{policy.stale_nights}) flag.state = UnitState::stale;
  return flag;
}

}  // namespace

DriftReport Detector::report() const {
  const Internal& in = *inside_;
  const Fleet& fleet = *in.fleet;
  DriftReport report{.as_of = last(), .simulated = fleet.simulated};
  report.policy_sha256 = files::sha256(policy_text(in.policy));
  report.history_sha256 = in.digest.empty() ? files::sha256("") : in.digest;
  report.nights = in.nights;
  report.series = in.slot_of.size();
  report.thresholds = in.thresholds;
  report.coverage = in.units.coverage(fleet, in.swept, in.policy);
  const auto learning = learning_units(in.metrics, fleet, in.policy.warmup);
  std::vector<UnitState> states(in.units.tracks.size());
  std::set<std::string> nodes;
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i] = plain_state(in.units.tracks[i], in.swept, learning[i]);
    if (in.units.tracks[i].last_measured == in.swept) nodes.insert(in.units.tracks[i].node);
  }
  for (const auto& [key, one] : in.flags.open) {
    report.flags.push_back(finished(one, fleet.units[one.unit], in.units.tracks[one.unit], in.last, in.policy));
    const Flag& flag = report.flags.back();
    if (weight_of(flag.state) > weight_of(states[one.unit])) states[one.unit] = flag.state;
    if (const int times = tests_wanted(one); times > 0)
      report.retests_wanted.push_back({.unit = flag.unit,
                                       .node = flag.node,
                                       .metric = flag.metric,
                                       .probe = fleet.metrics[one.metric].probe,
                                       .times = times,
                                       .other_partner = one.pair,
                                       .flag = flag.id});
  }
  for (const WantedCliff& cliff : in.cliffs)
    report.retests_wanted.push_back({.unit = fleet.units[cliff.unit].id,
                                     .node = in.units.tracks[cliff.unit].node,
                                     .metric = fleet.metrics[cliff.metric].name,
                                     .probe = fleet.metrics[cliff.metric].probe,
                                     .times = in.policy.retests.k,
                                     .tonight = true,
                                     .other_partner = cliff.pair});
  std::ranges::sort(report.retests_wanted, {}, [](const RetestWanted& one) { return std::tie(one.unit, one.metric); });
  for (const auto& word : words_of(UnitState{})) report.units[std::string(word.text)] = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (in.units.tracks[i].gone || in.units.tracks[i].first_known == kNever) continue;
    ++report.units[std::string(word_of(states[i]))];
    if (states[i] != UnitState::steady) report.states[fleet.units[i].id] = states[i];
  }
  for (const std::uint32_t metric : in.by_name()) {
    for (auto& one :
         fleet_findings(fleet.metrics[metric].name, in.metrics[metric].fleet, in.metrics[metric].min_effect, in.last))
      report.fleet.push_back(std::move(one));
  }
  report.groups = group_flags(report.flags);
  for (auto& one : common_causes(report.flags, report.as_of, nodes.size(), in.policy.fleet_ratio))
    report.fleet.push_back(std::move(one));
  report.not_judged = in.refused;
  std::ranges::sort(report.not_judged, {}, [](const NotJudged& one) { return std::tie(one.unit, one.metric); });
  return report;
}

}  // namespace assay::drift
