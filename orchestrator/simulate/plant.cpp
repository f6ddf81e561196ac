// plant: first-order heat, supplies with losses, and readings with errors; the same bits on every processor.
#include "orchestrator/simulate/plant.h"

#include <algorithm>
#include <cmath>

#include "orchestrator/simulate/random.h"
#include "probes/core/portable_math.h"

namespace assay::simulate {
namespace {

constexpr double kChipsIdle = 0.35;    // of the idle power: the chips' part
constexpr double kEndOf16Bit = 65536;  // a register of 16 bits begins again here

}  // namespace

double PlantNode::load_at(double time_s) const {
  double now = 0;
  for (const auto& change : load) {
    if (change.at_s <= time_s) now = change.load;
  }
  return now;
}

double PlantNode::heat_at(double time_s) const {
  double heat = 0, since_s = 0, now = 0;
  for (const auto& change : load) {
    if (change.at_s > time_s) break;
    heat = now + (heat - now) * portable_exp(-(change.at_s - since_s) / heat_time_s);
    since_s = change.at_s;
    now = change.load;
  }
  return now + (heat - now) * portable_exp(-(time_s - since_s) / heat_time_s);
}

double PlantNode::chips_at(double time_s) const { return kChipsIdle * idle_w + chips_w * load_at(time_s); }

double PlantNode::drawn_at(double time_s) const {
  return drawn_for_w(idle_w + chips_w * load_at(time_s) + fans_w * heat_at(time_s));
}

double plant_noise(std::uint64_t seed, std::uint64_t index) {
  return 2 * SeededRandom(seed * 0x9e3779b97f4a7c15ULL + index).share() - 1;
}

std::vector<meters::MeterReading> seen(const Truth& truth, const View& view, double begin_s, double end_s,
                                       Quantity quantity) {
  const int parts = view.window_s > 1 ? 8 : 2;  // of a window, in the middle of which the truth is taken
  std::vector<meters::MeterReading> readings;
  for (double now = begin_s; now < end_s; ++now) {
    const double at = std::min(now, view.stuck_from_s.value_or(now));
    double mean = 0;
    for (int i = 0; i < parts; ++i) mean += truth(at - view.lag_s - view.window_s * (i + 0.5) / parts) / parts;
    double value =
        (mean * view.gain + view.offset) * (1 + view.noise * plant_noise(view.seed, static_cast<std::uint64_t>(at)));
    if (view.constant) value = *view.constant;
    if (view.dead_from_s && now >= *view.dead_from_s) value = 0;
    value = std::round(value / view.quantum) * view.quantum * view.scale;
    if (view.wraps_16_bit) value = std::fmod(value, kEndOf16Bit);
    meters::MeterReading one{.quantity = quantity,
                             .value = value,
                             .taken_s = now,
                             .quantum = view.quantum * view.scale,
                             .instrument = "simulated plant"};
    one.origin = view.constant ? meters::Origin::synthesised : meters::Origin::measured;
    if (view.states_averaging) one.averaging_s = view.window_s;
    one.stated_s = std::min(now, view.stale_from_s.value_or(now));
    readings.push_back(std::move(one));
  }
  return readings;
}

}  // namespace assay::simulate
