// power_step: how fast and how cleanly the power of a node's processors follows a load that is switched.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <vector>

#include <cblas.h>
#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/host/blas_kernels.h"
#include "probes/power/host_load.h"
#include "probes/power/rapl.h"
#include "probes/power/step_watch.h"

namespace assay::power {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostReadings = 100'000;  // of one counter: some 2 MB of the 8 MiB that a line may have
constexpr double kHalfPeriod = 5;               // intervals, at least: edges cut two of them
constexpr double kTick_s = 0.005;               // between two looks at the level, at most

constexpr Parameter kParameters[] = {
    choice("shape", "step", "step square",
           "full load and none in turn, from ramp to ramp; or the same at a frequency, without ramps"),
    spent("hold", "20s", "each half of a step, the time before the first one, and the whole square", "2s", 2),
    parameter("ramp", "s", "2s", "of a step, up and down; 0s: an edge", "400ms"),
    parameter("steps", "1", "5", "of shape step: how many", "2"),
    parameter("frequency_mhz", "1", "1000", "of shape square, in thousandths of a Hz: 100 to 10000"),
    parameter("interval", "s", "50ms", "time between readings, 5ms to 1s"),
    parameter("threads", "1", "0", "threads of the load; 0: one for each CPU"),
    parameter("powercap", "", "/sys/class/powercap", "directory of the RAPL zones"),
};

constexpr Metric kMetrics[] = {
    neither("rise_time", "s", "10 to 90 % of each step up, where the counter shows it", Recorded::if_occurred, 0.06),
    lower("power_ramp", "W/s", "0.8 of the step over its rise time, where the counter shows it", Recorded::if_occurred,
          0.08),
    lower("overshoot", "1", "farthest reading beyond the new level over the step, where the counter shows it",
          Recorded::if_occurred),
    lower("settling_time", "s", "from the mark until readings stay within 5 % of the step, where the counter shows it",
          Recorded::if_occurred, 0.06),
    neither("step_size", "W", "new level less old one of each step up, where the counter shows it",
            Recorded::if_occurred, 0.05),
    lower("swing", "W",
          "mean of the upper half less that of the lower half of each period, where the shape is a square",
          Recorded::if_asked, 0.05),
    neither("power", "W", "of each package over each interval, from curve_begin_s on", Recorded::always, 0.05),
    neither("step_up", "s", "when the load began to rise, s since 1970"),
    neither("step_down", "s", "when the load began to fall, s since 1970"),
};

constexpr ConditionSpec kConditions[] = {
    {.name = "shape", .meaning = "the shape of the load"},
    if_asked("frequency_hz", "frequency of the square"),
    {.name = "ramp_s", .meaning = "of a step, in s"},
    {.name = "interval_s", .meaning = "mean time between readings, in s; a reading is the mean over it"},
    {.name = "curve_begin_s", .meaning = "when the first interval began, in s since 1970"},
    if_occurred("step_unseen", "why a counter shows no step"),
    {.name = "threads", .meaning = "threads that multiply"},
};

constexpr ProbeSpec kSpec{
    .name = "power_step",
    .measures = "Rise, ramp, overshoot and settling of the power of a node's processors when their load is switched.",
    .method =
        "Multiplies matrices of normal numbers on all CPUs, at a level that goes from none to full and back, in ramps "
        "of a given length or as a square, and reads the energy counter of each package once an interval: a reading is "
        "the mean power since the last one. A step is what step_response makes of it: the levels are medians of the "
        "halves of the holds away from the step, the rise is from 10 to 90 % of the way by straight lines, and the "
        "settling is within 5 %. A rise of less than five intervals is not seen and has no figure; an edge of "
        "processors never is. The relative standard uncertainty of 6 % of times is the 10 % within which a rise of "
        "five intervals is stated, as a bound; that of power, 5 %, is inferred as power_sampler has it. GPUs are not "
        "loaded by this probe. The ramp of a stop lasts a second.",
    .source = "arXiv 2508.14318 (ramps and 0.1 to 20 Hz matter to utilities); Linux Documentation/power/powercap.",
    .needs = "RAPL counters under powercap, readable (root), and OpenBLAS kernels for the processor",
    .typical = {190},
    .deadline = {7200},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

struct StepPlan {
  bool square = false;
  double hold_s = 20, ramp_s = 2, frequency_hz = 1, interval_s = 0.05;
  int steps = 5;

  /// From the begin: a hold of nothing, then the shape.
  [[nodiscard]] double length_s() const { return square ? 2 * hold_s : hold_s + 2 * hold_s * steps; }
  [[nodiscard]] double level_at(double at_s) const {
    const double in_s = at_s - hold_s;
    if (in_s < 0 || at_s >= length_s()) return 0;
    if (square) return std::fmod(in_s * frequency_hz, 1.0) < 0.5 ? 1 : 0;
    const double in_step_s = std::fmod(in_s, 2 * hold_s);
    if (ramp_s <= 0) return in_step_s < hold_s ? 1 : 0;
    if (in_step_s < hold_s) return std::min(1.0, in_step_s / ramp_s);
    return std::max(0.0, 1 - (in_step_s - hold_s) / ramp_s);
  }
};

StepPlan step_plan(const Parameters& given) {
  const StepPlan plan{.square = given.text("shape") == "square",
                      .hold_s = given.seconds("hold").count,
                      .ramp_s = given.seconds("ramp").count,
                      .frequency_hz = static_cast<double>(given.count("frequency_mhz")) / 1000,
                      .interval_s = given.seconds("interval").count,
                      .steps = static_cast<int>(given.count("steps"))};
  if (plan.interval_s < 0.005 || plan.interval_s > 1) throw BadParameter("interval: is not between 5ms and 1s");
  if (plan.hold_s < 1 || plan.hold_s > 600) throw BadParameter("hold: is not between 1s and 600s");
  if (plan.ramp_s > plan.hold_s / 2) throw BadParameter("ramp: is over half of hold, which leaves no level");
  if (plan.steps < 1 || plan.steps > 100) throw BadParameter("steps: is not between 1 and 100");
  if (plan.frequency_hz < 0.1 || plan.frequency_hz > 10)
    throw BadParameter("frequency_mhz: is not between 100 and 10000");
  if (plan.square && 0.5 / plan.frequency_hz < kHalfPeriod * plan.interval_s)
    throw BadParameter(
        fmt::format("interval: half a period of {:g} Hz has less than {:g} of it", plan.frequency_hz, kHalfPeriod));
  if (plan.length_s() / plan.interval_s > static_cast<double>(kMostReadings))
    throw BadParameter(fmt::format("interval: the load has more than {} of it", kMostReadings));
  if (plan.length_s() > 7000) throw BadParameter("hold: the whole load would take over 7000 s");
  return plan;
}

/// The counters of the packages, read together, and the load that is switched.
class Switching {
 public:
  Switching(const StepPlan& plan, std::vector<EnergyCounter> counters, LoadEngine& engine)
      : plan_(plan), counters_(std::move(counters)), engine_(engine), power_(counters_.size()) {}

  void run() {
    begin_utc_s_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    begin_ = Clock::now();
    read(true);
    double due_s = plan_.interval_s, level = 0;
    int way = 0;
    for (double now = now_s(); now < plan_.length_s() && !stop_requested(); now = now_s()) {
      const double next = plan_.level_at(now);
      const int turn = next > level ? 1 : next < level ? -1 : 0;
      if (turn != 0 && turn != way) (turn > 0 ? switched_.up : switched_.down).push_back(now);
      way = turn;
      level = next;
      engine_.work_at(level);
      if (now >= due_s) {
        read(false);
        while (due_s <= now_s()) due_s += plan_.interval_s;
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(due_s - now_s(), 0.0, kTick_s)));
    }
    for (double gone = 0; gone < 1 && level > 0; gone += kTick_s) {
      engine_.work_at(level * (1 - gone));
      std::this_thread::sleep_for(std::chrono::duration<double>(kTick_s));
    }
    engine_.work_at(0);
    if (stop_requested()) throw std::runtime_error("stopped before the last step");
  }

  void record(Recorder& record) const {
    const double interval_s = last_s_ / static_cast<double>(power_.front().size());
    for (std::size_t i = 0; i < counters_.size(); ++i)
      record_counter(counters_[i].subject, power_[i], interval_s, record);
    for (const auto& [metric, times_s] : {std::pair{"step_up", switched_.up}, std::pair{"step_down", switched_.down}}) {
      std::vector<double> utc_s;
      for (const double time_s : times_s) utc_s.push_back(begin_utc_s_ + time_s);
      record.measurement(metric, {.samples = utc_s, .warmup = {}, .stopped = "fixed"});
    }
    record.condition("interval_s", interval_s);
    record.condition("curve_begin_s", begin_utc_s_);
  }

 private:
  [[nodiscard]] double now_s() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void read(bool first) {
    const double at_s = now_s();
    for (std::size_t i = 0; i < counters_.size(); ++i) {
      const auto value = counters_[i].read_uj();
      if (!value) throw std::runtime_error(fmt::format("{} stopped answering", counters_[i].name));
      if (first)
        last_uj_.push_back(*value);
      else
        power_[i].push_back(
            {.at_s = at_s,
             .value = static_cast<double>(energy_between_uj(last_uj_[i], *value, counters_[i].range_uj)) * 1e-6 /
                      (at_s - last_s_)});
      last_uj_[i] = *value;
    }
    last_s_ = at_s;
  }

  void record_counter(const Subject& subject, const std::vector<TimedValue>& power, double interval_s,
                      Recorder& record) const {
    std::vector<double> watts;
    for (const auto& one : power) watts.push_back(one.value);
    record.measurement("power", {.samples = std::move(watts), .warmup = {}, .stopped = "fixed"}, subject);
    const auto tell = [&](const char* metric, std::vector<double> samples) {
      if (!samples.empty())
        record.measurement(metric, {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"}, subject);
    };
    if (plan_.square) return tell("swing", swings(power, switched_, interval_s));
    const StepsShown shown = steps_shown(power, switched_, 0, plan_.length_s(), interval_s);
    if (!shown.unseen.empty()) return record.condition("step_unseen", shown.unseen, subject);
    const auto each = [&](auto what) {
      std::vector<double> samples;
      for (const auto& one : shown.steps) samples.push_back(what(one));
      return samples;
    };
    tell("rise_time", each([](const StepResponse& one) { return one.rise_s; }));
    tell("power_ramp", each([](const StepResponse& one) { return one.slope; }));
    tell("overshoot", each([](const StepResponse& one) { return one.overshoot; }));
    tell("settling_time", each([](const StepResponse& one) { return one.settling_s; }));
    tell("step_size", each([](const StepResponse& one) { return one.high - one.low; }));
  }

  StepPlan plan_;
  std::vector<EnergyCounter> counters_;
  LoadEngine& engine_;
  std::vector<std::vector<TimedValue>> power_;
  std::vector<std::uint64_t> last_uj_;
  SwitchTimes switched_;
  Clock::time_point begin_;
  double begin_utc_s_ = 0, last_s_ = 0;
};

void measure(const Parameters& given, Recorder& record) {
  const StepPlan plan = step_plan(given);
  host::require_wide_kernels(openblas_get_corename());
  std::vector<EnergyCounter> counters;
  for (const RaplZone& zone : find_rapl_zones(given.text("powercap")).measured)
    if (zone.domain == "package") counters.push_back(rapl_counter(zone));
  const std::size_t cpus = std::max(1U, std::thread::hardware_concurrency());
  const auto asked = static_cast<std::size_t>(given.count("threads"));
  LoadEngine engine(host_load(asked > 0 ? asked : cpus));
  Switching switching(plan, std::move(counters), engine);
  switching.run();
  switching.record(record);
  record.condition("shape", given.text("shape"));
  if (plan.square) record.condition("frequency_hz", plan.frequency_hz);
  record.condition("ramp_s", plan.square ? 0 : plan.ramp_s);
  record.condition("threads", static_cast<std::int64_t>(asked > 0 ? asked : cpus));
}

}  // namespace
}  // namespace assay::power

int main(int argc, char** argv) {
  assay::host::restart_with_wide_kernels(openblas_get_corename(), argv);
  return assay::probe_main(argc, argv, assay::power::kSpec, assay::power::measure);
}
