// decide: stop rules, then each single node, then the caps.
#include "orchestrator/drain/decide.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::drain {
namespace {

using drift::UnitState;

int share_of(double ratio, std::size_t nodes) {
  return std::max(1, static_cast<int>(std::floor(ratio * static_cast<double>(nodes) + 1e-9)));
}

std::string leaf_of(const site::Site& site, const std::string& name) {
  const site::Node* node = site.node(name);
  return node == nullptr ? "" : node->leaf;
}

/// Nodes that were flagged in each night, and may be acted on or were.
std::map<drift::Date, std::set<std::string>> flagged_by_night(const drift::DriftReport& report) {
  std::map<drift::Date, std::set<std::string>> nodes;
  for (const auto& flag : report.flags) {
    if (flag.state == UnitState::flagged || flag.state == UnitState::confirmed) nodes[flag.raised].insert(flag.node);
  }
  return nodes;
}

/// How many nodes a night sees: all of the site, or as many as tonight's share of units suggests.
std::size_t nodes_of_night(const Situation& at) {
  const auto& seen = at.report.coverage;
  const std::size_t all = at.site.nodes.size();
  if (seen.units == 0 || seen.measured >= seen.units) return all;
  return std::max<std::size_t>(1, all * seen.measured / seen.units);
}

std::string alarm_of(const Situation& at) {
  if (at.report.simulated) return "the report is of a simulated history: nothing is done with it";
  if (at.site.nodes.empty()) return "the site has no nodes";
  for (const auto& finding : at.report.fleet) {
    if (finding.kind == drift::FleetFinding::Kind::many_flags)
      return "fleet: " + (finding.words.empty() ? std::string("many flags at once") : finding.words);
  }
  const std::size_t seen = nodes_of_night(at);
  const int most = share_of(at.policy.fleet_ratio, seen);
  for (const auto& [night, nodes] : flagged_by_night(at.report)) {
    if (static_cast<int>(nodes.size()) <= most) continue;
    return fmt::format(
        "fleet: {} of {} nodes were flagged in the night of {}, more than {}: look for a common cause (tool, facility, "
        "rollout) first",
        nodes.size(), seen, drift::date_text(night), most);
  }
  return "";
}

/// The common element larger than a node that the flag `id` belongs to; empty if there is none.
std::string common_element(const drift::DriftReport& report, const std::string& id) {
  for (const auto& group : report.groups) {
    const bool larger = !group.element.starts_with("node ") && !group.element.starts_with("unit ");
    if (!larger || std::ranges::find(group.flags, id) == group.flags.end()) continue;
    std::set<std::string> nodes;
    for (const auto& flag : report.flags) {
      if (std::ranges::find(group.flags, flag.id) != group.flags.end()) nodes.insert(flag.node);
    }
    if (nodes.size() > 1) return group.element;
  }
  return "";
}

/// Whether it is of nodes that worked together, such as a path between tenants: the history has such a figure at the
/// first of them, which is no more at fault than the others.
bool is_of_several(const drift::Flag& flag) { return flag.kind == "group" || flag.kind == "cluster"; }

/// The confirmed flags, the worst of each node, the worst node first.
std::vector<const drift::Flag*> wanted(const drift::DriftReport& report) {
  std::map<std::string, const drift::Flag*> by_node;
  const auto worse = [](const drift::Flag* a, const drift::Flag* b) {
    return std::tuple(is_of_several(*a), a->ratio, a->raised, a->node, a->id) <
           std::tuple(is_of_several(*b), b->ratio, b->raised, b->node, b->id);
  };
  for (const auto& flag : report.flags) {
    if (flag.state != UnitState::confirmed && flag.state != UnitState::lemon && flag.state != UnitState::draining)
      continue;
    const drift::Flag*& worst = by_node[flag.node];
    if (worst == nullptr || worse(&flag, worst)) worst = &flag;
  }
  std::vector<const drift::Flag*> all;
  for (const auto& [node, flag] : by_node) all.push_back(flag);
  std::ranges::sort(all, worse);
  return all;
}

/// Why a node is not touched; nothing if only the caps decide.
std::optional<std::string> hands_off(const Situation& at, const drift::Flag& flag) {
  if (at.site.node(flag.node) == nullptr) return "it is not a node of the site";
  if (is_of_several(flag)) return fmt::format("{} is a figure of several nodes, and accuses none of them", flag.metric);
  const auto now = at.now.find(flag.node);
  if (now == at.now.end()) return "the scheduler does not know it";
  if (const auto own = at.account.drained().find(flag.node); own != at.account.drained().end())
    return fmt::format("drained by us since {} ({})", own->second.time, own->second.flag);
  if (now->second.drained)
    return fmt::format("already drained, not by assay{}{}", now->second.reason.empty() ? "" : ": ", now->second.reason);
  if (now->second.down) return "it is down: that is a case of its own";
  if (at.account.is_lifted(flag.node, flag.id))
    return "it was put back by other means after a drain for this flag: it is not drained for it again";
  if (const std::string element = common_element(at.report, flag.id); !element.empty())
    return fmt::format("it shares its flag with other nodes: look at {} first", element);
  return std::nullopt;
}

/// Nodes that are out of service for any reason, all and by leaf.
struct Drained {
  int all = 0;
  std::map<std::string, int> by_leaf;
};

Drained drained_now(const Situation& at) {
  Drained drained;
  for (const auto& node : at.site.nodes) {
    const auto now = at.now.find(node.name);
    if (now == at.now.end() || (!now->second.drained && !now->second.down)) continue;
    ++drained.all;
    if (!node.leaf.empty()) ++drained.by_leaf[node.leaf];
  }
  return drained;
}

/// Why `leaf` gets no further drain; nothing if it may.
std::optional<std::string> cap_reached(const Situation& at, const std::string& leaf, int allowed,
                                       const Drained& drained) {
  const int total = share_of(at.policy.caps.total_ratio, at.site.nodes.size());
  if (allowed <= 0)
    return fmt::format("the cap of tonight ({:g} of the nodes and at most {}) is used up", at.policy.caps.ratio,
                       at.policy.caps.count);
  if (drained.all >= total)
    return fmt::format("{} nodes are out of service already, at most {} may be", drained.all, total);
  const auto found = drained.by_leaf.find(leaf);
  if (!leaf.empty() && found != drained.by_leaf.end() && found->second >= at.policy.caps.per_leaf)
    return fmt::format("{} nodes of leaf {} are out of service already", found->second, leaf);
  return std::nullopt;
}

bool is_lemon(const Situation& at, const std::string& node) {
  return at.account.drains_of(node, at.report.as_of, kLemonDays) >= kLemonDrains ||
         std::ranges::any_of(at.report.flags, [&](const drift::Flag& flag) {
           return flag.node == node && flag.state == UnitState::lemon;
         });
}

/// Why the drain of `node` continues; nothing if it ends.
std::optional<std::string> stays(const Situation& at, const OwnDrain& own, const std::vector<CleanSweep>& sweeps) {
  const auto now = at.now.find(own.node);
  if (now == at.now.end()) return "the scheduler does not know it";
  if (!now->second.drained || now->second.reason != own.reason) return "its reason was changed by another user";
  if (is_lemon(at, own.node))
    return fmt::format("a lemon: drained {} times in {} days; people decide",
                       at.account.drains_of(own.node, at.report.as_of, kLemonDays), kLemonDays);
  if (now->second.busy) return "jobs still run on it";
  for (const auto& flag : at.report.flags) {
    if (flag.node == own.node && flag.state != UnitState::watch)
      return fmt::format("its flag {} is {}", flag.id, flag.state);
  }
  for (const auto& one : at.report.coverage.overdue) {
    if (one.node == own.node && one.last_state == drift::kMissing)
      return fmt::format("its part {} is missing", one.unit);
  }
  int clean_sweeps = 0;
  std::set<std::string> counted;  // records: a copy of a sweep under another name is no other sweep
  std::set<std::vector<std::string>> partners;
  for (const auto& sweep : sweeps) {
    const bool clean = std::ranges::find(sweep.clean, own.node) != sweep.clean.end();
    if (!clean || sweep.budget_s < kCleanBudget_s || sweep.started <= own.time || sweep.started > utc_text(at.time))
      continue;
    const auto records = sweep.records.find(own.node);
    if (records == sweep.records.end() ||
        std::ranges::any_of(records->second, [&](const std::string& one) { return counted.contains(one); }))
      continue;
    counted.insert(records->second.begin(), records->second.end());
    ++clean_sweeps;
    if (const auto met = sweep.partners.find(own.node); met != sweep.partners.end()) partners.insert(met->second);
  }
  if (clean_sweeps < kCleanSweeps)
    return fmt::format("{} of {} clean sweeps of 15 minutes since its drain", clean_sweeps, kCleanSweeps);
  if (partners.size() == 1) return "both clean sweeps had the same partner";
  return std::nullopt;
}

}  // namespace

