// hall: nodes that work as the load says, feeds that share their power, coolant that carries most of it.
#include "orchestrator/simulate/hall.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <sstream>

#include "orchestrator/plan/metered.h"
#include "orchestrator/simulate/instrument.h"
#include "orchestrator/simulate/plant_site.h"
#include "orchestrator/simulate/random.h"
#include "probes/core/portable_math.h"
#include "probes/meters/derived.h"
#include "probes/meters/failover_record.h"
#include "probes/meters/feed_record.h"

namespace assay::simulate {
namespace {

constexpr double kBefore_s = 300;  // of the truth before the load: windows and lags of meters reach back
constexpr double kIdleShare = 0.12, kFansShare = 0.07;  // of a node's full power
constexpr double kBestEfficiency = 0.957;               // of the supplies at full load, to begin the search with
constexpr double kLiquidShare = 0.8;                    // of a rack's heat
constexpr double kLoopTime_s = 30;                      // time constant of the coolant
constexpr double kFlowPerWatt = 1.2 / 60000 / 1000;     // m3/s: 1.2 L/min for each kW that a rack draws in full
constexpr double kSupply_c = 30, kDryBulb_c = 18, kWetBulb_c = 12;
constexpr double kIntakeFactor = 1.09, kIntakeOwn_w = 900;  // losses and cooling of the site
constexpr double kVolts = 230, kFactor = 0.98, kPhases = 3, kHertz = 50;
constexpr double kLeakDetectors = 2;

double number_of(const plan::Step& step, const char* name, double fallback) {
  const auto found = step.parameters.find(name);
  return found == step.parameters.end() ? fallback : number_in(found->second).value_or(fallback);
}

meters::LoadShape shape_of(const plan::Step& step) {
  const auto found = step.parameters.find("shape");
  const auto* shape = found == step.parameters.end() ? nullptr : std::get_if<std::string>(&found->second);
  constexpr double kThousandths = 1000;
  return {.shape = shape == nullptr ? std::string_view("soak") : std::string_view(*shape),
          .ramp_s = number_of(step, "ramp", 5),
          .hold_s = number_of(step, "hold", 120),
          .steps = static_cast<int>(number_of(step, "steps", 5)),
          .frequency_hz = number_of(step, "frequency_mhz", kThousandths) / kThousandths,
          .grow_hold_s = number_of(step, "grow_hold", 10),
          .first_ranks = std::max(1, static_cast<int>(number_of(step, "first_ranks", 1))),
          .world = static_cast<int>(step.nodes.size())};
}

/// A node that draws `full_w` when it has been at full load for long.
PlantNode node_of(double full_w) {
  double out_w = kBestEfficiency * full_w;
  constexpr int kSteps = 40;  // each comes nearer by a factor of ten or more
  for (int i = 0; i < kSteps; ++i) out_w *= full_w / drawn_for_w(out_w);
  return {.idle_w = kIdleShare * out_w, .chips_w = (1 - kIdleShare - kFansShare) * out_w, .fans_w = kFansShare * out_w};
}

/// How an honest meter sees a quantity.
View honest(const Meter& meter, Quantity quantity, std::uint64_t seed, const SeededRandom& random) {
  SeededRandom own = random;
  const auto within = [&](double most) { return most * (2 * own.share() - 1); };
  View view{.window_s = meter.averaging_s.value_or(1), .seed = seed};
  switch (quantity) {
    case Quantity::power:
      view.gain = 1 + within(meter.accuracy.value_or(0.05) / 2);
      break;
    case Quantity::supply_temperature:
    case Quantity::return_temperature:
    case Quantity::outdoor_dry_bulb:
    case Quantity::outdoor_wet_bulb:
      view.offset = within(0.1);
      view.noise = 0;
      view.quantum = 0.1;
      break;
    case Quantity::flow:
      view.gain = 1 + within(0.01);
      view.quantum = 1e-7;
      break;
    case Quantity::heat:
      view.gain = 1 + within(0.01);
      view.quantum = 10;
      break;
    case Quantity::power_factor:
      view.noise = 0;
      view.quantum = 0.01;
      break;
    case Quantity::leak_detectors:
    case Quantity::leaks:
      view.noise = 0;
      break;
    default:
      view.noise = 0.001;
      view.quantum = 0.1;
  }
  return view;
}

void apply(const plan::SimulatedMeter& fault, double begin_s, View& view) {
  view.gain *= fault.gain;
  view.offset += fault.offset;
  view.scale *= fault.scale;
  view.lag_s += fault.lag_s;
  if (fault.averaging_s) view.window_s = *fault.averaging_s;
  if (fault.quantum) view.quantum = *fault.quantum;
  if (fault.stuck_after_s) view.stuck_from_s = begin_s + *fault.stuck_after_s;
  if (fault.stale_after_s) view.stale_from_s = begin_s + *fault.stale_after_s;
  if (fault.dead_after_s) view.dead_from_s = begin_s + *fault.dead_after_s;
  if (fault.constant) view.constant = fault.constant;
  view.wraps_16_bit = view.wraps_16_bit || fault.wraps_16_bit;
}

}  // namespace

double duration_of(const plan::Step& step) {
  return step.probe == plan::kLoadProbe ? meters::length_s(shape_of(step)) : step.typical_s;
}

std::optional<meters::HeldTime> held_time(const plan::Step& step) {
  if (step.probe != plan::kLoadProbe) return std::nullopt;
  return held(shape_of(step));
}

namespace {

/// The losses of the simulation; if it has none and a failover is watched, an operator takes feed b of each rack away
/// for the middle third of the load.
std::vector<plan::LostFeed> losses_of(const plan::Plan& plan, const plan::Step& load) {
  std::vector<plan::LostFeed> losses = plan.simulation->faults.lost_feeds;
  if (!losses.empty() || plan::site_companion(plan.profile) != plan::kFailoverCompanion) return losses;
  const meters::HeldTime held = held_time(load).value_or(meters::HeldTime{.end_s = duration_of(load)});
  const double third_s = std::floor((held.end_s - held.begin_s) / 3);
  for (const auto& meter : plan.site.meters)
    if (meter.feed == "b")
      losses.push_back({.meter = meter.name, .after_s = held.begin_s + third_s, .until_s = held.begin_s + 2 * third_s});
  return losses;
}

}  // namespace

Hall::Hall(const plan::Plan& plan, const plan::Step& load, double begin_s)
    : plan_(plan),
      simulation_(*plan.simulation),
      load_(load),
      begin_s_(begin_s),
      duration_s_(duration_of(load)),
      losses_(losses_of(plan, load)) {
  for (std::size_t i = 0; i < plan.site.nodes.size(); ++i) {
    node_at_.emplace(plan.site.nodes[i].name, i);
    racks_[plan.site.nodes[i].rack].push_back(i);
  }
  for (const auto& meter : plan.site.meters)
    if (meter.subject == "feed") feeds_[meter.rack].push_back(&meter);
  trace_nodes();
  trace_racks();
}

void Hall::trace_nodes() {
  const meters::LoadShape shape = shape_of(load_);
  const bool by_shape = load_.probe == plan::kLoadProbe;
  const auto points = static_cast<std::size_t>(kBefore_s + duration_s_) + 2;
  for (const auto& node : plan_.site.nodes) {
    const std::size_t beside = racks_.at(node.rack).size();
    const PlantNode made = node_of(full_rack_w(plan_.profile, beside) / static_cast<double>(beside));
    const auto at = std::ranges::find(load_.nodes, node.name);
    const double rest = 1 - portable_exp(-1 / made.heat_time_s);
    Trace& trace = drawn_w_.emplace_back();
    double heat = 0;
    for (std::size_t i = 0; i < points; ++i) {
      const double time_s = static_cast<double>(i) - kBefore_s;
      double level = 0;
      if (at != load_.nodes.end() && time_s >= 0)
        level = by_shape ? meters::level_at(shape, static_cast<int>(at - load_.nodes.begin()), time_s)
                         : (time_s < duration_s_ ? 1.0 : 0.0);
      heat += (level - heat) * rest;
      trace.push_back(drawn_for_w(made.idle_w + made.chips_w * level + made.fans_w * heat));
    }
  }
}

void Hall::trace_racks() {
  const double rest = 1 - portable_exp(-1 / kLoopTime_s);
  all_w_.assign(drawn_w_.front().size(), 0);
  for (const auto& [rack, nodes] : racks_) {
    Trace& power = rack_w_[rack];
    power.assign(all_w_.size(), 0);
    for (const std::size_t node : nodes) {
      for (std::size_t i = 0; i < power.size(); ++i) power[i] += drawn_w_[node][i];
    }
    Trace& heat = heat_w_[rack];
    double now_w = kLiquidShare * power.front();
    for (std::size_t i = 0; i < power.size(); ++i) {
      now_w += (kLiquidShare * power[i] - now_w) * rest;
      heat.push_back(now_w);
      all_w_[i] += power[i];
    }
  }
}

double Hall::at_time(const Trace& trace, double time_s) const {
  const double place = std::clamp(time_s - begin_s_ + kBefore_s, 0.0, static_cast<double>(trace.size() - 1));
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, trace.size() - 1);
  return trace[below] + (trace[above] - trace[below]) * (place - static_cast<double>(below));
}

