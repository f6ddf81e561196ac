// references: resolves `of` of a limit to a number; only samples that are fit and meet their own conditions are used.
//
// Fleets. The reference is the median over all subjects of a requirement, in all steps; of pairs the 90th percentile,
// because a pair is slow when either end is (kGoodPairs; docs/DECISIONS.md, "Pairs are held against their 90th
// percentile"). Whether a fleet may be a reference at all is checked on its members, nodes or parts of one. A member's
// figure is the best that it takes part in: one slow node makes all of its pairs slow, but its partners are fast with
// others, so the best of each shows the member and not its worst partner. The fleet is no measure when
//   - two or more members, and over 1 % of them, are over 10 % from the reference (kFarOff, kMostFarOff), unless all
//     are parts of one node among kSmallestFleet or more, whose fault is its own; or
//   - the median absolute deviation of the members is over 3 % of their median (kWidestSpread).
// Both bounds are wider where the limit's own tolerance is: half of it, and 0.15 of it. Cells that would pass are then
// open, cells that fail still fail (docs/FORMATS.md, "Fleets").
#include "orchestrator/judge/cells/references.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "orchestrator/judge/cells/conditions.h"
#include "orchestrator/judge/cells/subject_count.h"
#include "orchestrator/plan/derived.h"
#include "probes/core/statistics.h"

