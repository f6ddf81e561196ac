// grouping: counts the elements that flags share, and makes one group of those that share one; see grouping.h.
#include "orchestrator/drift/grouping.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

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

}  // namespace

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

}  // namespace assay::drift
