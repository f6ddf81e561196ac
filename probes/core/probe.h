// probe: the description of a probe, and the main function that every probe shares.
#pragma once

#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "probes/core/group_size.h"
#include "probes/core/parameters.h"
#include "probes/core/space.h"
#include "probes/core/words.h"

namespace assay {

class Recorder;

/// Which way a metric gets better.
enum class Better { higher, lower, neither };

/// Kind of a metric. share: part of the physical maximum that was reached, so that no honest figure is above 1. fault:
/// how often something was wrong, such as wrong results or errors; a plan in which no requirement judges one is
/// refused.
enum class MetricKind { figure, share, fault };

constexpr auto words_of(MetricKind) { return names_as_words<MetricKind>(); }

/// Course of a value from one run to the next, for comparing runs. each_run: every run measures anew. since_boot: a
/// counter that runs on until the machine boots or the driver is loaded. for_life: a counter of the part's own, which a
/// boot does not clear. fixed: unchanged on a healthy machine, such as the width of a link.
enum class Course { each_run, since_boot, for_life, fixed };

constexpr auto words_of(Course) { return names_as_words<Course>(); }

/// Which way data went for a figure of two machines: from the first of the pair to the second, back, or both ways.
enum class PairDirection { both, forward, backward };

constexpr auto words_of(PairDirection) { return names_as_words<PairDirection>(); }

/// Which runs of a probe have a metric or a condition in their record. always: every complete run, and of a condition
/// the record of every rank. rank_0: every complete run, only in the record of rank 0, for all ranks. The others may be
/// missing. if_asked: only with certain parameters, or a certain number or placement of ranks. if_present: only where
/// the machine or the site has such a part. if_reported: only where hardware, firmware, driver, kernel or library
/// reports it. if_occurred: only when it happened in the run, such as a loss, or enough samples for the figure.
enum class Recorded { always, rank_0, if_asked, if_present, if_reported, if_occurred };

constexpr auto words_of(Recorded) { return names_as_words<Recorded>(); }

/// Whether the record of rank 0 of every complete run has it.
constexpr bool is_owed(Recorded recorded) { return recorded == Recorded::always || recorded == Recorded::rank_0; }

/// Deviation between fresh runs of a probe on one machine, as far as records show it. It is a floor: the judge takes no
/// smaller one from the few attempts of a cell, which may all have met the same state of the machine.
struct RunDeviation {
  double least = 0.005;  ///< relative standard deviation of rates, times, powers and shares
  std::string_view source = "Assumed on 2026-11-27: no machine has repeated this probe for the records yet.";
};

/// One number a probe measures. `instrument` is the relative standard uncertainty of the instrument (type B), in 1.
struct Metric {
  std::string_view name;
  std::string_view unit;
  Better better = Better::higher;
  std::string_view meaning;
  double instrument = 0;
  MetricKind kind = MetricKind::figure;
  Course course = Course::each_run;
  PairDirection direction = PairDirection::both;
  Recorded recorded = Recorded::always;
};

/// Figures that are better when lower, when higher, or neither.
constexpr Metric lower(std::string_view name, std::string_view unit, std::string_view meaning,
                       Recorded recorded = Recorded::always, double instrument = 0) {
  return {.name = name,
          .unit = unit,
          .better = Better::lower,
          .meaning = meaning,
          .instrument = instrument,
          .recorded = recorded};
}
constexpr Metric higher(std::string_view name, std::string_view unit, std::string_view meaning,
                        Recorded recorded = Recorded::always, double instrument = 0) {
  Metric metric = lower(name, unit, meaning, recorded, instrument);
  metric.better = Better::higher;
  return metric;
}
constexpr Metric neither(std::string_view name, std::string_view unit, std::string_view meaning,
                         Recorded recorded = Recorded::always, double instrument = 0) {
  Metric metric = lower(name, unit, meaning, recorded, instrument);
  metric.better = Better::neither;
  return metric;
}
/// A metric of kind share: the part of a physical maximum.
constexpr Metric share(std::string_view name, std::string_view meaning, Recorded recorded = Recorded::always,
                       double instrument = 0) {
  Metric metric = higher(name, "1", meaning, recorded, instrument);
  metric.kind = MetricKind::share;
  return metric;
}
/// `metric` of one direction of a pair.
constexpr Metric forward(Metric metric) {
  metric.direction = PairDirection::forward;
  return metric;
}
constexpr Metric backward(Metric metric) {
  metric.direction = PairDirection::backward;
  return metric;
}
/// `metric` whose value from run to run takes `course`.
constexpr Metric with_course(Course course, Metric metric) {
  metric.course = course;
  return metric;
}
/// A metric of kind fault: a count of what is wrong.
constexpr Metric fault(std::string_view name, std::string_view meaning, Recorded recorded = Recorded::always,
                       Course course = Course::each_run) {
  return {.name = name,
          .unit = "1",
          .better = Better::lower,
          .meaning = meaning,
          .kind = MetricKind::fault,
          .course = course,
          .recorded = recorded};
}

/// One circumstance a probe records with its numbers.
struct ConditionSpec {
  std::string_view name;
  std::string_view meaning;
  Recorded recorded = Recorded::always;
};

/// Conditions that not every record has.
constexpr ConditionSpec rank_0(std::string_view name, std::string_view meaning) {
  return {.name = name, .meaning = meaning, .recorded = Recorded::rank_0};
}
constexpr ConditionSpec if_asked(std::string_view name, std::string_view meaning) {
  return {.name = name, .meaning = meaning, .recorded = Recorded::if_asked};
}
constexpr ConditionSpec if_present(std::string_view name, std::string_view meaning) {
  return {.name = name, .meaning = meaning, .recorded = Recorded::if_present};
}
constexpr ConditionSpec if_reported(std::string_view name, std::string_view meaning) {
  return {.name = name, .meaning = meaning, .recorded = Recorded::if_reported};
}
constexpr ConditionSpec if_occurred(std::string_view name, std::string_view meaning) {
  return {.name = name, .meaning = meaning, .recorded = Recorded::if_occurred};
}

/// Subject of one run of the probe; decides how the plan places it.
enum class Scope { node, pair, group };

/// Everything `--describe` says. All text is one sentence or more, ended with a full stop, about the method in force.
struct ProbeSpec {
  std::string_view name;
  int revision = 1;  ///< rises when the number would change
  Scope scope = Scope::node;
  bool companion = false;  ///< samples until it is to stop (SIGTERM), during a step
  bool sampled = false;    ///< takes the parameters of sampling.h
  std::string_view measures;
  std::string_view method;
  std::string_view source;
  std::string_view needs = "";  ///< needs of the probe on a node, or it skips
  Seconds typical = {10};       ///< for the ETA: run time with fallback parameters, without times that are `spent`
  int loads = 1;                ///< how often a run is repeated within itself: `spent` of its parameters times that
  Seconds deadline = {120};     ///< the run is killed after this
  std::span<const Parameter> parameters = {};
  std::span<const Metric> metrics = {};
  std::span<const ConditionSpec> conditions = {};
  std::span<const SpaceRule> space = {};           ///< its writes to a storage; none: nothing worth a plan's attention
  std::span<const GroupSizeRule> group_size = {};  ///< its demands on the number of its processes
  RunDeviation between_runs = {};
};

/// Thrown by a probe whose hardware, library or permission is not there: the record ends with `skip` and the reason.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Exit codes of every probe: complete, error, bad usage, skip (the value automake and CTest know).
inline constexpr int kExitComplete = 0, kExitError = 1, kExitUsage = 2, kExitSkip = 77;

/// The place of this process among the ranks of its step. A single rank has no rendezvous.
struct Placement {
  int rank = 0;
  int world = 1;
  std::string rendezvous = {};  ///< "host:port" where rank 0 listens and the others dial
  std::string token = {};       ///< hexadecimal; known only to the ranks of one step
  std::string challenge = {};   ///< to TPM or GPUs: 64 hexadecimal digits, and a credential for a TPM behind a colon
};

/// Runs a probe: answers --describe and --help, reads flags from the spec, prints the record on stdout, catches what
/// `measure` throws. Returns the exit code. SIGTERM and SIGINT set stop_requested().
int probe_main(int argc, char** argv, const ProbeSpec& spec, void (*measure)(const Parameters&, Recorder&));

/// The same for a probe whose ranks work together: `--rank`, `--world`, `--rendezvous` and the token (`--token`, or
/// ASSAY_TOKEN in the environment, which other users of the node cannot read) are handed to `measure`. A rank beyond
/// the world, or a world of several ranks without a rendezvous and a good token, is a usage error.
int probe_main(int argc, char** argv, const ProbeSpec& spec,
               void (*measure)(const Parameters&, const Placement&, Recorder&));

/// For hardware that no longer answers: ends the record that probe_main has open with `error` and `reason`, says so on
/// stderr, and leaves the process at once with kExitError. No destructor runs, since they would wait for the same
/// hardware. From any thread; where no record is open only stderr has the reason.
[[noreturn]] void leave_stuck(const std::string& reason) noexcept;

/// True after SIGTERM or SIGINT; companions poll it, long probes may.
bool stop_requested();

/// Sleeps for `time` of wall time or until stop_requested(), whichever comes first.
void sleep_until_stopped(std::chrono::duration<double> time);

}  // namespace assay
