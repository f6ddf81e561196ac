// load_bank: all nodes work at one level, from one start, in a shape that meters of racks and feeds can follow.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <cblas.h>
#include <fmt/format.h>

#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/sampling.h"
#include "probes/host/blas_kernels.h"
#include "probes/meters/load_shape.h"
#include "probes/power/load_choice.h"
#include "probes/power/load_report.h"
#include "probes/power/thermal_sensors.h"

namespace assay::power {
namespace {

/// The throttle counters of `sensors`, which must outlive it, since this was made.
class ThrottleTime {
 public:
  explicit ThrottleTime(const ThermalSensors& sensors);

  /// s that the part that was slowed down longest was, a package or GPU by its temperature. Nothing where no part
  /// counts it, or one answers no more.
  [[nodiscard]] std::optional<double> by_temperature() const;
  /// The same of GPUs and a signal from outside.
  [[nodiscard]] std::optional<double> by_signal() const;

 private:
  [[nodiscard]] std::optional<double> longest(bool signal) const;

  const ThermalSensors& sensors_;
  std::vector<std::optional<double>> begin_s_;
};

ThrottleTime::ThrottleTime(const ThermalSensors& sensors) : sensors_(sensors) {
  for (const auto& one : sensors.counters()) begin_s_.push_back(one.read_s());
}

std::optional<double> ThrottleTime::by_temperature() const { return longest(false); }
std::optional<double> ThrottleTime::by_signal() const { return longest(true); }

std::optional<double> ThrottleTime::longest(bool signal) const {
  std::optional<double> longest;
  for (std::size_t i = 0; i < begin_s_.size(); ++i) {
    const ThrottleCounter& one = sensors_.counters()[i];
    if ((one.metric == "brake_time") != signal) continue;
    const auto now_s = one.read_s();
    if (!begin_s_[i] || !now_s) return std::nullopt;
    longest = std::max(longest.value_or(0), *now_s - *begin_s_[i]);
  }
  return longest;
}

using Clock = std::chrono::steady_clock;

constexpr double kLongest_s = 26 * 3600;  // a day's soak and its growth
constexpr double kTick_s = 0.01;          // between two looks at the level; a square of 10 Hz has ten of them
constexpr double kCheck_s = 0.2;          // between two looks at the other ranks and at the samples
constexpr double kSample_s = 1;           // of the rate
constexpr double kLongestStop_s = 4;      // the ramp of a stop: an agent kills ten seconds after it
constexpr auto kArm = std::chrono::milliseconds(50);   // for the others to wait in the barrier before the start
constexpr auto kLead = std::chrono::milliseconds(20);  // from the barrier to the begin: all have left it by then

constexpr Parameter kParameters[] = {
    choice("shape", "soak", "soak stairs step square ramp turns",
           "ramp up, hold, ramp down; 0 to 100 % in quarters and back; full and none in turn; the same at a "
           "frequency; one ramp; one rank after another, each after a pause of all"),
    spent("hold", "120s", "the full load, each stair, each half of a step, the whole square, each half of a turn",
          "3s"),
    parameter("ramp", "s", "5s", "from nothing to the full load, and back", "1s"),
    parameter("steps", "1", "5", "of shape step: how many", "2"),
    parameter("frequency_mhz", "1", "1000", "of shape square, in thousandths of a Hz: 100 to 10000"),
    parameter("first_ranks", "1", "1",
              "ranks that work first, in the site's order: those of one rack; then twice as many, until all do"),
    parameter("grow_hold", "s", "10s", "how long each of these groups works before the next", "1s"),
    kLoadEngineParameter,
    kLoadThreadsParameter,
    kLoadGpusParameter,
    kLoadLibraryParameter,
    kLoadOrderParameter,
    kSensorRootParameter,
    kSensorLibraryParameter,
};

constexpr Metric kMetrics[] = {
    lower("start_spread", "s",
          "the longest that the first and the last rank can have begun apart: from rank 0's release of the barrier "
          "until it had word that every rank had left it, a round trip, and how much later one rank began by its own "
          "clock than another",
          Recorded::rank_0),
    higher("rate", "FLOP/s", "of one rank by its engine, second by second, while all hold their load",
           Recorded::rank_0),
    higher("total_rate", "FLOP/s", "the sum of rate over all ranks, second by second", Recorded::rank_0),
    lower("level_error", "1",
          "the greatest difference between the level that was due and the one that the rank was at, over all ranks, "
          "when it was looked at late",
          Recorded::rank_0),
    lower("throttled_time", "s",
          "of a rank: how long the package or GPU of it that was slowed down longest for its temperature was, from the "
          "begin of the load to its end, where the machine counts that",
          Recorded::if_reported),
    lower("brake_time", "s", "the same of a GPU that a signal from outside slowed down, where its driver counts that",
          Recorded::if_reported),
    neither("step_up", "s",
            "when rank 0 began to raise its load, once all ranks followed the shape, in s since 1970; of a square the "
            "first 200 times",
            Recorded::rank_0),
    neither("step_down", "s", "when rank 0 began to lower its load, likewise", Recorded::rank_0),
};

constexpr ConditionSpec kOwnConditions[] = {
    {.name = "shape", .meaning = "the shape of the load"},
    {.name = "hold_begin_s", .meaning = "when all ranks held the shape's load, in s since 1970 by rank 0's clock"},
    {.name = "hold_end_s", .meaning = "when they no longer did, likewise"},
    kLoadEngineCondition,
    kLoadThreadsCondition,
    kLoadGpuCondition,
    {.name = "groups_before", .meaning = "how many smaller groups of ranks worked before all did"},
};
constexpr auto kConditions = join(kOwnConditions, kPartitionConditions);

constexpr ProbeSpec kSpec{
    .name = "load_bank",
    .revision = 4,
    .scope = Scope::group,
    .measures =
        "A load of all nodes from one start, in a shape that meters can follow, and how near together it began.",
    .method =
        "Every rank multiplies matrices of normal numbers, at a level that follows from the shape and the time since "
        "the start: of all its CPUs so many threads work, and one for a part of its time; of its GPUs each works for "
        "that part of its time, in slices of a millisecond. The ranks of one rack work first, then twice as many, "
        "until all do; then all follow the shape; turns, in which one rank at a time works, need no groups. Rank 0 "
        "lets all begin from one barrier, 50 ms after the others wait in it, and takes the time until the last has "
        "said that it has left it; each begins 20 ms after it left it by its own clock, and says how much later the "
        "last of its parts began. SIGTERM ramps the load down within four seconds and is an error of the attempt; so "
        "is the loss of a rank. A rank ends with its agent, and that with the head. The load of AMD's GPUs has run "
        "over "
        "made-up libraries only, on no AMD GPU yet.",
    .source =
        "arXiv 2508.14318 (power oscillation of synchronous training: ramps and 0.1 to 20 Hz matter to utilities); "
        "MLCommons training policies, power_measurement.adoc (load levels).",
    .needs =
        "OpenBLAS kernels for the processor, which are part of the program; on GPUs an NVIDIA driver for CUDA 13 and "
        "libcublasLt 13, or amdgpu with the HIP runtime, hiprtc and hipBLASLt of ROCm 6.0 or newer",
    .typical = {20},
    .deadline = {kLongest_s},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

meters::LoadShape shape_of(const Parameters& given, const Placement& placement) {
  meters::LoadShape load{.shape = given.text("shape"),
                         .ramp_s = given.seconds("ramp").count,
                         .hold_s = given.seconds("hold").count,
                         .steps = static_cast<int>(given.count("steps")),
                         .frequency_hz = static_cast<double>(given.count("frequency_mhz")) / 1000,
                         .grow_hold_s = given.seconds("grow_hold").count,
                         .first_ranks = static_cast<int>(given.count("first_ranks")),
                         .world = placement.world};
  if (load.hold_s < 1 || load.hold_s > 24 * 3600) throw std::runtime_error("hold: is not between 1 s and 24 h");
  if (load.ramp_s < 0.5 || load.ramp_s > 600)
    throw std::runtime_error("ramp: is not between 0.5 s and 600 s; only switches of the shape itself are edges");
  if (load.grow_hold_s < 1 || load.grow_hold_s > 3600)
    throw std::runtime_error("grow_hold: is not between 1 s and 1 h");
  if (load.frequency_hz < 0.1 || load.frequency_hz > 10)
    throw std::runtime_error("frequency_mhz: is not between 100 and 10000");
  if (load.steps < 1 || load.steps > 100) throw std::runtime_error("steps: is not between 1 and 100");
  if (load.first_ranks < 1) throw std::runtime_error("first_ranks: 0 loads nothing; give the ranks of one rack");
  if (meters::length_s(load) > kLongest_s - 3600)
    throw std::runtime_error("hold: the whole load would take over a day");
  return load;
}

/// When a load begins to rise and to fall, in s after its begin.
struct StepMarks {
  std::vector<double> up = {}, down = {};

  /// Takes in that the level changed by `change` at `now_s`; a ramp is one step.
  void take(double now_s, double change) {
    const int way = change > 0 ? 1 : change < 0 ? -1 : 0;
    auto& marks = way > 0 ? up : down;
    if (way != 0 && way != last_way_ && marks.size() < kMostMarks) marks.push_back(now_s);
    last_way_ = way;
  }

 private:
  static constexpr std::size_t kMostMarks = 200;  // of 100 steps, or of the first 20 s of a square of 10 Hz
  int last_way_ = 0;
};

/// A rank's rate while all kept their load, and its delay.
struct Worked {
  std::vector<double> rates;
  double level_error = 0;
  StepMarks marks;
};

/// Follows the shape from `begin` on. `check` throws when another rank is gone. Every end ramps down first.
Worked follow(const meters::LoadShape& load, int rank, Clock::time_point begin, LoadEngine& engine,
              const std::function<void()>& check) {
  Worked worked;
  const meters::HeldTime time = held(load);
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  double level = 0, flop = 0, sampled_s = 0, checked_s = 0;
  std::string problem;
  while (true) {
    const double now_s = passed();
    if (now_s >= meters::length_s(load)) break;
    const double due = meters::level_at(load, rank, now_s);
    if (now_s >= meters::shape_begin_s(load)) worked.marks.take(now_s, due - level);
    level = due;
    engine.work_at(level);
    if (now_s >= time.begin_s && now_s <= time.end_s && now_s - sampled_s >= kSample_s) {
      const double so_far = engine.flop();
      if (sampled_s >= time.begin_s) worked.rates.push_back((so_far - flop) / (now_s - sampled_s));
      flop = so_far;
      sampled_s = now_s;
    }
    if (now_s - checked_s >= kCheck_s) {
      checked_s = now_s;
      try {
        engine.check();
        check();
      } catch (const std::exception& error) {
        problem = error.what();
      }
    }
    if (stop_requested()) problem = "stopped: the load was ramped down";
    if (!problem.empty()) break;
    std::this_thread::sleep_for(std::chrono::duration<double>(kTick_s));
    if (load.shape != "step" && load.shape != "square" && load.shape != "stairs" && load.shape != "turns")
      worked.level_error = std::max(worked.level_error, std::abs(meters::level_at(load, rank, passed()) - level));
  }
  if (!problem.empty()) {
    const double ramp_s = std::min(load.ramp_s, kLongestStop_s) * level;
    const double from_s = passed();
    while (passed() - from_s < ramp_s) {
      engine.work_at(level * std::max(0.0, 1 - (passed() - from_s) / ramp_s));
      std::this_thread::sleep_for(std::chrono::duration<double>(kTick_s));
    }
    engine.work_at(0);
    throw std::runtime_error(problem);
  }
  worked.marks.take(passed(), -level);  // of all that ends with the shape
  engine.work_at(0);
  return worked;
}

/// Records the figures of one rank and of all; all had left the barrier in `left_s`.
void record_all(const meters::LoadShape& load, const std::vector<std::string>& texts, double left_s, Recorder& record) {
  std::vector<double> total, late;
  double level_error = 0;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const LoadReport told = load_told_in(texts[rank]);
    level_error = std::max(level_error, told.level_error);
    late.push_back(told.late_s);
    if (told.rates.empty()) throw std::runtime_error(fmt::format("rank {} took no sample: hold is too short", rank));
    if (rank == 0) total.assign(told.rates.size(), 0);
    total.resize(std::min(total.size(), told.rates.size()));
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += told.rates[i];
    const Subject subject{.kind = "rank", .id = std::to_string(rank)};
    record.measurement("rate", {.samples = told.rates, .warmup = {}, .stopped = "fixed"}, subject);
    if (told.throttled_s) record.measurement("throttled_time", *told.throttled_s, subject);
    if (told.brake_s) record.measurement("brake_time", *told.brake_s, subject);
  }
  const Subject whole = load.world > 1 ? Subject{.kind = "cluster", .id = "all"} : Subject{};
  record.measurement("total_rate", {.samples = total, .warmup = {}, .stopped = "fixed"}, whole);
  record.measurement("level_error", level_error, whole);
  const auto [least, most] = std::ranges::minmax(late);
  record.measurement("start_spread", left_s + (most - least), whole);
}

void record_marks(const StepMarks& marks, double begin_utc_s, Recorder& record) {
  const auto tell = [&](const char* metric, std::vector<double> times_s) {
    for (double& time_s : times_s) time_s += begin_utc_s;
    if (!times_s.empty()) record.measurement(metric, {.samples = std::move(times_s), .warmup = {}, .stopped = "fixed"});
  };
  tell("step_up", marks.up);
  tell("step_down", marks.down);
}

/// The common part of the ranks' work; each of them has nothing of its own to wait for.
struct Ranks {
  std::function<void()> barrier = [] {};
  std::function<void()> check = [] {};  ///< throws when another rank is gone
  std::function<std::vector<std::string>(const std::string&)> gather = [](const std::string& mine) {
    return std::vector{mine};
  };
};

void work(const meters::LoadShape& load, int rank, const Ranks& ranks, LoadEngine& engine,
          const ThermalSensors& sensors, Recorder& record) {
  const ThrottleTime slow(sensors);  // asks each GPU, which takes time that the begin has not
  ranks.barrier();
  if (rank == 0) std::this_thread::sleep_for(kArm);
  const auto released = Clock::now();
  ranks.barrier();
  const auto begin = Clock::now() + kLead;
  const double begin_utc_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch() + kLead).count();
  ranks.barrier();  // every rank is here after it left the one before, and that was after `released`
  const double left_s = std::chrono::duration<double>(Clock::now() - released).count();
  std::this_thread::sleep_until(begin);
  engine.work_at(engine.least_level());  // shows that all can begin together, and is no step of the whole
  const double late_s = std::chrono::duration<double>(engine.last_begin() - begin).count();
  engine.work_at(0);
  const Worked worked = follow(load, rank, begin, engine, ranks.check);
  const auto all = ranks.gather(text_of({.level_error = worked.level_error,
                                         .late_s = late_s,
                                         .throttled_s = slow.by_temperature(),
                                         .brake_s = slow.by_signal(),
                                         .rates = worked.rates}));
  if (rank == 0) record_all(load, all, left_s, record);
  if (rank == 0) record_marks(worked.marks, begin_utc_s, record);
  const meters::HeldTime time = held(load);
  record.condition("hold_begin_s", begin_utc_s + time.begin_s);
  record.condition("hold_end_s", begin_utc_s + time.end_s);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  const meters::LoadShape load = shape_of(given, placement);
  const ChosenLoad chosen(given);
  LoadEngine& engine = chosen.engine();
  const ThermalSensors sensors(given.text("root"), given.text("nvml_library"));
  if (placement.world == 1) {
    work(load, 0, {}, engine, sensors, record);
  } else {
    work_together(placement, {}, [&](Rendezvous& group) {
      const Ranks ranks{.barrier = [&] { group.barrier(); },
                        .check = [&] { group.check(); },
                        .gather = [&](const std::string& mine) { return group.all_gather(mine); }};
      work(load, placement.rank, ranks, engine, sensors, record);
    });
  }
  record.condition("shape", std::string(load.shape));
  chosen.record(record);
  record.condition("groups_before", std::int64_t{meters::groups_before(load)});
}

}  // namespace
}  // namespace assay::power

int main(int argc, char** argv) {
  assay::host::restart_with_wide_kernels(openblas_get_corename(), argv);
  return assay::probe_main(argc, argv, assay::power::kSpec, assay::power::measure);
}