Decisions decide_drains(const Situation& at) {
  Decisions decisions{.alarm = alarm_of(at)};
  Drained drained = drained_now(at);
  decisions.allowed = std::max(0, std::min(share_of(at.policy.caps.ratio, at.site.nodes.size()), at.policy.caps.count) -
                                      at.account.drains_of(at.report.as_of, at.time));
  int allowed = decisions.alarm.empty() ? decisions.allowed : 0;
  for (const auto* flag : wanted(at.report)) {
    Decision one{.node = flag->node, .flag = flag->id};
    one.reason = reason_text(
        {.prefix = at.policy.reason_prefix, .check = flag->metric, .flag = flag->id, .date = at.report.as_of});
    if (const auto why = hands_off(at, *flag)) {
      one.why = *why;
    } else if (!decisions.alarm.empty()) {
      one.ruling = Ruling::queue;
      one.why = "nothing is drained while there is an alarm";
    } else if (const std::string leaf = leaf_of(at.site, flag->node);
               const auto cap = cap_reached(at, leaf, allowed, drained)) {
      one.ruling = Ruling::queue;
      one.why = *cap;
    } else {
      one.ruling = Ruling::drain;
      one.why =
          flag->words.empty() ? fmt::format("{} is at {:.3g} of its own", flag->metric, flag->ratio) : flag->words;
      if (const auto action = drift::action_of(*flag); !action.says.empty())
        one.why += fmt::format(" Action: {}.", short_words(action));
      --allowed;
      ++drained.all;
      ++drained.by_leaf[leaf];
    }
    decisions.nodes.push_back(std::move(one));
  }
  std::ranges::stable_sort(decisions.nodes, {}, [](const Decision& one) { return one.ruling; });
  return decisions;
}

