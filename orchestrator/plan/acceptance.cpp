// acceptance: the probabilities of all kinds of cells, and their product for a plan. See acceptance.h.
#include "orchestrator/plan/acceptance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "orchestrator/plan/metered.h"
#include "orchestrator/plan/repeat.h"
#include "probes/core/portable_math.h"
#include "probes/core/statistics.h"

namespace assay::plan {
namespace {

/// Requirements of rates that are measured and judged alike.
struct RateKind {
  Repeats repeats;
  StatedUncertainty stated;
  double both = 1;       ///< a ratio has the scatter of two figures
  bool of_node = false;  ///< judges nodes and their parts, not pairs and groups
  auto operator<=>(const RateKind&) const = default;
};

/// All of a plan.
struct RateKinds {
  std::map<RateKind, double> requirements;
  std::size_t unplanned = 0;
  double risk = 0;

  [[nodiscard]] std::size_t count() const {
    double sum = 0;
    for (const auto& [kind, count] : requirements) sum += count * kind.repeats.cells();
    return static_cast<std::size_t>(sum);
  }
};

RateKinds kinds_of(const Plan& plan) {
  RateKinds kinds{.risk = normal_cdf(-plan.profile.guard_factor)};
  struct OfRequirement {
    double cells = 0;
    std::set<std::string_view> steps;
  };
  std::unordered_map<std::string_view, OfRequirement> of;
  for (const auto& cell : plan.coverage) {
    const Requirement& requirement = *plan.requirement(cell.requirement);
    if (!requirement.required) continue;
    const bool unchecked = requirement.when_told && site_lacks(plan.site, requirement);
    if (cell.step.empty() && !unchecked) ++kinds.unplanned;
    if (cell.step.empty() || !varies_between_runs(requirement.statistic)) continue;
    const site::Node* node = cell.subject.kind == "node" ? plan.site.node(cell.subject.id) : nullptr;
    const std::string kind(word_of(requirement.scope));
    OfRequirement& one = of[cell.requirement];
    one.cells += node == nullptr ? 1 : designed_parts(plan.profile, *node, kind).value_or(1);
    one.steps.insert(cell.step);
  }
  for (const auto& [id, one] : of) {
    const Requirement& requirement = *plan.requirement(id);
    const Description& probe = plan.probes.at(requirement.probe).description;
    const auto& metric = *probe.metric(requirement.metric);
    const double both = requirement.contrast ? std::sqrt(2.0) : 1;
    const bool upper = !requirement.limit.at_least;
    const auto steps = static_cast<double>(one.steps.size());
    const RateKind kind{.repeats = {.attempts = requirement.attempts,
                                    .more_attempts = requirement.more_attempts,
                                    .steps = one.steps.size(),
                                    .cells_per_step = one.cells / steps,
                                    .bound = requirement.contrast ? Bound::ratio
                                             : upper              ? Bound::upper
                                                                  : Bound::lower},
                        .stated = {.instrument = both * instrument_of(plan.site, requirement, probe),
                                   .between_runs = both * metric.between_runs,
                                   .reproducibility = requirement.reproducibility ? requirement.reproducibility->u : 0},
                        .both = both,
                        .of_node = !is_together(requirement.scope) && !is_of_meters(requirement.scope)};
    ++kinds.requirements[kind];
  }
  return kinds;
}

/// The chances of all kinds in fleets of one scatter.
class Chances {
 public:
  Chances(const RateKinds& kinds, double between_nodes, double between_runs) {
    for (const auto& [kind, count] : kinds.requirements) {
      const HealthyFleet fleet{.between_nodes = between_nodes, .between_runs = kind.both * between_runs};
      all_.push_back({.of_node = kind.of_node,
                      .requirements = count,
                      .cells = kind.repeats.cells(),
                      .chance = ChanceToPass(fleet, kind.repeats, kinds.risk, kind.stated)});
    }
  }

  /// Logarithm of the probability that all pass.
  [[nodiscard]] double all_pass(double margin) const {
    double sum = 0;
    for (const auto& one : all_) sum += one.requirements * one.chance.log_all(margin);
    return sum;
  }
  /// What `nodes` bad ones add to it: one figure of each is short, that with which a fleet with one of them is accepted
  /// most often.
  [[nodiscard]] double bad_nodes(double margin, double short_by, double nodes) const {
    if (all_.empty()) return 0;
    const bool some_of_node = std::ranges::any_of(all_, &KindChance::of_node);
    const auto added = [&](const KindChance& one, double count) {
      return one.chance.log_all(margin, short_by, std::min(count, one.cells)) - one.chance.log_all(margin);
    };
    if (easiest_ == nullptr) {
      double most = -std::numeric_limits<double>::infinity();
      for (const auto& one : all_) {
        if (!one.of_node && some_of_node) continue;
        const double of_one = added(one, 1);
        if (easiest_ != nullptr && of_one <= most) continue;
        most = of_one;
        easiest_ = &one;
      }
    }
    return std::min(added(*easiest_, nodes), 0.0);
  }

