// power_sampler: electric power and energy during a step, from the counters the machine has.
#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/nvml/nvml_api.h"
#include "probes/power/gpu_power.h"
#include "probes/power/meter.h"
#include "probes/power/rapl.h"

namespace assay::power {
namespace {

using Clock = std::chrono::steady_clock;

// A package at 1 kW wraps an AMD counter (65.5 kJ) in 65 s: an interval up to 1 s cannot miss a wrap.
constexpr double kLongestInterval_s = 1;
// RAPL counters move about once a millisecond; under 10 ms that grain would be over 10 % of a sample.
constexpr double kShortestInterval_s = 0.01;
// A companion ends when its step does; a week is the longest soak in use.
constexpr double kLongestSoak_s = 7.0 * 24 * 3600;

constexpr Parameter kParameters[] = {
    parameter("interval", "s", "500ms", "time between readings, 10ms to 1s", "100ms"),
    parameter("duration", "s", "0s", "end after this time; 0 means on SIGTERM"),
    parameter("powercap", "", "/sys/class/powercap", "directory of the RAPL zones"),
    parameter("nvml_library", "", nvml_api::kLibrary, "file name or path of NVML"),
};
constexpr Metric kMetrics[] = {
    lower("power", "W", "energy of one processor package or one GPU over the true time of each interval",
          Recorded::always, 0.05),
    lower("energy", "J", "energy of one processor package or one GPU over the whole window", Recorded::always, 0.05),
    lower("power_dram", "W", "the same of the memory behind one package, where RAPL has a dram zone",
          Recorded::if_present, 0.1),
    lower("energy_dram", "J", "the same of the memory behind one package, where RAPL has a dram zone",
          Recorded::if_present, 0.1),
    lower("power_average", "W", "power of one GPU averaged over a second by its driver, where the driver reports it",
          Recorded::if_reported, 0.05),
    lower("power_instant", "W", "power of one GPU at each reading, where the driver reports it", Recorded::if_reported,
          0.05),
    lower("power_module", "W",
          "power of the module that one GPU shares with its processor (a superchip), at each reading",
          Recorded::if_present, 0.05),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "instrument", .meaning = "which counters were read: rapl, nvml, amd_smi, or several with spaces between"},
    {.name = "interval_s", .meaning = "time between readings that was asked for, in s"},
    {.name = "interval_max_s",
     .meaning =
         "longest time between two readings of one counter, in s; a wrap is missed when the counter wraps twice in it"},
    {.name = "intervals_per_sample",
     .meaning = "intervals that one power sample spans; above 1 in windows of more than 100,000 intervals"},
    {.name = "window_s", .meaning = "time from the first to the last reading, in s"},
    if_occurred("instruments_absent", "why an instrument was not read"),
    if_occurred("nvml_library", "path of the NVML that answered"),
    if_present("driver_version", "version of the NVIDIA driver, or of amdgpu where AMD SMI is the instrument"),
    if_present("domains", "RAPL zones measured, none of which contains another"),
    if_present("domains_left_out",
               "zones not measured, where there are any: they are part of a measured zone (core, uncore) or contain "
               "one (psys)"),
};
constexpr ProbeSpec kSpec{
    .name = "power_sampler",
    .companion = true,
    .measures = "Electric power and energy of processor packages, their memory and GPUs while something else runs.",
    .method =
        "Reads the energy counter of every package, dram zone and GPU each interval (of a GPU no oftener than every "
        "0.4 s, because the driver refreshes it 10 to 50 times a second); a sample is the counter's increase over the "
        "time between the two readings, with one wrap taken into account. The last interval is a sample only when "
        "whole; the energy spans the whole window. Zones that contain each other are never added. The relative "
        "standard uncertainty of the counters, 5 % for packages and 10 % for memory, is inferred: processor makers "
        "state none, and published comparisons with meters (Khan et al. 2018, Desrochers et al. 2016) find the trend "
        "right with offsets that differ between models. The 5 % of GPUs is inferred from Yang et al. 2024, who find "
        "errors of up to 5 % against meters. The driver's own averages and readings are kept beside it: on A100 and "
        "H100 they see only a part of the time, so they are never added up to energy. AMD's boards are read by AMD "
        "SMI, with the same uncertainty inferred; that has run over a made-up library only, on no AMD GPU yet.",
    .source =
        "Linux Documentation/power/powercap; K. N. Khan et al., RAPL in Action, ACM TOMPECS 3(2), 2018; S. Desrochers "
        "et al., A Validation of DRAM RAPL Power Measurements, MEMSYS 2016; NVIDIA NVML API Reference Guide; Z. Yang "
        "et al., Part-time Power Measurements: nvidia-smi's Lack of Attention, SC24 (arXiv 2312.02741).",
    .needs = "RAPL counters under powercap, readable (root), the NVIDIA driver, or amdgpu with AMD SMI of ROCm 7.0",
    .deadline = {kLongestSoak_s},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// The instruments of this machine, and why others are not there.
struct Instruments {
  std::optional<RaplZones> rapl;
  std::vector<GpuPower> gpus;
  std::vector<std::string> absences;
};

void find_instruments(const Parameters& given, Instruments& found) {
  try {
    found.rapl = find_rapl_zones(given.text("powercap"));
  } catch (const Skip& skip) {
    found.absences.emplace_back(skip.what());  // one instrument is enough; without any the probe skips with these
  }
  found.gpus = gpu_power(given.text("nvml_library"), found.absences);
}

/// Everything that is read on the way.
struct Meters {
  std::vector<EnergyMeter> energy;
  std::vector<GaugeMeter> gauges;

  void read(bool whole) {
    for (auto& meter : energy) meter.read(whole);
    if (!whole) return;  // the rest at the end is no reading of its own
    for (auto& meter : gauges) meter.read();
  }
};

Meters meters_of(const Instruments& instruments) {
  Meters meters;
  if (instruments.rapl) {
    for (const RaplZone& zone : instruments.rapl->measured) meters.energy.emplace_back(rapl_counter(zone));
  }
  for (const GpuPower& vendor : instruments.gpus) {
    for (const auto& counter : vendor.counters) meters.energy.emplace_back(counter);
    for (const auto& gauge : vendor.gauges) meters.gauges.emplace_back(gauge);
  }
  return meters;
}

/// Reads all meters on a fixed grid until `duration_s` (0: no limit) or a stop. A reading that is late is not made up
/// for: its interval is simply longer.
void watch(Meters& meters, double interval_s, double duration_s) {
  const auto begin = Clock::now();
  const auto elapsed_s = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const double end_s = duration_s > 0 ? duration_s : kLongestSoak_s;
  double due_s = interval_s;
  while (due_s <= end_s) {
    sleep_until_stopped(std::chrono::duration<double>(due_s - elapsed_s()));
    if (stop_requested()) break;
    meters.read(true);
    while (due_s <= elapsed_s()) due_s += interval_s;
  }
  if (!stop_requested()) sleep_until_stopped(std::chrono::duration<double>(end_s - elapsed_s()));
  meters.read(false);
}

Sampling sampling_of(std::vector<double> power_w) {
  return {.samples = std::move(power_w), .warmup = {}, .stopped = "time_cap"};
}

void record_meter(const EnergyMeter& meter, Recorder& record) {
  const EnergyCounter& counter = meter.counter();
  record.measurement(counter.power_metric, sampling_of(meter.series().power_w()), counter.subject);
  record.measurement(counter.energy_metric, meter.series().energy_j(), counter.subject);
}

/// Records every counter that moved, and the conditions that hold for all. Throws Skip when none did.
void record_meters(const Meters& meters, Instruments& instruments, Recorder& record) {
  const auto gives = [](const EnergyMeter& meter) { return meter.moves() && meter.counter().power_metric == "power"; };
  // Hypervisors show counters that do not move, and a processor that runs draws power: such a zone measures nothing.
  if (std::ranges::none_of(meters.energy, gives)) {
    const EnergyMeter& first = meters.energy.front();
    instruments.absences.push_back(fmt::format("{} did not move in {:.3f} s; the hypervisor passes no energy on",
                                               first.counter().source, first.series().time_s()));
    throw Skip(fmt::format("{}", fmt::join(instruments.absences, "; ")));
  }
  std::vector<std::string> domains;
  double longest_s = 0;
  std::set<std::string> of_gpus;  // their libraries
  for (const EnergyMeter& meter : meters.energy) {
    const EnergyCounter& counter = meter.counter();
    if (meter.broken()) {
      record.note(fmt::format("{} stopped answering after {:.3f} s", counter.name, meter.series().time_s()));
    }
    if (!meter.moves()) {
      record.note(fmt::format("{} did not move and is not recorded", counter.name));
      continue;
    }
    record_meter(meter, record);
    longest_s = std::max(longest_s, meter.longest_s());
    if (counter.subject.kind == "gpu") of_gpus.insert(counter.source);
    if (counter.subject.kind == "cpu") domains.push_back(counter.name);
  }
  for (const GaugeMeter& meter : meters.gauges) {
    if (meter.power_w().empty()) continue;
    record.measurement(meter.gauge().metric, sampling_of(meter.power_w()), meter.gauge().subject);
  }
  std::vector<std::string> names;
  if (!domains.empty()) names.emplace_back("rapl");
  for (const GpuPower& vendor : instruments.gpus)
    if (of_gpus.contains(vendor.library)) names.push_back(vendor.instrument);
  record.condition("instrument", fmt::format("{}", fmt::join(names, " ")));
  record.condition("interval_max_s", longest_s);
  if (!domains.empty()) record.condition("domains", fmt::format("{}", fmt::join(domains, " ")));
}

void measure(const Parameters& given, Recorder& record) {
  const double interval_s = given.seconds("interval").count;
  if (interval_s < kShortestInterval_s || interval_s > kLongestInterval_s) {
    throw std::runtime_error(fmt::format("interval: {} s is not between {} s and {} s", interval_s, kShortestInterval_s,
                                         kLongestInterval_s));
  }
  Instruments instruments;
  find_instruments(given, instruments);
  Meters meters = meters_of(instruments);
  if (meters.energy.empty()) throw Skip(fmt::format("{}", fmt::join(instruments.absences, "; ")));
  watch(meters, interval_s, given.seconds("duration").count);
  record_meters(meters, instruments, record);

  const EnergySeries& series = meters.energy.front().series();
  record.condition("interval_s", interval_s);
  record.condition("intervals_per_sample", std::int64_t{series.intervals_per_sample()});
  record.condition("window_s", series.time_s());
  if (!instruments.absences.empty()) {
    record.condition("instruments_absent", fmt::format("{}", fmt::join(instruments.absences, "; ")));
  }
  if (instruments.rapl && !instruments.rapl->left_out.empty()) {
    record.condition("domains_left_out", fmt::format("{}", fmt::join(instruments.rapl->left_out, " ")));
  }
  for (const GpuPower& vendor : instruments.gpus) {
    if (vendor.instrument == "nvml") record.condition("nvml_library", vendor.library);
    if (&vendor == &instruments.gpus.front() && !vendor.driver.empty())
      record.condition("driver_version", vendor.driver);
  }
}

}  // namespace
}  // namespace assay::power

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::power::kSpec, assay::power::measure); }
