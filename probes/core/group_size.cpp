// group_size: rules over products of parameters, and the nearest numbers that keep them.
#include "probes/core/group_size.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "probes/core/products.h"

namespace assay {
namespace {

constexpr std::size_t kMostLookedAt = 65'536;  // more nodes than any cluster has

/// A rule with its numbers, which do not depend on how many nodes there are.
struct Demand {
  SizeDemand processes = SizeDemand::at_least;
  double of = 0, each = 1;
  const OwnGroupSizeRule* rule = nullptr;

  [[nodiscard]] bool kept_by(std::size_t nodes) const {
    const double all = each * static_cast<double>(nodes);
    switch (processes) {
      case SizeDemand::at_least:
        return all >= of;
      case SizeDemand::at_most:
        return all <= of;
      case SizeDemand::multiple_of:
        return std::fmod(all, of) == 0;
      case SizeDemand::exactly:
        return all == of;
    }
    return true;
  }
};

std::vector<Demand> demands_of(const std::vector<OwnGroupSizeRule>& rules, const Values& parameters) {
  std::vector<Demand> demands;
  for (const auto& rule : rules) {
    if (!holds(rule.when, parameters)) continue;
    const double of = product_of(rule.of, parameters, 0), each = product_of(rule.each, parameters, 0);
    if (of > 0 && each > 0) demands.push_back({.processes = rule.processes, .of = of, .each = each, .rule = &rule});
  }
  return demands;
}

const char* broken_by(SizeDemand demand) {
  switch (demand) {
    case SizeDemand::at_least:
      return "fewer than";
    case SizeDemand::at_most:
      return "more than";
    case SizeDemand::multiple_of:
      return "no multiple of";
    case SizeDemand::exactly:
      return "not";
  }
  return "";
}

std::string text_of(const Demand& broken, std::size_t nodes) {
  const std::string all = broken.each == 1 ? fmt::format("{} nodes", nodes)
                                           : fmt::format("{} nodes x {:g} processes = {:g}", nodes, broken.each,
                                                         broken.each * static_cast<double>(nodes));
  return fmt::format("{} are {} {:g}: {}", all, broken_by(broken.processes), broken.of, broken.rule->reason);
}

}  // namespace

std::optional<UnusableSize> unusable_size(const std::vector<OwnGroupSizeRule>& rules, const Values& parameters,
                                          std::size_t nodes) {
  const auto demands = demands_of(rules, parameters);
  const auto keeps = [&](std::size_t some) {
    return std::ranges::all_of(demands, [&](const Demand& one) { return one.kept_by(some); });
  };
  const auto broken = std::ranges::find_if(demands, [&](const Demand& one) { return !one.kept_by(nodes); });
  if (broken == demands.end()) return std::nullopt;
  UnusableSize unusable{.reason = text_of(*broken, nodes), .fewer = std::nullopt, .greater = std::nullopt};
  for (std::size_t some = nodes; some-- > 1 && !unusable.fewer;) {
    if (keeps(some)) unusable.fewer = some;
  }
  for (std::size_t some = nodes + 1; some <= nodes + kMostLookedAt && !unusable.greater; ++some) {
    if (keeps(some)) unusable.greater = some;
  }
  return unusable;
}

std::string group_size_rule_problem(const OwnGroupSizeRule& rule, const std::vector<std::string>& parameters) {
  if (auto problem = when_problem(rule.when, parameters); !problem.empty()) return "when: " + problem;
  if (auto problem = product_problem(rule.of, parameters); !problem.empty()) return "of: " + problem;
  if (auto problem = product_problem(rule.each, parameters); !problem.empty()) return "each: " + problem;
  return rule.reason.empty() ? "reason: is empty" : "";
}

}  // namespace assay