bool Hall::is_lost(const Meter& feed, double time_s) const {
  return std::ranges::any_of(losses_, [&](const plan::LostFeed& one) {
    return one.meter == feed.name && time_s >= begin_s_ + one.after_s &&
           !(one.until_s && time_s >= begin_s_ + *one.until_s);
  });
}

/// The part of its load that `feed` carries.
double Hall::share_of(const Meter& feed, double time_s) const {
  if (is_lost(feed, time_s)) return 0;
  const auto& feeds = feeds_.at(feed.rack);
  return 1 /
         static_cast<double>(std::ranges::count_if(feeds, [&](const Meter* one) { return !is_lost(*one, time_s); }));
}

std::string Hall::plugged(const Meter& meter, int outlet) const {
  int behind = outlet;
  for (const auto& one : simulation_.faults.swapped_outlets) {
    if (one.meter != meter.name) continue;
    if (one.a == outlet) behind = one.b;
    if (one.b == outlet) behind = one.a;
  }
  return meter.outlets.at(behind);
}

std::map<Quantity, Truth> Hall::truths_of(const Meter& meter) const {
  const auto fixed = [](double value) { return [value](double) { return value; }; };
  if (meter.subject == "node") {
    const std::size_t node = node_at_.at(meter.nodes.front());
    return {{Quantity::power, [this, node](double t) { return at_time(drawn_w_[node], t); }}};
  }
  if (meter.subject == "feed") {
    const auto power = [this, &meter, &rack = rack_w_.at(meter.rack)](double t) {
      return at_time(rack, t) * share_of(meter, t);
    };
    const auto current = [power](double t) { return power(t) / kPhases / kVolts / kFactor; };
    return {{Quantity::power, power},
            {Quantity::current, current},
            {Quantity::current_l2, current},
            {Quantity::current_l3, current},
            {Quantity::voltage, fixed(kVolts)},
            {Quantity::power_factor, fixed(kFactor)},
            {Quantity::frequency, fixed(kHertz)}};
  }
  if (meter.subject == "cdu") {
    const double flow = kFlowPerWatt * full_rack_w(plan_.profile, racks_.at(meter.rack).size());
    const auto heat = [this, &rack = heat_w_.at(meter.rack)](double t) { return at_time(rack, t); };
    const auto back = [heat, flow](double t) { return kSupply_c + heat(t) / meters::heat_of_water_w(flow, 1); };
    return {{Quantity::flow, fixed(flow)},
            {Quantity::supply_temperature, fixed(kSupply_c)},
            {Quantity::return_temperature, back},
            {Quantity::heat, heat},
            {Quantity::leak_detectors, fixed(kLeakDetectors)},
            {Quantity::leaks, fixed(0)}};
  }
  const auto all = [this](double t) { return kIntakeFactor * at_time(all_w_, t) + kIntakeOwn_w; };
  return {{Quantity::power, all},
          {Quantity::outdoor_dry_bulb, fixed(kDryBulb_c)},
          {Quantity::outdoor_wet_bulb, fixed(kWetBulb_c)}};
}

