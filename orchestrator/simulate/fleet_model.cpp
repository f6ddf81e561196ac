// fleet_model: from limits and faults to records.
#include "orchestrator/simulate/fleet_model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "orchestrator/simulate/random.h"

namespace assay::simulate {
namespace {

constexpr double kMargin = 0.04;         // of healthy nodes beyond their limit
constexpr double kGuardShares = 1.2;     // and beyond the guard band of the instrument
constexpr double kSampleSpread = 0.003;  // relative, between samples of one subject
constexpr double kFreeReference = 1e6;   // of a metric that others refer to and nothing limits

/// The moment that every line of a made-up record has: no clock ran. Before any run that there can have been.
constexpr std::chrono::system_clock::time_point kNever{std::chrono::seconds(946'684'800)};  // 2000-01-01

/// The centre of values that lie between `low` and `high`, or beyond the one that there is.
double centre_of(const Quantity& quantity, double margin) {
  if (quantity.low && quantity.high) return (*quantity.low + *quantity.high) / 2;
  if (quantity.low) return *quantity.low == 0 ? 1 : *quantity.low + std::abs(*quantity.low) * margin;
  if (quantity.high) return *quantity.high - std::abs(*quantity.high) * margin;
  return kFreeReference;
}

Value meeting(const plan::RequiredCondition& demand) {
  if (demand.equals) return *demand.equals;
  if (demand.at_least && demand.at_most) return (*demand.at_least + *demand.at_most) / 2;
  return demand.at_least ? *demand.at_least : *demand.at_most;
}

bool is_of_itself(const plan::Limit& limit) {
  return plan::is_of_others(limit.reference) || limit.reference == plan::Reference::best_sample;
}

/// What `nodes` healthy nodes show together.
double centre_on(const Quantity& quantity, std::size_t nodes) {
  return quantity.by_nodes ? quantity.centre * static_cast<double>(nodes) : quantity.centre;
}

bool is_of(const Quantity& quantity, const std::string& metric, const plan::Requirement& requirement) {
  return quantity.metric == metric && quantity.at == requirement.at && quantity.scope == requirement.scope;
}

}  // namespace

FleetModel::FleetModel(const plan::Plan& plan) : plan_(plan), simulation_(*plan.simulation) {
  for (const auto& fault : simulation_.faults.faults) faults_of_[fault.node].push_back(&fault);
  dead_.insert(simulation_.faults.dead.begin(), simulation_.faults.dead.end());
  for (const auto& [name, probe] : plan.probes) {
    const Description& said = probe.description;
    Instrument& instrument = instruments_[name];
    for (const auto& metric : said.metrics)
      instrument.metrics.push_back(
          {.name = metric.name, .unit = metric.unit, .meaning = metric.meaning, .instrument = metric.instrument});
    for (const auto& condition : said.conditions)
      instrument.conditions.push_back({.name = condition.name, .meaning = condition.meaning});
    instrument.spec = {.name = said.name,
                       .revision = said.revision,
                       .measures = said.measures,
                       .method = said.method,
                       .source = said.source,
                       .metrics = instrument.metrics,
                       .conditions = instrument.conditions};
  }
  for (const auto& step : plan.steps) {
    steps_.emplace(step.id, &step);
    if (!recipes_.contains(step.requirements.front())) recipes_.emplace(step.requirements.front(), recipe_of(step));
  }
}

const plan::Step* FleetModel::step(std::string_view id) const {
  const auto found = steps_.find(id);
  return found == steps_.end() ? nullptr : found->second;
}

FleetModel::Recipe FleetModel::recipe_of(const plan::Step& step) const {
  Recipe recipe;
  std::vector<const plan::Requirement*> requirements;
  for (const auto& id : step.requirements) requirements.push_back(plan_.requirement(id));
  // Those that refer to another metric come last, when that one is known.
  std::ranges::stable_partition(
      requirements, [](const plan::Requirement* one) { return one->limit.reference != plan::Reference::metric; });
  for (const plan::Requirement* requirement : requirements) {
    add_limits(recipe, *requirement);
    for (const auto& demand : requirement->conditions) {
      if (!demand.site.empty()) continue;  // a made-up site has no planes, so no step of it comes here
      if (std::ranges::find(recipe.conditions, demand.name, &MetCondition::name) == recipe.conditions.end()) {
        recipe.conditions.push_back({.name = demand.name, .value = meeting(demand)});
      }
    }
  }
  return recipe;
}

void FleetModel::add_limits(Recipe& recipe, const plan::Requirement& requirement) const {
  const auto& probe = plan_.probes.at(requirement.probe).description;
  const auto quantity_of = [&](const std::string& metric) -> Quantity& {
    const auto found =
        std::ranges::find_if(recipe.quantities, [&](const Quantity& one) { return is_of(one, metric, requirement); });
    if (found != recipe.quantities.end()) return *found;
    const auto spread = simulation_.faults.spread.find(metric);
    recipe.quantities.push_back(
        {.metric = metric,
         .scope = requirement.scope,
         .at = requirement.at,
         .lower_is_better = probe.metric(metric)->better == "lower",
         .low = std::nullopt,
         .high = std::nullopt,
         .centre = kFreeReference,
         .spread = spread == simulation_.faults.spread.end() ? plan::kDefaultSpread : spread->second,
         .spread_key = metric});
    return recipe.quantities.back();
  };
  const plan::Limit& limit = requirement.limit;
  double unit = 1;
  std::string key = requirement.metric;
  if (limit.reference == plan::Reference::peak) unit = plan_.profile.peaks.at(limit.name).value;
  if (limit.reference == plan::Reference::metric) {
    Quantity& reference = quantity_of(limit.name);
    reference.samples = std::max(reference.samples, requirement.repeat_n);
    unit = reference.centre;
    key = limit.name;
  }
  Quantity& quantity = quantity_of(requirement.metric);
  quantity.samples = std::max(quantity.samples, requirement.repeat_n);
  quantity.by_nodes = quantity.by_nodes || limit.reference == plan::Reference::smallest_group_by_nodes;
  // What is held against itself or its fleet has no place of its own, and leaves that to limits in units, if there are
  // any.
  if (is_of_itself(limit)) return;
  if (limit.at_least) quantity.low = std::max(quantity.low.value_or(*limit.at_least * unit), *limit.at_least * unit);
  if (limit.at_most) quantity.high = std::min(quantity.high.value_or(*limit.at_most * unit), *limit.at_most * unit);
  quantity.spread_key = key;
  const double guard = plan_.profile.guard_factor * probe.metric(requirement.metric)->instrument;
  quantity.centre = centre_of(quantity, kMargin + kGuardShares * guard);
}

double FleetModel::share_left(const std::vector<std::string>& nodes, const std::string& metric,
                              const std::string& occasion, bool named_only) const {
  double left = 1;
  for (const auto& node : nodes) {
    const auto faults = faults_of_.find(node);
    if (faults == faults_of_.end()) continue;
    for (const plan::SimulatedFault* fault : faults->second) {
      if (fault->metric.empty() ? named_only : fault->metric != metric) continue;
      if (!fault->other.empty() && std::ranges::find(nodes, fault->other) == nodes.end()) continue;
      SeededRandom random(simulation_.seed, {"fault", fault->node, fault->other, occasion});
      if (fault->probability < 1 && !random.happens(fault->probability)) continue;
      left = std::min(left, fault->factor);
    }
  }
  return left;
}

double FleetModel::value_of(const Quantity& quantity, const std::vector<std::string>& nodes,
                            const std::string& occasion, double healthy) const {
  // A count of errors that is 0 has no share to lose: only a fault that names it makes one.
  if (quantity.centre == 0) return share_left(nodes, quantity.metric, occasion, true) < 1 ? 1 : 0;
  const double left = share_left(nodes, quantity.metric, occasion, false);
  return quantity.lower_is_better ? healthy / left : healthy * left;
}

std::string FleetModel::record(const plan::Step& step, int attempt, std::size_t rank) const {
  const std::string& node = step.nodes[rank];
  const Recipe& recipe = recipes_.at(step.requirements.front());
  const std::string occasion = fmt::format("{}.{}", step.id, attempt);
  std::ostringstream out;
  Recorder recorder(out, instruments_.at(step.probe).spec,
                    {.probe = step.probe,
                     .revision = instruments_.at(step.probe).spec.revision,
                     .parameters = plan::parameters_of(plan_.site, step, rank),
                     .rank = static_cast<int>(rank),
                     .world = static_cast<int>(step.nodes.size()),
                     .host = {{"name", node}, {plan::kSimulated, true}}},
                    [] { return kNever; });
  for (const auto& quantity : recipe.quantities) {
    const bool together = is_together(quantity.scope);
    if (rank > 0 && together) continue;
    const std::string kind(word_of(quantity.scope));
    const bool whole = quantity.scope == plan::JudgedScope::node;
    const auto designed = plan_.profile.per_node.find(kind);
    const int subjects = together || whole || designed == plan_.profile.per_node.end() ? 1 : designed->second;
    for (int i = 0; i < subjects; ++i) {
      const std::string id = together ? step.id : whole ? node : fmt::format("{}-{}{}", node, kind, i);
      SeededRandom own(simulation_.seed, {"spread", id, quantity.spread_key});
      SeededRandom noise(simulation_.seed, {"noise", occasion, id, quantity.metric});
      const double healthy = centre_on(quantity, step.nodes.size()) * (1 + quantity.spread * own.normal());
      const double value =
          value_of(quantity, together ? step.nodes : std::vector<std::string>{node}, occasion, healthy);
      Sampling sampling{.samples = {}, .warmup = {}, .stopped = "fixed"};
      for (int n = 0; n < quantity.samples; ++n)
        sampling.samples.push_back(value * (1 + kSampleSpread * noise.normal()));
      recorder.measurement(quantity.metric, sampling, {.kind = kind, .id = id}, quantity.at);
    }
  }
  for (const auto& condition : recipe.conditions) recorder.condition(condition.name, condition.value);
  recorder.end({.status = Status::complete, .reason = ""});
  return out.str();
}

}  // namespace assay::simulate
