// thermal_soak: a node under a load that lasts until nothing warms up any more, and for a while after that.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <cblas.h>
#include <fmt/format.h>

#include "probes/amd/gpu_watch.h"
#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/cuda/hbm_walk.h"
#include "probes/host/base_clock.h"
#include "probes/host/blas_kernels.h"
#include "probes/nvml/gpu_watch.h"
#include "probes/power/gpu_load.h"
#include "probes/power/in_band_power.h"
#include "probes/power/load_choice.h"
#include "probes/power/soak.h"
#include "probes/power/thermal_sensors.h"

namespace assay::power {
namespace {

constexpr double kLongest_s = 26 * 3600;        // a day's soak and its warm-up
constexpr double kLeastReadings = 20;           // in a window: one for each of its parts
constexpr std::size_t kMostReadings = 100'000;  // of one series: some 2 MB of the 8 MiB that a line may have

constexpr Parameter kParameters[] = {
    choice("engine", "cpu", "cpu gpu job none",
           "engine of the products: the CPUs in FP64, the GPUs in BF16 by cuBLASLt or hipBLASLt; job: the GPUs "
           "multiply, copy "
           "and walk through all their memory at once, and every result is checked; none: something else loads "
           "the node"),
    choice("on_mismatch", "end", "end continue", "of engine job: whether the first wrong result ends the soak"),
    spent("window", "10min", "the time over which slopes are taken, 1s to 1h", "8s"),
    choice("slopes", "steady", "steady rehearsal",
           "steady: at most 0.1 K a minute, and 0.5 % in a window; rehearsal: 1 K and 1 % in a window of seconds",
           "rehearsal"),
    spent("hold", "30min", "how long it is watched once steady", "4s"),
    parameter("time_cap", "s", "240min", "when it ends, steady or not", "30s"),
    parameter("ramp", "s", "5s", "of the load, up and down", "500ms"),
    parameter("interval", "s", "1s", "time between readings, 50ms to 60s", "100ms"),
    kLoadThreadsParameter,
    kLoadGpusParameter,
    kLoadLibraryParameter,
    kLoadOrderParameter,
    kSensorRootParameter,
    kSensorLibraryParameter,
};

constexpr Metric kMetrics[] = {
    lower("time_to_steady", "s", "from the begin of the load to the steady mark", Recorded::if_occurred),
    lower("temperature", "degC", "of each package and GPU at each reading after the mark, where the machine reports it",
          Recorded::if_reported),
    lower("memory_temperature", "degC", "of each GPU's memory likewise, where the driver reports it",
          Recorded::if_reported),
    lower("gpu_temperature_spread", "K", "hottest less coolest GPU of the node at each reading after the mark",
          Recorded::if_present),
    higher("clock", "Hz", "mean of a package's CPUs, or SM clock of a GPU, at each reading after the mark",
           Recorded::if_reported),
    higher("clock_over_base", "1", "clock of a package over the base clock of its processors", Recorded::if_reported),
    neither("power", "W", "packages, memory and GPUs together at each reading after the mark", Recorded::if_present,
            0.05),
    higher("rate", "FLOP/s", "of the load in each interval after the mark", Recorded::if_asked),
    higher("rate_kept", "1", "mean rate of the last window over that of the first one", Recorded::if_asked),
    lower("throttled_time", "s",
          "how long a package was slowed down for its temperature after the mark, in the whole soak without one, where "
          "it counts that",
          Recorded::if_reported),
    lower("gpu_throttled_time", "s", "the same of a GPU, where its driver counts that", Recorded::if_reported),
    lower("brake_time", "s", "the same of a GPU that a signal from outside slowed down, where its driver counts that",
          Recorded::if_reported),
    fault(
        "mismatches",
        "wrong results of products, and wrong words of copies and of memory, of all GPUs in the whole soak, where the "
        "engine is job",
        Recorded::if_asked),
};

constexpr ConditionSpec kOwnConditions[] = {
    {.name = "steady", .meaning = "whether temperatures, clocks and power stopped moving, and stayed so to the end"},
    if_occurred("unsteady_because", "the series that moved at the last look"),
    {.name = "marks_withdrawn", .meaning = "how often it looked steady and moved again"},
    {.name = "window_s", .meaning = "time over which slopes were taken, in s"},
    if_occurred("held_s", "time from the steady mark to the end, in s"),
    {.name = "interval_s", .meaning = "time between readings, in s"},
    {.name = "soak_begin_s", .meaning = "when the load began, in s since 1970 by this machine's clock"},
    {.name = "series_watched", .meaning = "how many temperatures, clocks and sums of power decide on steadiness"},
    {.name = "gpus_watched", .meaning = "how many GPUs are among them"},
    if_occurred("gpus_absent", "why no GPU is among them"),
    if_present("power_boundary", "the counters that power adds up"),
    if_occurred("power_absent", "why power is not among them"),
    {.name = "engine",
     .meaning = "engine of the products, with operands of normal numbers: cpu_gemm (FP64), gpu_gemm (BF16), gpu_job "
                "(BF16, with copies and a walk), none"},
    kLoadThreadsCondition,
    kLoadGpuCondition,
    if_occurred("ended_by_mismatch_s", "time from the begin of the load to the wrong result that ended it, in s"),
};
/// Readings of the GPUs of a job, of one vendor or the other: no soak owes any of it.
constexpr auto kNvidiaWatch = asked(nvml::kGpuWatchConditions);
constexpr auto kAmdWatch = asked(amd::kGpuWatchConditions);
constexpr bool is_of_both(const ConditionSpec& one) {
  return std::ranges::any_of(kNvidiaWatch, [&](const auto& other) { return other.name == one.name; });
}
/// What the watch of NVML has nothing like.
constexpr auto kAmdWatchAlone = [] {
  std::array<ConditionSpec, kAmdWatch.size() - std::ranges::count_if(kAmdWatch, is_of_both)> alone;
  std::ranges::remove_copy_if(kAmdWatch, alone.begin(), is_of_both);
  return alone;
}();
constexpr auto kConditions = join(kOwnConditions, kPartitionConditions, kJobConditions, cuda::kResultFaultConditions,
                                  cuda::kWalkConditions, kNvidiaWatch, kAmdWatchAlone);

constexpr ProbeSpec kSpec{
    .name = "thermal_soak",
    .revision = 7,
    .measures = "Temperatures, clocks, power and throttling of a node once a long load has warmed it up for good.",
    .method =
        "Multiplies matrices of normal numbers on all CPUs or GPUs, or watches while something else loads the node, "
        "and reads temperatures and clocks of packages and GPUs and the power by energy counters once an interval. "
        "Packages of AMD are numbered in the order of their PCI functions. "
        "Over a window (ten minutes) a line is put through twenty means of each series. The steady mark is set when "
        "every temperature moves by at most 0.1 K a minute, and every clock and the power by at most 0.5 % in a "
        "window, each slope with three standard errors added; a sensor of coarse steps that went one way in the window "
        "is not steady. When, a window or more after the mark, a slope is over its limit by three standard errors, the "
        "mark is withdrawn. It ends when the mark is as old as hold, or at time_cap. Readings before the mark are "
        "warm-up; without a mark only the last window is not. Engine job first checks its algorithm by samples and by "
        "products of whole numbers; then each GPU multiplies, copies 256 MiB and takes one step of a walk through the "
        "rest of its memory at once, again and again: every result is compared bit by bit with the first of the same "
        "operands, every word that is copied or stored with the one that was written, in all patterns that "
        "cuda_hbm_bandwidth "
        "has; errors, clocks and power are watched from begin to end, and at the end faults are put into results and "
        "slices as in cuda_gemm and cuda_hbm_bandwidth. The load of a stop is ramped down within four seconds. GPUs "
        "of AMD are loaded through HIP and hipBLASLt and watched by AMD SMI, under the same names where both vendors "
        "report a reading: that has run over made-up libraries only, on no AMD GPU yet. "
        "The limits of the slopes are proposals of this project. The relative standard uncertainty of power, 5 %, is "
        "inferred, as power_sampler has it.",
    .source =
        "Linux Documentation/hwmon (coretemp, k10temp), admin-guide/pm/cpufreq.rst, power/powercap; NVIDIA NVML API "
        "Reference Guide.",
    .needs =
        "a temperature of the processors (hwmon or thermal zones) or of GPUs with the NVIDIA driver, or with amdgpu "
        "and AMD SMI",
    .typical = {1200},
    .deadline = {kLongest_s},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

SoakPlan soak_plan(const Parameters& given) {
  const double window_s = given.seconds("window").count;
  const SoakPlan plan{
      .limits = given.text("slopes") == "steady" ? SteadyLimits{.window_s = window_s} : rehearsal_limits(window_s),
      .hold_s = given.seconds("hold").count,
      .cap_s = given.seconds("time_cap").count,
      .ramp_s = given.seconds("ramp").count,
      .interval_s = given.seconds("interval").count};
  const auto check = [](const char* name, double value, double least, double most) {
    if (value < least || value > most)
      throw BadParameter(fmt::format("{}: {:g} s is not between {:g} s and {:g} s", name, value, least, most));
  };
  check("interval", plan.interval_s, 0.05, 60);
  check("window", window_s, 1, 3600);
  check("hold", plan.hold_s, 1, 24 * 3600);
  check("ramp", plan.ramp_s, 0.1, 600);
  check("time_cap", plan.cap_s, window_s + plan.hold_s, kLongest_s - 3600);
  if (window_s < kLeastReadings * plan.interval_s)
    throw BadParameter(fmt::format("window: has less than {} intervals", kLeastReadings));
  if (plan.cap_s / plan.interval_s > static_cast<double>(kMostReadings))
    throw BadParameter(fmt::format("interval: time_cap has more than {} of it", kMostReadings));
  return plan;
}

/// The base clock of all processors, if reported.
std::optional<double> base_clock(const std::string& root) {
  const MachineTree tree(root);
  std::vector<int> cpus;
  for (const auto& name : tree.names("sys/devices/system/cpu")) {
    if (name.starts_with("cpu") && tree.number("sys/devices/system/cpu/" + name + "/topology/physical_package_id"))
      cpus.push_back(std::stoi(name.substr(3)));
  }
  return cpus.empty() ? std::nullopt : host::base_clock_hz(tree, cpus);
}

void measure(const Parameters& given, Recorder& record) {
  const SoakPlan plan = soak_plan(given);
  const ThermalSensors sensors(given.text("root"), given.text("nvml_library"));
  const bool warm = std::ranges::any_of(sensors.series(),
                                        [](const ThermalSeries& one) { return one.kind == SteadyKind::temperature; });
  if (!warm)
    throw Skip(
        fmt::format("no temperature to watch: neither hwmon (coretemp, k10temp) nor a thermal zone is there (a virtual "
                    "machine?), and {}",
                    sensors.no_gpus().empty() ? "no GPU reports one" : sensors.no_gpus()));
  std::optional<InBandPower> power;
  std::string no_power;
  try {
    const std::string& root = given.text("root");
    power.emplace((root == "/" ? "" : root) + "/sys/class/powercap", given.text("nvml_library"));
    (void)power->read();
  } catch (const Skip& skip) {
    no_power = skip.what();
  }
  std::optional<ChosenLoad> load;
  if (given.text("engine") != "none") load.emplace(given);
  const bool job = load && load->is_job(), to_first = given.text("on_mismatch") == "end";
  Soak soak(plan, sensors, power ? &*power : nullptr, load ? &load->engine() : nullptr);
  if (job) load->watch();
  soak.run([&] { return job && to_first && load->mismatches() > 0; });
  if (job) {
    load->end_watch();
    if (to_first && load->mismatches() > 0) record.condition("ended_by_mismatch_s", soak.lasted_s());
  }
  soak.record(record, base_clock(given.text("root")));
  record.condition("series_watched", static_cast<std::int64_t>(sensors.series().size() + (power ? 1 : 0)));
  record.condition("gpus_watched", static_cast<std::int64_t>(sensors.gpus()));
  if (sensors.gpus() == 0) record.condition("gpus_absent", sensors.no_gpus());
  if (power) record.condition("power_boundary", power->boundary());
  if (!power) record.condition("power_absent", no_power);
  if (load)
    load->record(record);
  else
    record.condition("engine", std::string("none"));
}

}  // namespace
}  // namespace assay::power

int main(int argc, char** argv) {
  assay::host::restart_with_wide_kernels(openblas_get_corename(), argv);
  return assay::probe_main(argc, argv, assay::power::kSpec, assay::power::measure);
}