 private:
  struct KindChance {
    bool of_node;
    double requirements, cells;
    ChanceToPass chance;
  };

  std::vector<KindChance> all_;
  mutable const KindChance* easiest_ = nullptr;  ///< to be short in; of the margins that are asked first
};

double shown(double log_probability) { return to_12_digits(portable_exp(log_probability)); }

/// The fewest of `nodes`, drawn at random, of which a fleet with `bad` of them is accepted with at most `risk`: each
/// good node passes with `good` and each bad one with `short_of_it` as much, both as logarithms.
std::size_t nodes_to_draw(std::size_t nodes, std::size_t bad, double good, double short_of_it, double risk) {
  std::vector<double> factorials = {0};  // their logarithms
  for (std::size_t i = 1; i <= nodes; ++i)
    factorials.push_back(factorials.back() + portable_log(static_cast<double>(i)));
  const auto choose = [&](std::size_t n, std::size_t k) { return factorials[n] - factorials[k] - factorials[n - k]; };
  const auto accepted = [&](std::size_t drawn) {
    double sum = 0;
    for (std::size_t of_bad = 0; of_bad <= std::min(drawn, bad); ++of_bad) {
      if (drawn - of_bad > nodes - bad) continue;
      sum += portable_exp(choose(bad, of_bad) + choose(nodes - bad, drawn - of_bad) - choose(nodes, drawn) +
                          good * static_cast<double>(drawn) + short_of_it * static_cast<double>(of_bad));
    }
    return sum;
  };
  // More nodes are accepted less often, so halving finds the fewest.
  std::size_t low = 0, high = nodes + 1;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (middle <= nodes && accepted(middle) <= risk ? high : low) = middle;
    if (middle > nodes) break;
  }
  return high <= nodes ? high : 0;
}

/// The rows of the curve of all rates, in shares of the limit, and the numbers of bad nodes of the other.
constexpr double kMargins[] = {-0.05, -0.03, -0.02, -0.01, 0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.08};

std::vector<std::size_t> bad_counts(std::size_t nodes, std::size_t agreed) {
  std::set<std::size_t> counts = {0, 1, 2, 4, agreed};
  for (const double share : {0.05, 0.1, 0.2, 0.5, 1.0})
    counts.insert(static_cast<std::size_t>(std::ceil(share * static_cast<double>(nodes))));
  std::erase_if(counts, [&](std::size_t count) { return count > nodes; });
  return {counts.begin(), counts.end()};
}

/// Only both risks where no `curves` are wanted.
RiskReached reached(const RateKinds& kinds, std::size_t nodes, const AgreedRisk& agreed, bool curves) {
  const Chances chances(kinds, agreed.between_nodes, agreed.between_runs);
  RiskReached risk{.cells = kinds.count(), .unplanned = kinds.unplanned};
  risk.bad_nodes = std::clamp<std::size_t>(
      static_cast<std::size_t>(std::llround(agreed.bad_nodes * static_cast<double>(nodes))), 1, nodes);
  const double never = -std::numeric_limits<double>::infinity();
  const double good = kinds.unplanned > 0 ? never : chances.all_pass(agreed.beyond);
  const auto with = [&](std::size_t count) {
    const auto bad = static_cast<double>(count);
    return shown(good + (count == 0 ? 0 : chances.bad_nodes(agreed.beyond, agreed.short_by, bad)));
  };
  risk.vendor_risk = to_12_digits(1 - shown(good));
  risk.buyer_risk = with(risk.bad_nodes);
  if (!curves) return risk;
  for (const double margin : kMargins) {
    const double all = kinds.unplanned > 0 ? never : chances.all_pass(margin);
    risk.by_margin.push_back({.beyond = margin, .bad_nodes = 0, .accepted = shown(all)});
  }
  for (const std::size_t count : bad_counts(nodes, risk.bad_nodes))
    risk.by_bad_nodes.push_back({.beyond = agreed.beyond, .bad_nodes = count, .accepted = with(count)});
  if (kinds.unplanned == 0)
    risk.nodes_to_draw = nodes_to_draw(nodes, risk.bad_nodes, good / static_cast<double>(nodes),
                                       chances.bad_nodes(agreed.beyond, agreed.short_by, 1), agreed.buyer_risk);
  return risk;
}

bool keeps(const RiskReached& risk, const AgreedRisk& agreed) {
  return risk.unplanned == 0 && risk.vendor_risk <= agreed.vendor_risk && risk.buyer_risk <= agreed.buyer_risk;
}

/// The fewest attempts of every rate that keep the agreement: "5 attempts and 4 more"; empty if even the most do not.
std::string attempts_that_keep(const RateKinds& kinds, std::size_t nodes, const AgreedRisk& agreed) {
  for (const auto& [attempts, more] : {std::pair{3, 4}, {3, 10}, {5, 5}, {5, 10}, {8, 8}, {10, 10}}) {
    RateKinds other = kinds;
    other.requirements.clear();
    for (const auto& [kind, count] : kinds.requirements) {
      RateKind changed = kind;
      changed.repeats.attempts = std::max(kind.repeats.attempts, attempts);
      changed.repeats.more_attempts = std::max(kind.repeats.more_attempts, more);
      other.requirements[changed] += count;
    }
    if (keeps(reached(other, nodes, agreed, false), agreed))
      return fmt::format("{} attempts and {} more", attempts, more);
  }
  return "";
}

std::string per_cent(double share) {
  constexpr double kLeast = 1e-5, kMost = 0.9995;  // beyond which it would be shown as 0 or 1
  if (share > kMost && share < 1) return "over 99.9 %";
  return share < kLeast ? "under 0.001 %" : fmt::format("{:.3g} %", share * 100);
}

}  // namespace

