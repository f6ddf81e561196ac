// in_band_power: adds up all energy counters and reads the clock once for all of them.
#include "probes/power/in_band_power.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/probe.h"
#include "probes/meters/session.h"
#include "probes/power/energy_series.h"

namespace assay::power {

InBandPower::InBandPower(const std::string& powercap, const std::string& nvml_library) {
  std::vector<std::string> causes;
  try {
    for (const RaplZone& zone : find_rapl_zones(powercap).measured) counters_.push_back(rapl_counter(zone));
  } catch (const Skip& skip) {
    causes.emplace_back(skip.what());
  }
  for (auto& vendor : gpu_power(nvml_library, causes))
    for (auto& counter : vendor.counters) counters_.push_back(std::move(counter));
  if (counters_.empty()) throw Skip(fmt::format("{}", fmt::join(causes, "; ")));
}

std::optional<meters::MeterReading> InBandPower::read() {
  const double now_s = meters::utc_now_s();
  std::vector<std::uint64_t> now_uj;
  double energy_j = 0;
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const auto value = counters_[i].read_uj();
    if (!value || (!last_uj_.empty() && *value < last_uj_[i] && counters_[i].range_uj == 0))
      throw meters::MeterFault(fmt::format("{} stopped answering, or went back", counters_[i].name));
    now_uj.push_back(*value);
    if (!last_uj_.empty())
      energy_j += static_cast<double>(energy_between_uj(last_uj_[i], *value, counters_[i].range_uj)) * 1e-6;
  }
  const bool first = last_uj_.empty();
  const double time_s = now_s - last_s_;
  last_uj_ = std::move(now_uj);
  last_s_ = now_s;
  if (first || time_s <= 0) return std::nullopt;
  return meters::MeterReading{.quantity = Quantity::power,
                              .value = energy_j / time_s,
                              .taken_s = now_s - time_s / 2,
                              .instrument = "energy counters",
                              .origin = meters::Origin::measured,
                              .averaging_s = time_s};
}

std::string InBandPower::boundary() const {
  std::string text;
  for (const auto& counter : counters_) text += (text.empty() ? "" : ", ") + counter.name;
  return text;
}

}  // namespace assay::power