namespace assay::judge {
namespace {

/// Standard errors under normality, in sigma / sqrt(n) (Kendall & Stuart, vol. 1, 10.11): of the median, and of the
/// 90th percentile, sqrt(0.9 x 0.1) over the normal density there.
constexpr double kErrorOfMedian = 1.2533, kErrorOfP90 = 1.7094;

/// A pair is slow when either end is, so the median of pairs breaks down when 29 % of the nodes are slow. Half of the
/// pairs are of good nodes only as long as fewer than that are bad; a tenth, as long as 68 % are not.
constexpr double kGoodPairs = 0.9;

/// Members this far from the reference, as a share of it, or of the limit's own tolerance if that is wide.
constexpr double kFarOff = 0.1, kFarOffOfTolerance = 0.5;
/// The most members, as a share, that may be that far off, if there are at least two.
constexpr double kMostFarOff = 0.01;
/// The largest median absolute deviation of members from their median, alike.
constexpr double kWidestSpread = 0.03, kWidestSpreadOfTolerance = 0.15;

/// The parts of the fleet that `subject` of `step` is made of: the nodes that worked together, or the parts of one node
/// ("GPU-a>GPU-b").
std::vector<std::string> members_of(const plan::Step& step, const Subject& subject) {
  if (step.nodes.size() > 1 || subject.kind == "node") return step.nodes;
  std::vector<std::string> members;
  std::string_view rest = subject.id;
  while (!rest.empty()) {
    const auto end = rest.find('>');
    members.push_back(fmt::format("{} {}", step.nodes.front(), rest.substr(0, end)));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  return members;
}

double tolerance_of(const plan::Limit& limit) {
  double tolerance = limit.at_least ? std::abs(1 - *limit.at_least) : 0;
  if (limit.at_most) tolerance = std::max(tolerance, std::abs(*limit.at_most - 1));
  return tolerance;
}

std::optional<double> figure_in(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

/// The condition `name` of `record`, of `subject` or its host, as a number.
std::optional<double> told_in(const Record& record, std::string_view name, const Subject& subject) {
  for (const auto& condition : record.conditions) {
    if (condition.name != name || !is_about(condition, subject, record)) continue;
    return figure_in(condition.value);
  }
  return std::nullopt;
}

NoReference untold(const plan::DerivedFigure& figure) {
  return {.reason = fmt::format("This machine does not report {} ({}).", figure.parts.front(), figure.meaning),
          .untold = true};
}

/// A figure of the conditions of one record.
double computed(const plan::DerivedFigure& figure, const std::vector<double>& parts) {
  if (figure.name == "drive_patience") return parts.front() != 0 ? plan::kDiskPatience_s : plan::kFlashPatience_s;
  if (figure.name == "tcp_rate") return std::min(parts.front(), plan::kFewStreams);
  double product = 1;
  for (const double part : parts) product *= part;
  return product;
}

}  // namespace

References::References(const plan::Plan& plan, Demands& demands,
                       std::function<StepEvidence(const plan::Step&)> evidence_of)
    : plan_(plan), demands_(demands), evidence_of_(std::move(evidence_of)) {}

void References::take() {
  take_fleets();
  take_smallest();
}

void References::take(const References& other) {
  fleets_ = other.fleets_;
  smallest_ = other.smallest_;
}

const Description& References::probe_of(const plan::Requirement& requirement) const {
  return plan_.probes.at(requirement.probe).description;
}

std::expected<ReferenceValue, NoReference> References::of(const plan::Requirement& requirement, const plan::Step& step,
                                                          const Subject& subject, const Pool& pool) {
  switch (requirement.limit.reference) {
    case plan::Reference::none:
      return ReferenceValue{};
    case plan::Reference::peak:
      return ReferenceValue{.value = plan_.profile.peaks.at(requirement.limit.name).value};
    case plan::Reference::best_sample: {
      const bool larger = probe_of(requirement).metric(requirement.metric)->better != "lower";
      return ReferenceValue{.value = larger ? std::ranges::max(pool.samples) : std::ranges::min(pool.samples)};
    }
    case plan::Reference::metric:
      return metric_of(requirement, subject, pool);
    case plan::Reference::fleet_median:
      return fleet_of(requirement);
    case plan::Reference::smallest_group:
    case plan::Reference::smallest_group_by_nodes:
      return smallest_of(requirement, step);
    case plan::Reference::derived:
      return derived_of(requirement.limit.name, step, subject, pool);
  }
  return std::unexpected(NoReference{.reason = "The reference of the limit is unknown."});
}

std::expected<ReferenceValue, NoReference> References::metric_of(const plan::Requirement& requirement,
                                                                 const Subject& subject, const Pool& pool) const {
  std::vector<const Measurement*> attempts;
  for (const Record* record : pool.records) {
    for (const auto& measured : record->measurements) {
      if (measured.metric == requirement.limit.name && measured.subject == subject && measured.at == requirement.at)
        attempts.push_back(&measured);
    }
  }
  const auto& metric = *probe_of(requirement).metric(requirement.limit.name);
  const auto value = reference_of(attempts, plan::Statistic::median, metric, {});
  if (value) return *value;
  return std::unexpected(
      NoReference{.reason = fmt::format("The reference {} has too few samples.", requirement.limit.name)});
}

/// The reference from these attempts, with their own scatter.
std::optional<ReferenceValue> References::reference_of(std::span<const Measurement* const> attempts,
                                                       plan::Statistic statistic, const Description::OwnMetric& metric,
                                                       const std::optional<plan::Reproducibility>& stated) const {
  constexpr double kNoBounds = 0.5;
  if (attempts.empty()) return std::nullopt;
  const auto estimate = estimate_attempts(attempts, statistic, {plan_.profile.confidence, kNoBounds});
  if (!estimate) return std::nullopt;
  return reference_from(*estimate, own_scatter(*estimate, stated_scatter(metric, stated)), metric.instrument);
}

std::optional<FitPool> References::fit(const plan::Requirement& requirement, const plan::Step& step,
                                       const Subject& subject, const StepEvidence& found, const Pool& pool) const {
  FitPool fit = fit_part(demands_, step, requirement, probe_of(requirement), subject, found, pool);
  if (unfit(step, requirement, fit, found)) return std::nullopt;
  const auto seen =
      demands_.check(step, requirement, probe_of(requirement), subject, fit.pool.records, fit.pool.others.list());
  if (!all_met(seen)) return std::nullopt;
  return fit;
}

/// Medians of every subject of the requirements that are judged by their fleet.
void References::take_fleets() {
  std::map<std::string_view, const plan::Requirement*> wanted;
  for (const auto& requirement : plan_.profile.requirements) {
    if (requirement.limit.reference == plan::Reference::fleet_median) wanted.emplace(requirement.id, &requirement);
  }
  if (wanted.empty()) return;
  for (const auto& step : plan_.steps) {
    if (std::ranges::none_of(step.requirements, [&](const std::string& id) { return wanted.contains(id); })) continue;
    const StepEvidence found = evidence_of_(step);
    if (found.broken) continue;
    for (const auto& id : step.requirements) {
      if (wanted.contains(id)) take_medians(*wanted.at(id), step, found);
    }
  }
  for (auto& [id, fleet] : fleets_) settle(*wanted.at(id), fleet);
}

void References::take_medians(const plan::Requirement& requirement, const plan::Step& step, const StepEvidence& found) {
  const bool larger = probe_of(requirement).metric(requirement.metric)->better != "lower";
  const auto pools = pooled(found, requirement, probe_of(requirement));
  // A node that shows more than it has would outvote the others.
  if (const auto most = most_subjects(plan_, requirement, step); most && pools.size() > *most) return;
  Fleet& fleet = fleets_[requirement.id];
  auto& of_step = fleet.of_steps.emplace_back();
  for (const auto& [subject, pool] : pools) {
    const auto usable = fit(requirement, step, subject, found, pool);
    if (!usable) continue;
    const double value = median(usable->pool.samples);
    of_step.push_back(value);
    for (const auto& member : members_of(step, subject)) {
      const auto [known, is_new] = fleet.best.emplace(member, value);
      if (!is_new && (value > known->second) == larger) known->second = value;
    }
  }
}

void References::settle(const plan::Requirement& requirement, Fleet& fleet) {
  if (fleet.best.size() < kSmallestFleet) return;
  const std::vector<double> medians = judge::fleet_of(fleet.of_steps);
  std::vector<double> effects;
  for (const auto& [member, value] : fleet.best) effects.push_back(value);
  const bool of_pairs = requirement.scope == plan::JudgedScope::pair;
  const bool larger = probe_of(requirement).metric(requirement.metric)->better != "lower";
  const double value = of_pairs ? percentile(medians, larger ? kGoodPairs : 1 - kGoodPairs) : median(medians);
  // Bad pairs would widen the spread of pairs; the best of each node shows how alike the nodes are.
  const double sigma = robust_sigma(of_pairs ? effects : medians);
  const double error =
      (of_pairs ? kErrorOfP90 : kErrorOfMedian) * sigma / std::sqrt(static_cast<double>(medians.size()));
  fleet.reference = ReferenceValue{.value = value, .uncertainty = error};
  if (!(value > 0)) return;
  const double tolerance = tolerance_of(requirement.limit);
  const double far = std::max(kFarOff, kFarOffOfTolerance * tolerance);
  const double widest = std::max(kWidestSpread, kWidestSpreadOfTolerance * tolerance);
  std::vector<std::string> off;
  std::set<std::string> nodes, nodes_off;
  for (const auto& [member, effect] : fleet.best) {
    const std::string& node = *nodes.insert(member.substr(0, member.find(' '))).first;
    if (std::abs(effect / value - 1) <= far) continue;
    off.push_back(member);
    nodes_off.insert(node);
  }
  const double spread = median_absolute_deviation(effects) / median(effects);
  const double share = static_cast<double>(off.size()) / static_cast<double>(effects.size());
  if (off.size() >= 2 && share > kMostFarOff && (nodes_off.size() > 1 || nodes.size() < kSmallestFleet)) {
    constexpr std::size_t kMostNamed = 5;
    std::string names;
    for (std::size_t i = 0; i < std::min(off.size(), kMostNamed); ++i) names += (i == 0 ? "" : ", ") + off[i];
    if (off.size() > kMostNamed) names += fmt::format(" and {} more", off.size() - kMostNamed);
    fleet.common_cause = fmt::format(
        "Common cause: {} of {} members of the fleet are more than {:.3g} % from its reference, so it is no measure of "
        "the others: {}.",
        off.size(), effects.size(), far * 100, names);
  } else if (spread > widest) {
    fleet.common_cause = fmt::format(
        "Common cause: the members of the fleet are {:.2g} % apart (median absolute deviation; {:.2g} % at most), so "
        "its reference is no measure of any.",
        spread * 100, widest * 100);
  }
}

std::expected<ReferenceValue, NoReference> References::fleet_of(const plan::Requirement& requirement) const {
  const auto known = fleets_.find(requirement.id);
  if (known != fleets_.end() && known->second.reference) return *known->second.reference;
  const auto* earlier = plan_.earlier_fleet.of(requirement.id);
  if (earlier != nullptr && earlier->members >= kSmallestFleet)
    return ReferenceValue{.value = earlier->value, .uncertainty = earlier->uncertainty};
  return std::unexpected(
      NoReference{.reason = fmt::format("Needs {} {}s for comparison; only {} took part under the required conditions.",
                                        kSmallestFleet, requirement.scope,
                                        known == fleets_.end() ? 0 : known->second.best.size())});
}

std::string References::common_cause(const plan::Requirement& requirement) const {
  if (requirement.limit.reference != plan::Reference::fleet_median) return "";
  const auto known = fleets_.find(requirement.id);
  return known == fleets_.end() ? "" : known->second.common_cause;
}

/// The figure of the smallest of growing groups, for each requirement that uses it as reference and for each rail. With
/// a knee those of all of them: the plateau of a group is the best of the smaller ones.
void References::take_smallest() {
  std::map<SmallestKey, std::map<std::size_t, const plan::Step*>> growing;
  for (const auto& step : plan_.steps) {
    for (const auto& id : step.requirements) {
      const plan::Requirement& one = *plan_.requirement(id);
      if (!plan::is_of_smallest(one.limit.reference)) continue;
      auto& groups = growing[{id, step.rail}];
      groups.emplace(step.nodes.size(), &step);
      if (!one.knee) groups.erase(std::next(groups.begin()), groups.end());
    }
  }
  const auto take = [&](const SmallestKey& key, const plan::Step& step) {
    const StepEvidence found = evidence_of_(step);
    const plan::Requirement& requirement = *plan_.requirement(key.first);
    const auto pools = pooled(found, requirement, probe_of(requirement));
    if (found.broken || pools.size() != 1) return;
    const auto& [subject, pool] = *pools.begin();
    if (pool.records.size() != found.records.size()) return;
    const auto usable = fit(requirement, step, subject, found, pool);
    if (!usable) return;
    const auto& metric = *probe_of(requirement).metric(requirement.metric);
    if (const auto value =
            reference_of(usable->pool.measured, requirement.statistic, metric, requirement.reproducibility))
      smallest_[key].push_back({.reference = *value, .nodes = step.nodes.size()});
  };
  for (const auto& [key, groups] : growing) {
    for (const auto& [size, step] : groups) take(key, *step);
  }
}

std::expected<ReferenceValue, NoReference> References::smallest_of(const plan::Requirement& requirement,
                                                                   const plan::Step& step) const {
  const auto known = smallest_.find({requirement.id, step.rail});
  const bool by_nodes = requirement.limit.reference == plan::Reference::smallest_group_by_nodes;
  std::optional<ReferenceValue> best;
  for (const auto& [group, nodes] : known == smallest_.end() ? std::vector<Smallest>{} : known->second) {
    if (requirement.knee && nodes >= step.nodes.size()) break;
    const double times = by_nodes ? static_cast<double>(step.nodes.size()) / static_cast<double>(nodes) : 1;
    if (!best || group.value * times > best->value)
      best = ReferenceValue{group.value * times, group.uncertainty * times, group.degrees};
  }
  if (!best) {
    return std::unexpected(
        NoReference{.reason = "The smallest of the growing groups was not measured under the required conditions."});
  }
  if (const std::string& cap = requirement.limit.capped_by; by_nodes && !cap.empty()) {
    const double ceiling = plan_.profile.peaks.at(cap).value;
    if (best->value > ceiling) best = ReferenceValue{.value = ceiling};
  }
  return *best;
}

std::expected<double, NoReference> References::inventory_of(const std::string& node, std::string_view metric) {
  auto known = inventories_.find(node);
  if (known == inventories_.end()) {
    known = inventories_.emplace(node, std::nullopt).first;
    const auto step = std::ranges::find_if(plan_.steps, [&](const plan::Step& one) {
      return one.probe == plan::kInventoryProbe && one.nodes.size() == 1 && one.nodes.front() == node;
    });
    if (step != plan_.steps.end()) {
      StepEvidence found = evidence_of_(*step);
      if (!found.broken && !found.records.empty()) known->second = std::move(found.records.front());
    }
  }
  if (!known->second) {
    return std::unexpected(NoReference{
        .reason = fmt::format("{} did not measure {}, which the limit refers to.", plan::kInventoryProbe, node)});
  }
  for (const auto& measured : known->second->measurements) {
    if (measured.metric == metric && measured.subject.kind == "node") return std::ranges::min(measured.samples);
  }
  return std::unexpected(NoReference{.untold = true});
}

std::expected<ReferenceValue, NoReference> References::derived_of(const std::string& name, const plan::Step& step,
                                                                  const Subject& subject, const Pool& pool) {
  const plan::DerivedFigure& figure = *plan::derived_figure(name);
  std::optional<double> least;
  const auto take = [&](double value) { least = std::min(least.value_or(value), value); };
  if (figure.from == plan::DerivedFrom::inventory) {
    auto value = inventory_of(step.nodes.front(), figure.parts.front());
    if (!value) return std::unexpected(value.error().untold ? untold(figure) : value.error());
    take(*value);
  } else if (figure.from == plan::DerivedFrom::metric) {
    for (const Record* record : pool.records) {
      for (const auto& measured : record->measurements) {
        if (measured.metric == figure.parts.front() && measured.subject == subject)
          take(std::ranges::min(measured.samples));
      }
    }
  } else {
    std::vector<const Record*> ranks = pool.records;
    ranks.insert(ranks.end(), pool.others.begin(), pool.others.end());
    for (const Record* record : ranks) {
      if (is_idle(*record)) continue;
      std::vector<double> parts;
      for (const auto part : figure.parts) {
        const auto value = told_in(*record, part, subject);
        if (!value) return std::unexpected(untold(figure));
        parts.push_back(*value);
      }
      take(computed(figure, parts));
    }
  }
  if (!least) return std::unexpected(untold(figure));
  return ReferenceValue{.value = *least};
}

std::optional<double> References::ceiling_of(const plan::Requirement& requirement, const plan::Step& step,
                                             const Subject& subject, const Pool& pool) {
  const auto& metric = *probe_of(requirement).metric(requirement.metric);
  if (requirement.ceiling && requirement.ceiling->value) return requirement.ceiling->value;
  if (requirement.ceiling && requirement.ceiling->reference == plan::Reference::peak)
    return plan_.profile.peaks.at(requirement.ceiling->name).value;
  if (requirement.ceiling) {
    const auto value = derived_of(requirement.ceiling->name, step, subject, pool);
    return value ? std::optional(value->value) : std::nullopt;
  }
  if (metric.kind == MetricKind::share) return 1;
  if (requirement.limit.reference == plan::Reference::peak && metric.better == "higher")
    return plan_.profile.peaks.at(requirement.limit.name).value;
  return std::nullopt;
}

}  // namespace assay::judge
