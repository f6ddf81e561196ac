// fleet_model: from limits and faults to records.
#include "orchestrator/simulate/fleet_model.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "orchestrator/plan/lint.h"
#include "orchestrator/simulate/hall.h"
#include "orchestrator/simulate/random.h"

namespace assay::simulate {
namespace {

constexpr double kGuardShares = 1.2;     // of the guard band of one decision, which that of two stages has
constexpr double kSampleSpread = 0.003;  // relative, between samples of one subject
constexpr double kFreeRate = 1e6;        // of a rate that others refer to and nothing limits; of anything else 1

/// The moment that every line of a made-up record has: no clock ran. Before any run that there can have been.
constexpr std::chrono::system_clock::time_point kNever{std::chrono::seconds(946'684'800)};  // 2000-01-01

/// Where healthy nodes lie: between the limits, or `margin` beyond the one that is given and further by the guard band,
/// a share `guard` of the value itself; else unchanged.
double centre_of(const MadeUpMetric& quantity, double margin, double guard) {
  if (quantity.low && quantity.high) return (*quantity.low + *quantity.high) / 2;
  const double limit = quantity.low ? *quantity.low : quantity.high.value_or(quantity.centre);
  if (!quantity.low && !quantity.high) return limit;
  if (quantity.low && limit == 0) return 1;
  const bool beyond_is_larger = quantity.low.has_value() == (limit > 0);  // in size, without its sign
  return beyond_is_larger ? limit * (1 + margin) / (1 - guard) : limit * (1 - margin) / (1 + guard);
}

bool is_of_itself(const plan::Limit& limit) {
  return plan::is_of_others(limit.reference) || limit.reference == plan::Reference::best_sample ||
         limit.reference == plan::Reference::derived;  // a made-up machine reports no design figures
}

/// A requirement on every coordinate as one on each of the step's sizes; any other as it is.
std::vector<plan::Requirement> at_each_size(const plan::Requirement& requirement, const plan::Step& step) {
  const auto sizes = requirement.at_every ? plan::sizes_in(step.parameters) : std::vector<std::int64_t>{};
  std::vector<plan::Requirement> all(std::max<std::size_t>(sizes.size(), 1), requirement);
  for (std::size_t i = 0; i < sizes.size(); ++i) all[i].at = {{"size", sizes[i]}};
  return all;
}

bool is_of(const MadeUpMetric& quantity, const std::string& metric, const plan::Requirement& requirement) {
  return quantity.metric == metric && quantity.at == requirement.at && quantity.scope == requirement.scope;
}

}  // namespace

FleetModel::FleetModel(const plan::Plan& plan) : plan_(plan), simulation_(*plan.simulation) {
  for (const auto& fault : simulation_.faults.faults) faults_of_[fault.node].push_back(&fault);
  dead_.insert(simulation_.faults.dead.begin(), simulation_.faults.dead.end());
  for (const auto& node : plan.site.nodes) nodes_.emplace(node.name, &node);
  for (const auto& [name, probe] : plan.probes) instruments_.try_emplace(name, probe.description);
  for (const auto& one : plan.profile.requirements) {
    if (one.contrast) contrasts_.emplace(one.id, one.contrast->parameter);
  }
  for (const auto& step : plan.steps) {
    if (const auto key = recipe_key(step); !recipes_.contains(key)) recipes_.emplace(key, recipe_of(step));
  }
  std::set<std::string_view> done;
  for (const auto& cell : plan.coverage) {
    if (!cell.against.empty()) on_of_.emplace(cell.against, cell.step);
    if (cell.against.empty() || !done.insert(cell.requirement).second) continue;
    contrast(*plan.requirement(cell.requirement), recipes_.at(recipe_key(*plan.step(cell.step))),
             recipes_.at(recipe_key(*plan.step(cell.against))));
  }
}

/// The step's first requirement; of a contrast with the value of its switch, because it has two kinds of steps.
std::string FleetModel::recipe_key(const plan::Step& step) const {
  const std::string& id = step.requirements.front();
  const auto found = contrasts_.find(id);
  return found == contrasts_.end() ? id : id + " " + assay::to_json(step.parameters.at(found->second)).dump();
}

FleetModel::Recipe FleetModel::recipe_of(const plan::Step& step) const {
  Recipe recipe;
  std::vector<const plan::Requirement*> requirements;
  for (const auto& id : step.requirements) {
    // Readings of the site's meters are made up from its racks (hall.h).
    if (const auto* one = plan_.requirement(id); one->during.empty()) requirements.push_back(one);
  }
  // Those that refer to another metric come last, when that one is known.
  std::ranges::stable_partition(
      requirements, [](const plan::Requirement* one) { return one->limit.reference != plan::Reference::metric; });
  for (const plan::Requirement* requirement : requirements) {
    if (requirement->demand) {
      add_condition(recipe, *requirement->demand, requirement->scope, requirement->scope);
      continue;
    }
    for (const auto& one : at_each_size(*requirement, step)) add_limits(recipe, one);
    for (const auto& demand : requirement->conditions)
      add_condition(recipe, demand, requirement->scope, plan::JudgedScope::node);
  }
  return recipe;
}

/// Adds a value that meets `demand`. Of several demands on one condition the last that it would not meet decides.
void FleetModel::add_condition(Recipe& recipe, const plan::RequiredCondition& demand, plan::JudgedScope judged,
                               plan::JudgedScope of) {
  const Value value = meeting(demand).value_or(Value{});
  const auto known = std::ranges::find_if(recipe.conditions, [&](const MetCondition& one) {
    using enum plan::JudgedScope;  // of a node it is also about its parts; of GPUs it says nothing about ports
    return one.name == demand.name && (one.scope == of || one.scope == node || of == node);
  });
  if (known == recipe.conditions.end()) {
    recipe.conditions.push_back({.name = demand.name,
                                 .value = value,
                                 .site = demand.site,
                                 .of_ports = judged == plan::JudgedScope::nic,
                                 .scope = of,
                                 .larger_meets = demand.at_least  ? std::optional(true)
                                                 : demand.at_most ? std::optional(false)
                                                                  : std::nullopt});
  } else if (demand.site.empty() && fit_of(demand, known->value) != plan::Fit::met) {
    known->value = value;
  }
}

void FleetModel::add_limits(Recipe& recipe, const plan::Requirement& requirement) const {
  const auto& probe = plan_.probes.at(requirement.probe).description;
  const auto quantity_of = [&](const std::string& metric) -> MadeUpMetric& {
    const auto found = std::ranges::find_if(recipe.quantities,
                                            [&](const MadeUpMetric& one) { return is_of(one, metric, requirement); });
    if (found != recipe.quantities.end()) return *found;
    const auto spread = simulation_.faults.spread.find(metric);
    recipe.quantities.push_back(
        {.metric = metric,
         .scope = requirement.scope,
         .at = requirement.at,
         .lower_is_better = probe.metric(metric)->better == "lower",
         .fixed = probe.metric(metric)->course == Course::fixed,
         .centre = probe.metric(metric)->unit.ends_with("/s") ? kFreeRate : 1,
         .spread = spread == simulation_.faults.spread.end() ? simulation_.faults.healthy.spread : spread->second,
         .spread_key = metric});
    return recipe.quantities.back();
  };
  const plan::Limit& limit = requirement.limit;
  double unit = 1;
  std::string key = requirement.metric;
  if (limit.reference == plan::Reference::peak) unit = plan_.profile.peaks.at(limit.name).value;
  if (limit.reference == plan::Reference::metric) {
    MadeUpMetric& reference = quantity_of(limit.name);
    reference.samples = std::max(reference.samples, requirement.repeat_n);
    unit = reference.centre;
    key = limit.name;
  }
  MadeUpMetric& quantity = quantity_of(requirement.metric);
  quantity.samples = std::max(quantity.samples, requirement.repeat_n);
  quantity.by_nodes = quantity.by_nodes || limit.reference == plan::Reference::smallest_group_by_nodes;
  // A gain, or a limit relative to the node itself or to its fleet, does not fix a centre; only limits in units do.
  if (requirement.contrast || is_of_itself(limit)) return;
  if (limit.at_least) quantity.low = std::max(quantity.low.value_or(*limit.at_least * unit), *limit.at_least * unit);
  if (limit.at_most) quantity.high = std::min(quantity.high.value_or(*limit.at_most * unit), *limit.at_most * unit);
  quantity.spread_key = key;
  const double guard = kGuardShares * plan_.profile.guard_factor * probe.metric(requirement.metric)->instrument;
  quantity.centre = centre_of(quantity, quantity.fixed ? 0 : simulation_.faults.healthy.margin, guard);
}

/// A feature has the demanded gain, and the margin of healthy nodes more. Its state is a condition that differs.
void FleetModel::contrast(const plan::Requirement& requirement, Recipe& on, Recipe& off) const {
  const plan::Contrast& contrast = *requirement.contrast;
  const auto of = [&](Recipe& recipe) {
    return std::ranges::find_if(recipe.quantities,
                                [&](const auto& one) { return is_of(one, requirement.metric, requirement); });
  };
  const auto with = of(on), without = of(off);
  const double instrument =
      plan_.probes.at(requirement.probe).description.metric(requirement.metric)->instrument * std::sqrt(2.0);
  const double guard = kGuardShares * plan_.profile.guard_factor * instrument;
  with->switched_by = contrast.parameter;
  with->gain = (1 + contrast.at_least) * (1 + simulation_.faults.healthy.margin) / (1 - guard);
  // The side whose own limit asks for more has that; the other one is further from its limit.
  if (with->lower_is_better) {
    with->centre = std::min(with->centre, without->centre / with->gain);
    without->centre = with->centre * with->gain;
  } else {
    with->centre = std::max(with->centre, without->centre * with->gain);
    without->centre = with->centre / with->gain;
  }
  const auto state_of = [&](Recipe& recipe) {
    return std::ranges::find(recipe.conditions, contrast.shown_by, &MetCondition::name);
  };
  if (state_of(on) == on.conditions.end()) on.conditions.push_back({.name = contrast.shown_by, .value = true});
  const Value value = state_of(on)->value;
  const auto* flag = std::get_if<bool>(&value);
  const auto number = number_in(value);
  const Value other = flag != nullptr ? Value(!*flag)
                      : number        ? Value(*number == 0 ? 1.0 : 0.0)
                                      : Value(std::string("off"));
  auto state = state_of(off);
  if (state == off.conditions.end()) state = off.conditions.insert(state, {.name = contrast.shown_by, .value = other});
  if (state->value == value) state->value = other;
  state->switched_by = contrast.parameter;
  state->on = value;
}

const plan::SimulatedSwitch* FleetModel::switch_of(const std::vector<std::string>& nodes,
                                                   const std::string& parameter) const {
  const auto& all = simulation_.faults.switches;
  const auto found = std::ranges::find_if(all, [&](const plan::SimulatedSwitch& one) {
    return one.parameter == parameter && std::ranges::find(nodes, one.node) != nodes.end();
  });
  return parameter.empty() || found == all.end() ? nullptr : &*found;
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

double FleetModel::value_of(const MadeUpMetric& quantity, const std::vector<std::string>& nodes,
                            const std::string& occasion, double healthy) const {
  // A count of errors that is 0 has no share to lose, and a slow node has all its GPUs.
  const bool named_only = quantity.fixed || quantity.centre == 0;
  const double left = share_left(nodes, quantity.metric, occasion, named_only);
  if (quantity.centre == 0) return left < 1 ? 1 : 0;
  if (const auto* idle = switch_of(nodes, quantity.switched_by)) {
    const double worse = quantity.gain / (1 + (quantity.gain - 1) * idle->gain);
    healthy = quantity.lower_is_better ? healthy * worse : healthy / worse;
  }
  return quantity.lower_is_better ? healthy / left : healthy * left;
}

/// The measured subjects of `node`: the step as a whole where nodes work together, the node, each of its ports in the
/// step's plane, or as many parts of the kind as a node of this design has.
std::vector<std::string> FleetModel::subjects_of(const MadeUpMetric& quantity, const plan::Step& step,
                                                 const site::Node& node) const {
  if (step.nodes.size() > 1 && is_together(quantity.scope)) {
    const auto on = on_of_.find(step.id);  // both sides of a contrast are of one subject
    return {on == on_of_.end() ? step.id : std::string(on->second)};
  }
  if (quantity.scope == plan::JudgedScope::node) return {node.name};
  std::vector<std::string> all;
  const auto ports = node.planes.find(step.plane);
  if (quantity.scope == plan::JudgedScope::nic && ports != node.planes.end()) {
    for (const auto& port : ports->second) all.push_back(port.interface.empty() ? port.device : port.interface);
    return all;
  }
  const auto count = [&](const std::string& kind) {
    return plan::designed_parts(plan_.profile, node, kind).value_or(1);
  };
  const std::string kind(word_of(quantity.scope));
  const int gpus = count("gpu");
  if (quantity.scope == plan::JudgedScope::pair && count(kind) == gpus * (gpus - 1)) {
    for (int from = 0; from < gpus; ++from) {
      for (int to = 0; to < gpus; ++to) {
        if (from != to) all.push_back(fmt::format("{}-gpu{}>{}-gpu{}", node.name, from, node.name, to));
      }
    }
    return all;
  }
  for (int i = 0; i < count(kind); ++i) all.push_back(fmt::format("{}-{}{}", node.name, kind, i));
  return all;
}

/// A value in place of `met` that misses the demand, of a number as far off as a fault that leaves the share `left`.
static Value missing(const MetCondition& condition, const Value& met, double left) {
  const auto number = number_in(met).value_or(0);
  const bool larger = condition.larger_meets.value_or(false);
  if (!condition.larger_meets || number == 0 || (!larger && left <= 0)) return "made up to miss";
  return larger ? number * left : number / left;
}

/// The conditions that are demanded, met, as this node sees them, or all nodes of the step together if judged together;
/// a fault that names one makes it miss.
void FleetModel::record_conditions(Recorder& recorder, const Recipe& recipe, const plan::Step& step,
                                   const site::Node& node, const std::string& occasion) const {
  const auto ports = node.planes.find(step.plane);
  for (const auto& condition : recipe.conditions) {
    if (condition.site.empty()) {
      const bool together = is_together(condition.scope);
      const double left = share_left(together ? step.nodes : std::vector{node.name}, condition.name, occasion, true);
      const auto* idle = switch_of(step.nodes, condition.switched_by);
      const Value& met = idle != nullptr && idle->stuck ? condition.on : condition.value;
      const Value value = left < 1 ? missing(condition, met, left) : met;
      if (condition.scope == plan::JudgedScope::node || together) {
        recorder.condition(condition.name, value);
        continue;
      }
      const std::string kind(word_of(condition.scope));
      for (const auto& id : subjects_of({.metric = condition.name, .scope = condition.scope}, step, node))
        recorder.condition(condition.name, value, {.kind = kind, .id = id});
    } else if (condition.of_ports && ports != node.planes.end()) {
      for (const auto& port : ports->second)
        recorder.condition(condition.name, site::port_text(node, port, condition.site),
                           {.kind = "nic", .id = port.interface.empty() ? port.device : port.interface});
    } else if (const site::Port* port = site::port_of(node, step.plane, step.rail)) {
      recorder.condition(condition.name, site::port_text(node, *port, condition.site));
    }
  }
}

void FleetModel::record_samples(Recorder& recorder, const MadeUpMetric& quantity, const Subject& subject, double centre,
                                const std::string& occasion, const std::function<double(double)>& value) const {
  SeededRandom own(simulation_.seed, {"spread", subject.id, quantity.spread_key});
  SeededRandom run(simulation_.seed, {"run", occasion, subject.id, quantity.spread_key});
  SeededRandom noise(simulation_.seed, {"noise", occasion, subject.id, quantity.metric});
  const auto varied = [&](double deviation, SeededRandom& random) {
    return quantity.fixed ? 1 : 1 + deviation * random.normal();
  };
  const double shown =
      value(centre * varied(quantity.spread, own) * varied(simulation_.faults.healthy.run_to_run, run));
  Sampling sampling{.samples = {}, .stopped = "fixed"};
  for (int n = 0; n < quantity.samples; ++n) sampling.samples.push_back(shown * varied(kSampleSpread, noise));
  recorder.measurement(quantity.metric, sampling, subject, quantity.at);
}

void FleetModel::record_quantity(Recorder& recorder, const MadeUpMetric& quantity, const plan::Step& step,
                                 const site::Node& node, const std::string& occasion) const {
  const bool together = step.nodes.size() > 1 && is_together(quantity.scope);
  auto nodes = together ? step.nodes : std::vector<std::string>{node.name};
  // A leak is a bad link between a node and a path: the control reaches it anyway.
  if (!step.path.empty()) nodes = {step.nodes.front(), step.path};
  double centre = quantity.centre_on(step.nodes.size());
  for (const auto& knee : simulation_.faults.knees) {
    if (together && (knee.metric.empty() || knee.metric == quantity.metric))
      centre *= std::min(1.0, knee.nodes / static_cast<double>(nodes.size()));
  }
  for (const auto& id : subjects_of(quantity, step, node)) {
    record_samples(recorder, quantity, {.kind = std::string(word_of(quantity.scope)), .id = id}, centre, occasion,
                   [&](double healthy) { return value_of(quantity, nodes, occasion, healthy); });
  }
}

/// The counters of knees: some events on every node, and many where more nodes work together than it is enough for.
void FleetModel::record_counters(Recorder& recorder, const plan::Step& step, const std::string& node,
                                 const std::string& occasion) const {
  constexpr double kUsual = 20, kFull = 2000, kSpread = 0.2;
  for (const auto& knee : simulation_.faults.knees) {
    if (step.nodes.size() < 2 || !plan_.probes.at(step.probe).description.has_condition(knee.counter)) continue;
    SeededRandom random(simulation_.seed, {"counter", knee.counter, node, occasion});
    const double usual = step.nodes.size() > static_cast<std::size_t>(knee.nodes) ? kFull : kUsual;
    recorder.condition(knee.counter, std::llround(usual * std::max(0.0, 1 + kSpread * random.normal())));
  }
}

std::string FleetModel::record(const plan::Step& step, int attempt, std::size_t rank,
                               std::optional<double> begin_s) const {
  const std::string& node = step.nodes[rank];
  const Recipe& recipe = recipes_.at(recipe_key(step));
  const std::string occasion = fmt::format("{}.{}", step.id, attempt);
  std::ostringstream out;
  const ProbeSpec& spec = instruments_.at(step.probe).spec();
  Recorder recorder(out, spec,
                    {.probe = step.probe,
                     .revision = spec.revision,
                     .parameters = plan::parameters_of(plan_.site, step, rank),
                     .rank = static_cast<int>(rank),
                     .world = static_cast<int>(step.nodes.size()),
                     .host = {{"name", node}, {plan::kSimulated, true}}},
                    [] { return kNever; });
  const site::Node& site_node = *nodes_.at(node);
  for (const auto& quantity : recipe.quantities) {
    const bool together = step.nodes.size() > 1 && is_together(quantity.scope);
    if ((rank > 0 && together) || record_curve(recorder, quantity, step, node, occasion)) continue;
    if (!together ||
        !(record_training(recorder, quantity, step, occasion) || record_rack(recorder, quantity, step, occasion)))
      record_quantity(recorder, quantity, step, site_node, occasion);
  }
  record_conditions(recorder, recipe, step, site_node, occasion);
  record_counters(recorder, step, node, occasion);
  if (const auto held = held_time(step); held && begin_s) {
    recorder.condition("hold_begin_s", *begin_s + held->begin_s);
    recorder.condition("hold_end_s", *begin_s + held->end_s);
  }
  recorder.end({.status = Status::complete});
  return out.str();
}

}  // namespace assay::simulate