AcceptanceChance acceptance_chance(const Plan& plan, const HealthyFleet& fleet) {
  const RateKinds kinds = kinds_of(plan);
  AcceptanceChance chance{.cells = kinds.count(), .unplanned = kinds.unplanned, .accepted = 0};
  if (kinds.unplanned == 0)
    chance.accepted = portable_exp(Chances(kinds, fleet.between_nodes, fleet.between_runs).all_pass(fleet.margin));
  return chance;
}

RiskReached reached_risk(const Plan& plan, const AgreedRisk& agreed) {
  return reached(kinds_of(plan), plan.site.nodes.size(), agreed, true);
}

std::optional<InputError> check_agreement(const Plan& plan) {
  if (!plan.agreed_risk) return std::nullopt;
  const AgreedRisk& agreed = *plan.agreed_risk;
  if (auto checked = check_agreed_risk(agreed, "--risk"); !checked) return checked.error();
  const RateKinds kinds = kinds_of(plan);
  const std::size_t nodes = plan.site.nodes.size();
  const RiskReached risk = reached(kinds, nodes, agreed, false);
  if (risk.cells == 0)
    return InputError{"--risk", "the plan has no required rate that the agreement is of",
                      "hours under load are agreed on by --stability"};
  if (keeps(risk, agreed)) return std::nullopt;
  if (risk.unplanned > 0)
    return InputError{"--risk",
                      fmt::format("nothing measures {} required cells, so no fleet is accepted", risk.unplanned), ""};
  const std::string attempts = attempts_that_keep(kinds, nodes, agreed);
  return InputError{
      "--risk",
      fmt::format("this plan does not keep it: the vendor's fleet is refused with {}, the buyer's accepted with {}",
                  per_cent(risk.vendor_risk), per_cent(risk.buyer_risk)),
      attempts.empty() ? "no number of attempts keeps it: agree on points that are further apart, or on less scatter"
                       : fmt::format("{} of every required rate keep it (`repeat` of the profile)", attempts)};
}

std::string risk_text(const Plan& plan) {
  if (!plan.agreed_risk) return "";
  const AgreedRisk& agreed = *plan.agreed_risk;
  const RiskReached risk = reached_risk(plan, agreed);
  std::string text = fmt::format(
      "agreed risks, {} required rates, {:g} % between nodes and {:g} % between runs:\n"
      "  all rates {:g} % beyond their limits: refused with {} (agreed: at most {:g} %)\n"
      "  {} of {} nodes {:g} % short in one rate: accepted with {} (agreed: at most {:g} %)\n",
      risk.cells, agreed.between_nodes * 100, agreed.between_runs * 100, agreed.beyond * 100,
      per_cent(risk.vendor_risk), agreed.vendor_risk * 100, risk.bad_nodes, plan.site.nodes.size(),
      agreed.short_by * 100, per_cent(risk.buyer_risk), agreed.buyer_risk * 100);
  if (risk.nodes_to_draw > 0 && risk.nodes_to_draw < plan.site.nodes.size())
    text += fmt::format("  {} {} drawn at random would keep the buyer's risk\n", risk.nodes_to_draw,
                        risk.nodes_to_draw == 1 ? "node" : "nodes");
  text += "  all rates beyond their limits by, accepted with:";
  for (const auto& point : risk.by_margin)
    text += fmt::format("  {:g} %: {}", point.beyond * 100, per_cent(point.accepted));
  text += "\n  nodes that are short in one rate, accepted with:";
  for (const auto& point : risk.by_bad_nodes)
    text += fmt::format("  {}: {}", point.bad_nodes, per_cent(point.accepted));
  return text + "\n";
}

}  // namespace assay::plan
