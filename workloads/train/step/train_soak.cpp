// train_soak: hours of training on the processors of one node, interruptions and drift of step times.
#include <algorithm>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "probes/collective/limits.h"
#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/scale.h"
#include "probes/core/statistics.h"
#include "probes/gloo/rank_program.h"
#include "probes/gloo/rank_start.h"
#include "workloads/train/graph/plan_parameters.h"
#include "workloads/train/step/plan_conditions.h"
#include "workloads/train/step/rank_job.h"
#include "workloads/train/step/reliability.h"
#include "workloads/train/step/soak_run.h"
#include "workloads/train/step/step_evidence.h"
#include "workloads/train/step/training.h"

namespace assay::train {
namespace {

constexpr double kLongest_s = 7 * 24 * 3600, kHour_s = 3600;
constexpr std::int64_t kMostWarmup = 1000;

constexpr Parameter kOwnParameters[] = {
    choice("data", "replicated", "replicated gaussian",
           "replicated: the same tokens on all replicas, whose gradients are compared after each window; "
           "gaussian: other tokens on each"),
    kOverlapParameter,
    kReferenceParameter,
    spent("load_least", "720min", "wall time of the soak, at most a week; no window begins after it", "4s"),
    parameter("segment", "s", "30min",
              "after which processes end and new ones begin, so that one of them that fails costs no more", "2s"),
    parameter("window", "s", "20s", "whose median step is a sample of step_time, and after which replicas are compared",
              "200ms"),
    parameter("settling", "s", "30min", "at the beginning, which step_growth leaves out: a machine warms up", "500ms"),
    parameter("silence", "s", "60s",
              "after which a rank has hung: that a signal has stopped, that has not run although an answer is due "
              "and no other has either, or that does not answer, beyond the length of its request",
              "10s"),
    parameter("warmup_steps", "1", "5", "steps before each segment", "3"),
    parameter("ranks_per_node", "1", "0",
              "processes, each with one thread; 0: as many as the processors that this one may use, at least 2", "2"),
    parameter("root", "", "/", "directory that holds sys, for counters saved from another machine"),
};
constexpr auto kParameters = join(kPlanParameters, kOwnParameters, kPlaceParameters);
constexpr Metric kMetrics[] = {
    lower("start_time", "s", "from the begin until the first window of steps is whole, exact steps before it included"),
    lower("step_time", "s", "wall time of a step, the longest of all ranks: the median of each window is a sample"),
    higher("window_time", "s", "middle of each window since the soak began, in the order of step_time"),
    higher("interruption_time", "s",
           "when each interruption was noticed, since the soak began, by class, recorded if there was one",
           Recorded::if_occurred),
    lower("step_growth", "1",
          "1 and the slope of step_time after settling, by Theil and Sen, times the length of that time, over the "
          "median: 1.02 is a step 2 % longer at the end; recorded if there are ten windows",
          Recorded::if_occurred),
    lower("step_growth_bound", "1",
          "the same of the slope that is not exceeded with 95 % confidence, for windows that are independent; recorded "
          "where step_growth is",
          Recorded::if_occurred),
    {.name = "slow_windows",
     .unit = "1",
     .better = Better::lower,
     .meaning = "share of windows over 1.1 of their median",
     .kind = MetricKind::share},
    fault("interruptions",
          "by class: ended, a rank's process ended; silent, a rank did not answer; error, it reported one, or the next "
          "segment could not begin"),
    fault("mismatches",
          "findings of all checks: exact steps that differ from themselves or from one rank, gradients that are "
          "outvoted, weights that differ between replicas or are not finite"),
    higher("load_time", "s", "time in windows, which counts as time under load"),
    share("load_share", "load_time over the time that was asked for, load_least"),
    higher("mtbf_bound", "s",
           "mean time under load between interruptions that is exceeded with 95 % confidence, for a constant rate; "
           "recorded where no trend shows that it is not constant",
           Recorded::if_occurred),
    lower("throttled", "1", "how often cores or packages were slowed down for their temperature meanwhile, if counted",
          Recorded::if_reported),
    lower("corrected_errors", "1", "memory errors that ECC corrected meanwhile, where a driver counts them",
          Recorded::if_reported),
    fault("uncorrected_errors", "memory errors that it could not correct, where a driver counts them",
          Recorded::if_reported),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "segments", .meaning = "segments that were begun"},
    {.name = "gave_up", .meaning = "whether the soak ended before its time, after fifty interruptions"},
    if_occurred("trend",
                "Laplace's statistic of the times of interruptions, if there are four: beyond 1.645 either way their "
                "rate is not constant"),
    {.name = "shows", .meaning = "conclusions from this time under load and their limits, as a sentence"},
    if_occurred("blas_library", "version and build options of the BLAS in use, where a segment was whole"),
    if_occurred("blas_core", "processor core that it chose its kernels for, where a segment was whole"),
};
constexpr auto kConditions = join(kPlanConditions, kOwnConditions);
constexpr ProbeSpec kSpec{
    .name = "train_soak",
    .measures =
        "Hours of training on the processors of one node: its interruptions, whether its results stay right, whether "
        "its steps become slower, and the mean time between interruptions that the soak demonstrates.",
    .method =
        "Ranks train as those of train_step do, in segments with new processes each. A segment begins and ends with "
        "two steps in exact arithmetic, each twice, compared with one rank; between them, window after window of full "
        "steps, and after each window the replicas' gradients of the same tokens are compared in every bit. A rank "
        "that ends, does not answer or reports an error ends its segment, which counts as an interruption; the next "
        "begins at once. The bound of the mean time is 2 T / chi2(0.95; 2 r + 2) for r interruptions in T; with four "
        "and more, Laplace's test comes first. A segment that is lost before any window was whole is an error of the "
        "probe. When all ranks wait for one that hangs, and no signal has stopped it, which one it is is not known.",
    .source =
        "MIL-HDBK-189C (2011), 6.2, time-terminated tests, and Laplace's test for trend; Theil 1950 and Sen 1968, "
        "estimates of a slope.",
    .needs = "libgloo.so.0 (libgloo0)",
    .typical = {60},
    .deadline = {kLongest_s + 2 * kHour_s},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

SoakTimes times_of(const Parameters& given) {
  const auto in_range = [&](const char* name, double most_s) {
    const Seconds value = given.seconds(name);
    if (!(value.count > 0) || value.count > most_s)
      throw BadParameter(fmt::format("{}: {:g} s is not above 0 and at most {:g} s", name, value.count, most_s));
    return value;
  };
  return {.duration = in_range("load_least", kLongest_s),
          .segment = in_range("segment", kLongest_s),
          .window = in_range("window", collective::kBatchLimit.count),
          .silence = in_range("silence", kHour_s)};
}

std::int64_t ranks_of(const Parameters& given) {
  const std::int64_t asked = given.count("ranks_per_node");
  if (asked != 0) return ranks_per_node(given);
  return std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 2, 256);
}

Sampling fixed(std::vector<double> samples) {
  return {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"};
}

void record_steps(const SoakOutcome& found, double settling_s, Recorder& record) {
  record.measurement("step_time", fixed(found.step_s));
  record.measurement("window_time", fixed(found.at_s));
  record.measurement("slow_windows", tail_share(found.step_s));
  std::vector<double> at_s, step_s;
  for (std::size_t i = 0; i < found.at_s.size(); ++i) {
    if (found.at_s[i] < settling_s) continue;
    at_s.push_back(found.at_s[i]);
    step_s.push_back(found.step_s[i]);
  }
  const auto drift = drift_of(at_s, step_s);
  if (!drift) return;
  record.measurement("step_growth", std::max(0.0, 1 + drift->per_length));
  record.measurement("step_growth_bound", std::max(0.0, 1 + drift->bound));
}

void record_interruptions(const SoakOutcome& found, Seconds asked, Recorder& record) {
  std::vector<double> at_s;
  for (std::size_t how = 0; how < kInterruptions; ++how) {
    const std::string word(word_of(static_cast<Interruption>(how)));
    const auto& of_class = found.interrupted_s.at(how);
    at_s.insert(at_s.end(), of_class.begin(), of_class.end());
    record.measurement("interruptions", static_cast<double>(of_class.size()), {}, {{"class", word}});
    if (!found.broken_at_s.at(how).empty())
      record.measurement("interruption_time", fixed(found.broken_at_s.at(how)), {}, {{"class", word}});
  }
  record.measurement("load_time", found.load_s);
  record.measurement("load_share", std::min(1.0, found.load_s / asked.count));
  const auto count = static_cast<std::int64_t>(at_s.size());
  const auto trend = laplace_trend(at_s, found.load_s);
  if (trend) record.condition("trend", *trend);
  if (trend && std::abs(*trend) > kTrendLimit) {
    record.condition("shows", fmt::format("{} interruptions in {:.3g} h under load, whose rate is not constant: it {}; "
                                          "no mean time between them follows",
                                          count, found.load_s / kHour_s, *trend > 0 ? "rises" : "falls"));
    return;
  }
  const double bound_s = mtbf_bound_s(found.load_s, count);
  record.measurement("mtbf_bound", bound_s);
  record.condition("shows",
                   fmt::format("{} interruptions in {:.3g} h under load: with 95 % confidence a mean of at least "
                               "{:.3g} h between them on this node; to show 1000 h takes {:.0f} h without one",
                               count, found.load_s / kHour_s, bound_s / kHour_s, load_to_show_s(1000)));
}

void record_errors(const MachineErrors& before, const MachineErrors& after, Recorder& record) {
  const auto add = [&](const char* metric, const auto& from, const auto& to) {
    if (const auto more = risen(from, to)) record.measurement(metric, static_cast<double>(*more));
  };
  add("throttled", before.throttled, after.throttled);
  add("corrected_errors", before.corrected, after.corrected);
  add("uncorrected_errors", before.uncorrected, after.uncorrected);
}

void measure(const Parameters& given, Recorder& record) {
  const SoakTimes times = times_of(given);
  (void)given.count("warmup_steps", 1, kMostWarmup);
  const std::int64_t here = ranks_of(given);
  RankJob job = job_on(given, here);
  job.data = data_mode_named(given.text("data"));
  job.beside = given.text("overlap") == "beside";
  if (job.data == DataMode::replicated && job.plan.dp < 2)
    throw BadParameter(
        "data: replicated needs two replicas and more, and the plan has one; give more ranks, or gaussian");
  const Library library = Library::open("libgloo.so.0", "Gloo");
  const gloo::RankFile file("train_step_rank");
  const Placement alone;
  const std::string address = gloo::own_address(given.text("interface"), alone);
  const auto programs = rank_programs(file.path(), job, 0, here, address, gloo::rank_environment(library));
  const std::string node = std::get<std::string>(host_facts().at("name"));
  record_plan(given, job, {node}, record);
  const MachineTree tree(given.text("root"));
  const MachineErrors before = machine_errors(tree);
  const SoakOutcome found =
      soak(programs, given, job, times, node, [&](double after_s) { record.measurement("start_time", after_s); });
  record_steps(found, given.seconds("settling").count, record);
  record_interruptions(found, times.duration, record);
  record.measurement("mismatches", static_cast<double>(found.mismatches));
  record_errors(before, machine_errors(tree), record);
  record.condition("segments", found.segments);
  record.condition("gave_up", found.gave_up);
  if (!found.facts.is_null()) {
    record.condition("blas_library", found.facts.at("blas").get<std::string>());
    record.condition("blas_core", found.facts.at("core").get<std::string>());
  }
  for (const auto& note : found.notes) record.note(note);
}

}  // namespace
}  // namespace assay::train

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::train::kSpec, assay::train::measure); }