/// Outlets of a strip are measured as its inlet is.
View Hall::view_of(const Meter& meter, Quantity quantity, int outlet) const {
  const std::string word(word_of(quantity));
  SeededRandom noise(simulation_.seed, {"meter noise", meter.name, word, std::to_string(outlet), load_.id});
  View view = honest(meter, quantity, noise.next(), SeededRandom(simulation_.seed, {"meter", meter.name, word}));
  for (const auto& fault : simulation_.faults.meters)
    if (fault.meter == meter.name && fault.quantity == quantity) apply(fault, begin_s_, view);
  return view;
}

meters::MeterHistory Hall::history_of(const Meter& meter) const {
  std::vector<std::vector<meters::MeterReading>> series;
  const double end_s = begin_s_ + std::floor(duration_s_);
  for (const auto& [quantity, truth] : truths_of(meter))
    series.push_back(seen(truth, view_of(meter, quantity, 0), begin_s_, end_s, quantity));
  for (const auto& [outlet, node] : meter.outlets) {
    const std::size_t behind = node_at_.at(plugged(meter, outlet));
    const auto truth = [this, &meter, behind](double t) { return at_time(drawn_w_[behind], t) * share_of(meter, t); };
    series.push_back(seen(truth, view_of(meter, Quantity::power, outlet), begin_s_, end_s));
    for (auto& one : series.back()) one.outlet = outlet;
  }
  meters::MeterHistory history;
  for (std::size_t i = 0; i < series.front().size(); ++i) {
    std::vector<meters::MeterReading> answer;
    for (const auto& one : series) {
      answer.push_back(one[i]);
      answer.back().accuracy = meter.accuracy;
      answer.back().taken_s += 0.5;  // the middle of its slot, as the watch of a real meter aims at
    }
    meters::take_answer(meter, answer, 1, history);
  }
  return history;
}

