// power_cap: whether the limits of power that a node has in force are kept under a full load of its processors.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cblas.h>
#include <fmt/format.h>

#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/host/blas_kernels.h"
#include "probes/meters/bmc_device.h"
#include "probes/nvml/nvml_api.h"
#include "probes/power/gpu_power.h"
#include "probes/power/load_choice.h"
#include "probes/power/power_caps.h"

namespace assay::power {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTimeout_s = 5;   // of a BMC's answer
constexpr double kReached = 0.95;  // of a limit: below it nothing is shown of it
constexpr double kKept = 1.02;     // of a lowered limit: settled power is below it
constexpr double kWatts_uj = 1e-6;

constexpr Parameter kParameters[] = {
    spent("hold", "60s", "the full load, 1s to 1h", "3s"),
    parameter("ramp", "s", "5s", "of the load, up and down", "500ms"),
    parameter("lower_to", "1", "0",
              "per cent of each package's limit to which it is lowered half way through; 0: nothing is changed"),
    choice("allow_settings", "no", "no yes",
           "yes: lower_to may change a limit, which is put back in every end of this probe"),
    kLoadEngineParameter,
    kLoadThreadsParameter,
    kLoadGpusParameter,
    kLoadLibraryParameter,
    kLoadOrderParameter,
    parameter("powercap", "", "/sys/class/powercap", "directory of the RAPL zones"),
    parameter("nvml_library", "", nvml_api::kLibrary, "file name or path of NVML"),
    parameter("device", "", "/dev/ipmi0", "the kernel's IPMI device"),
};

constexpr Metric kMetrics[] = {
    lower("cap_share", "1",
          "power over the limit in force, as means of a second or of the limit's own window if that is longer, of each "
          "package, GPU and BMC, where it has a limit",
          Recorded::if_present, 0.05),
    lower("cap_settling_time", "s",
          "from lowering a limit until means of a second stay at most 2 % above it, where a limit was lowered",
          Recorded::if_occurred),
};

constexpr ConditionSpec kOwnConditions[] = {
    if_present("cap_w", "the limit in force, in W"),
    if_present("cap_window_s", "averaging time of the limit, in s"),
    if_present("cap_source", "the limit's path or command"),
    if_present("cap_reached", "whether power reached 0.95 of the limit, without which nothing is shown"),
    if_occurred("caps_absent", "which limits were not read, and why, where some were not"),
    {.name = "settings_changed", .meaning = "whether a limit was lowered and put back"},
    if_reported("smoothing_enabled", "whether the GPU smooths its power (Blackwell)"),
    if_reported("smoothing_floor", "the floor of the smoothed power, by the driver"),
    kLoadEngineCondition,
    kLoadThreadsCondition,
    kLoadGpuCondition,
};
constexpr auto kConditions = join(kOwnConditions, kPartitionConditions);

constexpr ProbeSpec kSpec{
    .name = "power_cap",
    .revision = 3,
    .measures = "Whether packages, GPUs and the node stay within the power limits that are in force.",
    .method =
        "Reads the lasting limit of each package (RAPL long_term), the enforced limit of each GPU (NVML or AMD SMI) "
        "and the power limit "
        "of the BMC (DCMI), multiplies matrices of normal numbers on all CPUs or GPUs, and holds means of a second, or "
        "of the limit's own window, against the limit. With lower_to and allow_settings it lowers the limit of each "
        "package half way through and takes the time until the power has settled; a guardian process puts the limit "
        "back in every end of the probe, SIGKILL included. Otherwise nothing is changed. How a GPU smooths its power "
        "is recorded and not judged. AMD SMI and the load of AMD's GPUs have run over made-up libraries only, on no "
        "AMD "
        "GPU yet. The relative standard uncertainty of 5 % is inferred, as power_sampler has it.",
    .source =
        "Linux Documentation/power/powercap; NVIDIA NVML API Reference Guide and nvml.h (fields 256 and 260); DCMI "
        "specification 1.5, 6.6.2.",
    .needs =
        "a limit of RAPL with its counter (root), of an NVIDIA driver or amdgpu with AMD SMI, or of a BMC with DCMI",
    .typical = {15},
    .deadline = {3800},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// A limit with the power of its part.
struct Watched {
  PowerCap cap;
  std::function<std::optional<double>()> energy_j;  ///< a counter; empty if power_w is read
  std::function<std::optional<double>()> power_w;
  std::vector<double> seconds_w = {};  ///< means of a second
  double last_j = 0;
};

struct Caps {
  meters::MeterSession bmc;
  std::deque<Watched> watched;
  std::string absent;

  void leave_out(const std::string& why) { absent += (absent.empty() ? "" : "; ") + why; }
};

/// A counter in J that never wraps back.
std::function<std::optional<double>()> joules_of(const EnergyCounter& counter) {
  auto last = std::make_shared<std::optional<std::uint64_t>>();
  auto sum_uj = std::make_shared<double>(0);
  return [counter, last, sum_uj]() -> std::optional<double> {
    const auto now = counter.read_uj();
    if (!now) return std::nullopt;
    if (*last) *sum_uj += static_cast<double>(energy_between_uj(**last, *now, counter.range_uj));
    *last = now;
    return *sum_uj * kWatts_uj;
  };
}

void find_packages(const std::string& powercap, Caps& caps) try {
  for (const RaplZone& zone : find_rapl_zones(powercap).measured) {
    if (zone.domain != "package") continue;
    if (auto cap = rapl_cap(zone))
      caps.watched.push_back({.cap = std::move(*cap), .energy_j = joules_of(rapl_counter(zone)), .power_w = {}});
    else
      caps.leave_out(zone.package + " has no lasting limit");
  }
} catch (const Skip& skip) {
  caps.leave_out(skip.what());
}

void find_gpus(const std::string& library, Caps& caps, Recorder& record) {
  std::vector<std::string> absences;
  for (const GpuPower& vendor : gpu_power(library, absences)) {
    for (std::size_t i = 0; i < vendor.counters.size(); ++i) {
      const GpuLimit& limit = vendor.limits[i];
      if (limit.smooths) record.condition("smoothing_enabled", *limit.smooths, limit.subject);
      if (limit.smoothing_floor) record.condition("smoothing_floor", *limit.smoothing_floor, limit.subject);
      if (!limit.limit_w) {
        caps.leave_out(limit.subject.id + " reports no limit");
        continue;
      }
      caps.watched.push_back({.cap = {.subject = limit.subject,
                                      .limit_w = *limit.limit_w,
                                      .source = vendor.instrument == "nvml" ? "NVML" : "AMD SMI",
                                      .file = {}},
                              .energy_j = joules_of(vendor.counters[i]),
                              .power_w = {}});
    }
  }
  for (const std::string& absence : absences) caps.leave_out(absence);
}

void find_bmc(const std::string& device, Caps& caps) try {
  const auto limit = meters::bmc_power_limit(device, kTimeout_s);
  if (!limit) return caps.leave_out("the BMC has no limit in force");
  caps.bmc = meters::open_bmc_device(device, kTimeout_s);
  caps.watched.push_back(
      {.cap = {.subject = {}, .limit_w = limit->limit_w, .window_s = limit->correction_s, .source = "DCMI", .file = {}},
       .energy_j = {},
       .power_w = [&caps]() -> std::optional<double> {
         try {
           const meters::MeterReading one = caps.bmc().front();
           return one.absent ? std::nullopt : std::optional(one.value);
         } catch (const meters::MeterFault&) {
           return std::nullopt;  // a second without an answer has no reading
         }
       }});
} catch (const std::exception& error) {  // Skip or MeterFault: the node is judged by its other limits
  caps.leave_out(error.what());
}

/// Means of as many seconds as the window of the limit has, one for each second.
std::vector<double> means_of(const Watched& one) {
  const auto width = static_cast<std::size_t>(std::max(1.0, std::ceil(one.cap.window_s)));
  std::vector<double> means;
  double sum = 0;
  for (std::size_t i = 0; i < one.seconds_w.size(); ++i) {
    sum += one.seconds_w[i];
    if (i >= width) sum -= one.seconds_w[i - width];
    if (i + 1 >= width) means.push_back(sum / static_cast<double>(width));
  }
  return means;
}

/// Reads every part once a second for `time_s` while the load works.
void watch_for(double time_s, Caps& caps, const LoadEngine& engine) {
  for (auto& one : caps.watched)
    if (one.energy_j) one.last_j = one.energy_j().value_or(0);
  const auto begin = Clock::now();
  auto last = begin;
  for (int second = 1; second <= static_cast<int>(time_s); ++second) {
    std::this_thread::sleep_until(begin + std::chrono::seconds(second));
    if (stop_requested()) throw std::runtime_error("stopped under the load; every limit is as it was");
    engine.check();
    const double passed_s = std::chrono::duration<double>(Clock::now() - last).count();
    last = Clock::now();
    for (auto& one : caps.watched) {
      const auto read = one.energy_j ? one.energy_j() : one.power_w();
      if (!read) continue;
      one.seconds_w.push_back(one.energy_j ? (*read - one.last_j) / passed_s : *read);
      if (one.energy_j) one.last_j = *read;
    }
  }
}

void ramp(LoadEngine& engine, double time_s, bool up) {
  const auto begin = Clock::now();
  for (double gone = 0; gone < time_s && !stop_requested();
       gone = std::chrono::duration<double>(Clock::now() - begin).count()) {
    engine.work_at(up ? gone / time_s : 1 - gone / time_s);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  engine.work_at(up ? 1 : 0);
}

/// After the last second above the lowered limit; unset if it never settled.
std::optional<double> settling_s(const std::vector<double>& seconds_w, double lower_w) {
  std::size_t settled = seconds_w.size();
  while (settled > 0 && seconds_w[settled - 1] <= kKept * lower_w) --settled;
  return settled < seconds_w.size() ? std::optional(static_cast<double>(settled)) : std::nullopt;
}

void record_caps(const Caps& caps, Recorder& record) {
  for (const auto& one : caps.watched) {
    auto shares = means_of(one);
    record.condition("cap_w", one.cap.limit_w, one.cap.subject);
    record.condition("cap_window_s", std::max(1.0, one.cap.window_s), one.cap.subject);
    record.condition("cap_source", one.cap.source, one.cap.subject);
    if (shares.empty()) continue;  // a window longer than the load
    for (double& share : shares) share /= one.cap.limit_w;
    record.condition("cap_reached", std::ranges::max(shares) >= kReached, one.cap.subject);
    record.measurement("cap_share", {.samples = std::move(shares), .warmup = {}, .stopped = "fixed"}, one.cap.subject);
  }
}

/// Lowers every package's limit, watches, and puts all back.
void watch_lowered(double share, double time_s, Caps& caps, const LoadEngine& engine, std::deque<LoweredCap>& lowered,
                   Recorder& record) {
  for (auto& one : caps.watched) one.seconds_w.clear();
  for (auto& one : lowered) one.lower();
  watch_for(time_s, caps, engine);
  for (auto& one : lowered) one.restore();
  for (const auto& one : caps.watched) {
    if (one.cap.file.empty()) continue;
    if (const auto time = settling_s(one.seconds_w, share * one.cap.limit_w))
      record.measurement("cap_settling_time", *time, one.cap.subject);
    else
      record.note(fmt::format("{} did not settle at {:.0f} W", one.cap.subject.id, share * one.cap.limit_w));
  }
}

void measure(const Parameters& given, Recorder& record) {
  const double hold_s = given.seconds("hold").count, ramp_s = given.seconds("ramp").count;
  const auto lower_to = given.count("lower_to");
  if (hold_s < 1 || hold_s > 3600) throw BadParameter("hold: is not between 1s and 1h");
  if (ramp_s < 0.1 || ramp_s > 60) throw BadParameter("ramp: is not between 100ms and 60s");
  if (lower_to != 0 && (lower_to < 50 || lower_to > 95)) throw BadParameter("lower_to: is neither 0 nor 50 to 95");
  if (lower_to != 0 && given.text("allow_settings") != "yes")
    throw BadParameter("lower_to: changes a setting of the machine; hint: allow_settings yes");
  Caps caps;
  find_packages(given.text("powercap"), caps);
  find_gpus(given.text("nvml_library"), caps, record);
  find_bmc(given.text("device"), caps);
  if (caps.watched.empty()) throw Skip("no limit of power is in force: " + caps.absent);
  const double share = static_cast<double>(lower_to) / 100;
  std::deque<LoweredCap> lowered;  // their guardians are there before the load's threads
  for (const auto& one : caps.watched)
    if (lower_to != 0 && !one.cap.file.empty()) lowered.emplace_back(one.cap, share * one.cap.limit_w);
  const ChosenLoad load(given);
  LoadEngine& engine = load.engine();
  ramp(engine, ramp_s, true);
  watch_for(hold_s, caps, engine);
  record_caps(caps, record);
  if (!lowered.empty()) watch_lowered(share, hold_s, caps, engine, lowered, record);
  ramp(engine, std::min(ramp_s, 4.0), false);
  record.condition("settings_changed", !lowered.empty());
  if (!caps.absent.empty()) record.condition("caps_absent", caps.absent.substr(0, kLongestValue));
  load.record(record);
}

}  // namespace
}  // namespace assay::power

int main(int argc, char** argv) {
  assay::host::restart_with_wide_kernels(openblas_get_corename(), argv);
  return assay::probe_main(argc, argv, assay::power::kSpec, assay::power::measure);
}
