// power_sampler: electric power and energy beside a step, from the counters the machine has.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/power/energy_series.h"
#include "probes/power/rapl.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

// A package at 1 kW wraps an AMD counter (65.5 kJ) in 65 s: an interval up to 1 s cannot miss a wrap.
constexpr double kLongestInterval_s = 1;
// RAPL counters move about once a millisecond; under 10 ms that grain alone would be over 10 % of a sample.
constexpr double kShortestInterval_s = 0.01;
// A companion ends when its step does; a week is the longest soak anybody asks for.
constexpr double kLongestSoak_s = 7.0 * 24 * 3600;

constexpr Parameter kParameters[] = {
    {.name = "interval",
     .unit = "s",
     .fallback = "500ms",
     .quick = "100ms",
     .meaning = "time between readings, 10ms to 1s"},
    {.name = "duration", .unit = "s", .fallback = "0s", .meaning = "end after this time; 0 means on SIGTERM"},
    {.name = "powercap", .fallback = "/sys/class/powercap", .meaning = "directory of the RAPL zones"},
};
constexpr Metric kMetrics[] = {
    {.name = "power",
     .unit = "W",
     .better = Better::lower,
     .meaning = "energy of one processor package over the true time of each interval",
     .instrument = 0.05},
    {.name = "energy",
     .unit = "J",
     .better = Better::lower,
     .meaning = "energy of one processor package over the whole window",
     .instrument = 0.05},
    {.name = "power_dram",
     .unit = "W",
     .better = Better::lower,
     .meaning = "the same of the memory behind one package, where RAPL has a dram zone",
     .instrument = 0.1},
    {.name = "energy_dram",
     .unit = "J",
     .better = Better::lower,
     .meaning = "the same of the memory behind one package, where RAPL has a dram zone",
     .instrument = 0.1},
};
constexpr ConditionSpec kConditions[] = {
    {.name = "instrument", .meaning = "which counter was read: rapl"},
    {.name = "interval_s", .meaning = "time between readings that was asked for, in s"},
    {.name = "interval_max_s",
     .meaning =
         "longest time between two readings of one counter, in s; a wrap is missed when the counter wraps twice in it"},
    {.name = "intervals_per_sample",
     .meaning = "intervals that one power sample spans; above 1 in windows of more than 100,000 intervals"},
    {.name = "window_s", .meaning = "time from the first to the last reading, in s"},
    {.name = "domains", .meaning = "zones measured, none of which contains another"},
    {.name = "domains_left_out",
     .meaning = "zones not measured, where there are any: they are part of a measured zone (core, uncore) or contain "
                "one (psys)"},
};
constexpr ProbeSpec kSpec{
    .name = "power_sampler",
    .companion = true,
    .measures = "Electric power and energy of processor packages and their memory while something else runs.",
    .method =
        "Reads the energy counter of every package and dram zone each interval; a sample is the counter's increase "
        "over the time between the two readings, with one wrap taken into account. The last interval is a sample "
        "only when whole; the energy spans the whole window. Zones that contain each other are never added. "
        "The relative standard uncertainty of the counters, 5 % for packages and 10 % for memory, is inferred: "
        "processor makers state none, and published comparisons with meters (Khan et al. 2018, Desrochers et al. "
        "2016) find the trend right with offsets that differ between models.",
    .source =
        "Linux Documentation/power/powercap; K. N. Khan et al., RAPL in Action, ACM TOMPECS 3(2), 2018; "
        "S. Desrochers et al., A Validation of DRAM RAPL Power Measurements, MEMSYS 2016.",
    .needs = "RAPL counters under powercap, readable (root)",
    .deadline = {kLongestSoak_s},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// One counter and what it has shown.
class Meter {
 public:
  explicit Meter(RaplZone zone) : zone_(std::move(zone)), last_uj_(read_energy_uj(zone_)), last_(Clock::now()) {}

  /// Reads the counter; `whole` is false for the rest at the end.
  void read(bool whole) {
    const std::uint64_t now_uj = read_energy_uj(zone_);
    const auto now = Clock::now();
    const double time_s = std::chrono::duration<double>(now - last_).count();
    const std::uint64_t energy_uj = energy_between_uj(last_uj_, now_uj, zone_.range_uj);
    if (whole) {
      series_.add(energy_uj, time_s);
    } else {
      series_.close(energy_uj, time_s);
    }
    longest_s_ = std::max(longest_s_, time_s);
    last_uj_ = now_uj;
    last_ = now;
  }
  [[nodiscard]] const RaplZone& zone() const { return zone_; }
  [[nodiscard]] const EnergySeries& series() const { return series_; }
  [[nodiscard]] double longest_s() const { return longest_s_; }

 private:
  RaplZone zone_;
  std::uint64_t last_uj_;
  Clock::time_point last_;
  EnergySeries series_;
  double longest_s_ = 0;
};

/// Reads all meters on a fixed grid until `duration_s` (0: no limit) or a stop. A reading that is late is not made up
/// for: its interval is simply longer.
void watch(std::vector<Meter>& meters, double interval_s, double duration_s) {
  const auto begin = Clock::now();
  const auto elapsed_s = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const double end_s = duration_s > 0 ? duration_s : kLongestSoak_s;
  double due_s = interval_s;
  while (due_s <= end_s) {
    sleep_until_stopped(std::chrono::duration<double>(due_s - elapsed_s()));
    if (stop_requested()) break;
    for (auto& meter : meters) meter.read(true);
    while (due_s <= elapsed_s()) due_s += interval_s;
  }
  if (!stop_requested()) sleep_until_stopped(std::chrono::duration<double>(end_s - elapsed_s()));
  for (auto& meter : meters) meter.read(false);
}

void record_meter(const Meter& meter, Recorder& record) {
  const bool dram = meter.zone().domain == "dram";
  const Subject subject{.kind = "cpu", .id = meter.zone().package};
  record.measurement(dram ? "power_dram" : "power",
                     Sampling{.samples = meter.series().power_w(), .warmup = {}, .stopped = "time_cap"}, subject);
  record.measurement(dram ? "energy_dram" : "energy", meter.series().energy_j(), subject);
}

void measure(const Parameters& given, Recorder& record) {
  const double interval_s = given.seconds("interval").count;
  if (interval_s < kShortestInterval_s || interval_s > kLongestInterval_s) {
    throw std::runtime_error(fmt::format("interval: {} s is not between {} s and {} s", interval_s, kShortestInterval_s,
                                         kLongestInterval_s));
  }
  const RaplZones zones = find_rapl_zones(given.text("powercap"));
  std::vector<Meter> meters(zones.measured.begin(), zones.measured.end());
  watch(meters, interval_s, given.seconds("duration").count);

  // Hypervisors show counters that stand still, and a processor that runs draws power: such a zone tells nothing.
  const auto moves = [](const Meter& meter) { return meter.series().energy_j() > 0; };
  if (std::ranges::none_of(meters,
                           [&](const Meter& meter) { return meter.zone().domain == "package" && moves(meter); })) {
    throw Skip(fmt::format("{} did not move in {:.3f} s; the hypervisor passes no energy on",
                           meters.front().zone().path, meters.front().series().time_s()));
  }
  std::vector<std::string> domains;
  double longest_s = 0;
  for (const Meter& meter : meters) {
    const std::string label = fmt::format("{}/{}", meter.zone().package, meter.zone().domain);
    if (!moves(meter)) {
      record.note(fmt::format("{} did not move and is not recorded", label));
      continue;
    }
    record_meter(meter, record);
    domains.push_back(label);
    longest_s = std::max(longest_s, meter.longest_s());
  }
  const EnergySeries& series = meters.front().series();
  record.condition("instrument", std::string("rapl"));
  record.condition("interval_s", interval_s);
  record.condition("interval_max_s", longest_s);
  record.condition("intervals_per_sample", std::int64_t{series.intervals_per_sample()});
  record.condition("window_s", series.time_s());
  record.condition("domains", fmt::format("{}", fmt::join(domains, " ")));
  if (!zones.left_out.empty()) record.condition("domains_left_out", fmt::format("{}", fmt::join(zones.left_out, " ")));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::kSpec, assay::measure); }