std::string Hall::record() const {
  const std::string companion = plan::site_companion(plan_.profile);
  const Instrument instrument(plan_.probes.at(companion).description);
  std::ostringstream out;
  const auto begin = std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(begin_s_)));
  Recorder recorder(out, instrument.spec(),
                    {.probe = companion,
                     .revision = instrument.spec().revision,
                     .host = {{"name", std::string("head")}, {plan::kSimulated, true}}},
                    [begin] { return begin; });
  std::deque<meters::MeterHistory> histories;
  std::vector<meters::MeteredHistory> answered;
  for (const auto& meter : plan_.site.meters) {
    const meters::MeterHistory& history = histories.emplace_back(history_of(meter));
    meters::record_meter(meter, history, 1, recorder);
    answered.push_back({.meter = &meter, .history = &history});
  }
  meters::record_derived(answered, recorder);
  if (companion == plan::kFailoverCompanion) {
    std::vector<meters::FeedReadings> read;
    for (const auto& one : answered) read.push_back(meters::power_so_far(*one.meter, *one.history));
    meters::record_failovers(read, meters::feed_losses(read, "", 1, begin_s_ + duration_s_), 1, recorder);
  }
  recorder.condition("interval_s", 1.0);
  recorder.end({.status = Status::complete});
  return out.str();
}

}  // namespace assay::simulate