Decisions decide_releases(const Situation& at, const std::vector<CleanSweep>& sweeps) {
  Decisions decisions;
  if (at.report.simulated) {
    decisions.alarm = alarm_of(at);
    return decisions;
  }
  for (const auto& [node, own] : at.account.drained()) {
    const auto why = stays(at, own, sweeps);
    decisions.nodes.push_back({.node = node,
                               .flag = own.flag,
                               .ruling = why ? Ruling::leave : Ruling::release,
                               .reason = own.reason,
                               .why = why.value_or("two clean sweeps, and no flag is open")});
  }
  return decisions;
}

std::string text_of(const Decisions& decisions, drift::Mode mode) {
  std::map<Ruling, int> counts;
  for (const auto& one : decisions.nodes) ++counts[one.ruling];
  std::string text =
      fmt::format("{} to drain, {} to release, {} queued, {} left alone (mode {})\n", counts[Ruling::drain],
                  counts[Ruling::release], counts[Ruling::queue], counts[Ruling::leave], mode);
  if (!decisions.alarm.empty()) text += fmt::format("ALARM: {}\n", harmless(decisions.alarm));
  for (const auto& one : decisions.nodes)
    text += fmt::format("  {:<8} {} {}: {}\n", one.ruling, harmless(one.node), harmless(one.flag), harmless(one.why));
  return text;
}
namespace {

constexpr std::size_t kLongestCheck = 60;

constexpr std::string_view kPunctuation = "._-";

}  // namespace

std::string reason_text(const Reason& reason) {
  std::string check = reason.check.substr(0, kLongestCheck);
  std::ranges::replace_if(
      check,
      [](char c) {
        return !has_only({&c, 1}, kPunctuation);
      },
      '-');
  std::string date = drift::date_text(reason.date);
  std::erase(date, '-');
  return fmt::format("{}:{}:{}:{}", reason.prefix, check, reason.flag, date);
}

}  // namespace assay::drain
