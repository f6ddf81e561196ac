// power_agreement: whether a node's BMC and its energy counters agree at idle and under two loads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/host/fma_peak.h"
#include "probes/meters/agreement.h"
#include "probes/meters/bmc_device.h"
#include "probes/nvml/nvml.h"
#include "probes/power/in_band_power.h"

namespace assay::power {
namespace {

constexpr double kTimeout_s = 5;
constexpr std::uint64_t kRounds =
    1 << 16;  // of the kernel, well under a millisecond: the longest a stop goes unnoticed
constexpr double kShares[] = {0, 0.5, 1};

constexpr Parameter kParameters[] = {
    parameter("device", "", "/dev/ipmi0", "the kernel's IPMI device"),
    parameter("powercap", "", "/sys/class/powercap", "directory of the RAPL zones"),
    parameter("nvml_library", "", nvml_api::kLibrary, "file name or path of NVML"),
    spent("window", "60s", "length of each of the five windows of a level; a minute is the published procedure", "2s",
          meters::kWindows* std::size(kShares)),
    spent("settle", "120s", "time before the windows of a level", "2s", std::size(kShares)),
    parameter("interval", "s", "1s", "time between readings, 0.1s to 1s", "200ms"),
    parameter("threads", "1", "0", "threads of the full load; 0: one for each CPU"),
};
constexpr Metric kMetrics[] = {
    neither("gain", "1", "rise of the BMC's power over the rise of packages, memory and GPUs together"),
    neither("offset", "W",
            "the BMC's power where that of packages, memory and GPUs would be none: fans, drives, board and losses"),
    higher("r_squared", "1", "share of the variation that the line has"),
    neither("bmc_power", "W", "Olympic mean of the BMC's power over five windows of a level (at.load: 0, 0.5, 1)",
            Recorded::always, 0.05),
    neither("in_band_power", "W", "the same of packages, memory and GPUs together", Recorded::always, 0.05),
    lower("itue", "1",
          "the BMC's power over that of packages, memory and GPUs under the full load: watts of the node for each "
          "watt of its compute components, adapters and drives counted as overhead",
          Recorded::always, 0.07),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "meter_doubts", .meaning = "doubts about the BMC's or the counters' readings, or none"},
    {.name = "levels_reached", .meaning = "whether the three levels differ by a tenth of the highest power"},
    {.name = "boundary", .meaning = "the counters that are added up on the side of the node's parts"},
    {.name = "window_s", .meaning = "length of a window, in s"},
    {.name = "threads", .meaning = "threads of the full load"},
    {.name = "readings", .meaning = "how often the BMC answered"},
    {.name = "faults", .meaning = "how often it did not"},
};
constexpr ProbeSpec kSpec{
    .name = "power_agreement",
    .revision = 2,
    .measures =
        "Whether the power reported by a node's BMC moves with the energy counters of its processors, memory and GPUs.",
    .method =
        "Holds three levels of load: none, multiply-adds on half of the CPUs, and on all. After a time to settle, both "
        "sides are read once a second over five windows of a minute each; a level's figure is the mean of the windows "
        "without the highest and the lowest, as MLPerf Training compares two meters. A line through the three levels "
        "gives gain and offset of the BMC over the counters. The two sides have different boundaries (fans, drives, "
        "adapters and the losses of the supplies are on the BMC's side only), so their ratio says nothing, and the "
        "gain of one node says the most beside those of other nodes of its kind: a mis-scaled BMC stands out of the "
        "fleet's median. GPUs are not loaded by this probe. Gain and offset carry no uncertainty of an instrument: how "
        "instruments differ is what they tell. The 5 % of each side by itself is inferred, as power_bmc and "
        "power_sampler have it.",
    .source =
        "MLCommons training policies, power_measurement.adoc (five separate one-minute windows, Olympic score, idle "
        "and two loads); M. Patterson et al., TUE, a New Energy-Efficiency Metric Applied at ORNL's Jaguar, ISC 2013 "
        "(ITUE: energy into the IT equipment at the supply over that into its compute components); DCMI specification "
        "1.5; Linux Documentation/power/powercap.",
    .needs = "the kernel's IPMI device and a BMC with DCMI, RAPL counters or an NVIDIA driver, root, and two CPUs",
    .typical = {40},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// Threads that multiply and add until it ends.
class HostLoad {
 public:
  explicit HostLoad(std::size_t threads) {
    const host::FmaKernel kernel = host::fma_kernel(true);
    for (std::size_t i = 0; i < threads; ++i)
      workers_.emplace_back([this, kernel] {
        while (!over_.load(std::memory_order_relaxed)) kernel.run(kRounds);
      });
  }
  HostLoad(const HostLoad&) = delete;
  HostLoad& operator=(const HostLoad&) = delete;
  ~HostLoad() {
    over_ = true;
    for (auto& worker : workers_) worker.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> workers_;
};

/// Both sides of the comparison as they are read.
struct Sides {
  std::vector<meters::MeterReading> bmc, in_band;
  int faults = 0;
};

/// Reads both sides on the grid of `interval_s` for `time_s`.
void read_for(double time_s, double interval_s, const meters::MeterSession& bmc, InBandPower& in_band, Sides& sides) {
  const double end_s = meters::utc_now_s() + time_s;
  for (double now_s = meters::utc_now_s(); now_s < end_s; now_s = meters::utc_now_s()) {
    if (stop_requested()) throw std::runtime_error("stopped before the last level");
    if (auto one = in_band.read()) sides.in_band.push_back(std::move(*one));
    try {
      const auto answer = bmc();
      sides.bmc.insert(sides.bmc.end(), answer.begin(), answer.end());
    } catch (const meters::MeterFault&) {
      ++sides.faults;  // a window with too few readings says so
    }
    const double after_s = meters::utc_now_s();
    const double next_s = (std::floor(after_s / interval_s) + 1) * interval_s;
    sleep_until_stopped(std::chrono::duration<double>(std::min(next_s, end_s) - after_s));
  }
}

double level_of(const char* side, const std::vector<meters::MeterReading>& readings, double begin_s,
                const meters::Expected& expected) {
  const auto mean_w = meters::olympic_power_w(readings, begin_s, expected);
  if (!mean_w) throw std::runtime_error(fmt::format("{}: {}", side, mean_w.error().figures));
  return *mean_w;
}

void record_sides(const Sides& sides, const std::vector<double>& begins_s, const meters::Expected& expected,
                  Recorder& record) {
  std::vector<double> bmc_w, in_band_w;
  for (std::size_t i = 0; i < begins_s.size(); ++i) {
    bmc_w.push_back(level_of("BMC", sides.bmc, begins_s[i], expected));
    in_band_w.push_back(level_of("energy counters", sides.in_band, begins_s[i], expected));
    record.measurement("bmc_power", bmc_w.back(), {}, {{"load", kShares[i]}});
    record.measurement("in_band_power", in_band_w.back(), {}, {{"load", kShares[i]}});
  }
  std::vector<meters::NamedDoubt> doubts = meters::doubts_of(sides.bmc, expected);
  meters::Expected of_counters = expected;
  of_counters.integers_are_16_bit = false;
  for (auto& doubt : meters::doubts_of(sides.in_band, of_counters)) {
    doubt.figures = "energy counters " + doubt.figures;
    doubts.push_back(std::move(doubt));
  }
  const auto apart = meters::levels_doubt(in_band_w);
  const auto line = meters::line_through(in_band_w, bmc_w);
  if (!line)
    throw std::runtime_error(
        fmt::format("the load moved the energy counters from {:.0f} to {:.0f} W only, which gives no line; hint: stop "
                    "other load of the node, or load its GPUs",
                    in_band_w.front(), in_band_w.back()));
  record.measurement("gain", line->gain);
  record.measurement("offset", line->offset_w);
  record.measurement("r_squared", line->r_squared);
  record.measurement("itue", bmc_w.back() / in_band_w.back());
  record.condition("meter_doubts", doubts.empty() ? "none" : meters::text_of(doubts));
  record.condition("levels_reached", !apart.has_value());
  record.condition("readings", static_cast<std::int64_t>(sides.bmc.size()));
  record.condition("faults", std::int64_t{sides.faults});
}

void measure(const Parameters& given, Recorder& record) {
  const double interval_s = given.seconds("interval").count, window_s = given.seconds("window").count;
  if (interval_s < 0.1 || interval_s > 1)
    throw std::runtime_error(fmt::format("interval: {} s is not between 0.1 s and 1 s", interval_s));
  if (window_s < 10 * interval_s)
    throw std::runtime_error(fmt::format("window: {} s has fewer than ten intervals", window_s));
  const std::size_t cpus = std::max(1U, std::thread::hardware_concurrency());
  const auto asked = static_cast<std::size_t>(given.count("threads"));
  const std::size_t threads = asked == 0 ? cpus : asked;
  if (threads < 2) throw Skip("one CPU has no half load: the procedure needs idle and two loads");
  const meters::MeterSession bmc = meters::open_bmc_device(given.text("device"), kTimeout_s);
  InBandPower in_band(given.text("powercap"), given.text("nvml_library"));
  try {
    (void)bmc();  // a BMC without DCMI is a reason not to load the node for twenty minutes
  } catch (const meters::MeterFault& fault) {
    throw Skip(fault.what());
  }
  const meters::Expected expected{
      .interval_s = interval_s, .window_s = window_s, .load_changed = true, .integers_are_16_bit = true};
  Sides sides;
  std::vector<double> begins_s;
  for (const double share : kShares) {
    const HostLoad load(static_cast<std::size_t>(std::lround(share * static_cast<double>(threads))));
    read_for(given.seconds("settle").count, interval_s, bmc, in_band, sides);
    begins_s.push_back(meters::utc_now_s());
    read_for(meters::kWindows * window_s + interval_s, interval_s, bmc, in_band, sides);
  }
  record_sides(sides, begins_s, expected, record);
  record.condition("boundary", in_band.boundary());
  record.condition("window_s", window_s);
  record.condition("threads", static_cast<std::int64_t>(threads));
}

}  // namespace
}  // namespace assay::power

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::power::kSpec, assay::power::measure); }
