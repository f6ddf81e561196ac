// history: keeps the readings of one meter by slot, and compares its numbers with each other.
#include "probes/meters/history.h"

#include <algorithm>
#include <cmath>

namespace assay::meters {
namespace {

constexpr std::size_t kLatest = 300;  // five minutes at one a second: as long as a level of the procedure
constexpr double kSeveralLeast = 1.5, kSeveralMost = 4.5;  // power of three phases over that of one, not balanced

/// The number of `quantity` of the whole, when the answer has it.
std::optional<double> whole(const std::vector<MeterReading>& answer, Quantity quantity) {
  const auto found = std::ranges::find_if(
      answer, [&](const MeterReading& one) { return one.quantity == quantity && one.outlet == 0 && !one.absent; });
  return found == answer.end() ? std::nullopt : std::optional(found->value);
}

/// Checks quantities that one answer has twice. Strips with three phases give one phase's current: their product is a
/// third of the power, or that by the root of 3 if the voltage is between phases, and more or less if the load is not
/// balanced. So only a scale that is wrong by ten shows there.
void check_scale(const std::vector<MeterReading>& answer, MeterHistory& history) {
  const auto power = whole(answer, Quantity::power), voltage = whole(answer, Quantity::voltage),
             current = whole(answer, Quantity::current), factor = whole(answer, Quantity::power_factor);
  if (power && voltage && current && factor && *power > 0 && *current > 0) {
    history.scale_checked = true;
    history.scale.reset();
    const double one_phase_w = *voltage * *current * *factor;
    const double phases = *power / one_phase_w;
    if (phases < kSeveralLeast || phases > kSeveralMost)
      history.scale = scale_doubt(*power, *voltage, *current, *factor);
  }
  const auto heat = whole(answer, Quantity::heat), flow = whole(answer, Quantity::flow),
             supply = whole(answer, Quantity::supply_temperature), back = whole(answer, Quantity::return_temperature);
  if (heat && flow && supply && back) {
    history.scale_checked = true;
    history.scale = heat_doubt(*heat, *flow, *back - *supply);
  }
}

}  // namespace

void take_answer(const Meter&, const std::vector<MeterReading>& answer, double interval_s, MeterHistory& history) {
  ++history.answers;
  for (const auto& one : answer) {
    if (one.quantity == Quantity::power && one.outlet == 0) {
      history.latest.push_back(one);
      if (history.latest.size() > kLatest) history.latest.pop_front();
    }
    if (one.absent || !std::isfinite(one.value)) continue;
    history.series.try_emplace({one.quantity, one.outlet}, interval_s).first->second.add(one.taken_s, one.value);
  }
  check_scale(answer, history);
}

}  // namespace assay::meters
