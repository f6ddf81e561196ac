// power_bmc: the power of this node by its own BMC, in band, while something else runs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/meters/bmc_device.h"
#include "probes/meters/doubts.h"
#include "probes/meters/slots.h"

namespace assay::power {
namespace {

constexpr double kLongestSoak_s = 7 * 24 * 3600;
constexpr double kShortestInterval_s = 0.1, kLongestInterval_s = 60;
constexpr double kTimeout_s = 5;      // a KCS interface needs 0.1 to 1 s; the stop's grace is ten
constexpr std::size_t kLatest = 300;  // five minutes at one a second, for the doubts
constexpr std::size_t kMostStretches = 200;
constexpr int kMostFaultsAtFirst = 3;

constexpr Parameter kParameters[] = {
    parameter("device", "", "/dev/ipmi0", "the kernel's IPMI device"),
    parameter("interval", "s", "1s", "time between readings, 0.1s to 60s"),
    parameter("duration", "s", "0s", "end after this time; 0 means on SIGTERM"),
};
constexpr Metric kMetrics[] = {
    neither("power", "W", "power of the node as its BMC reports it, at each reading", Recorded::always, 0.05),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "instrument", .meaning = "the command: DCMI Get Power Reading"},
    {.name = "interval_s", .meaning = "time between readings that was asked for, in s"},
    {.name = "readings", .meaning = "how often the BMC answered"},
    {.name = "faults", .meaning = "how often it did not, or refused"},
    {.name = "answer_max_s", .meaning = "the longest that one answer took, in s"},
    {.name = "statistics_active", .meaning = "whether the BMC says that it measures"},
    {.name = "clock_offset_s", .meaning = "this machine's time less the BMC's own of the newest reading, in s"},
    {.name = "meter_doubts", .meaning = "doubts about the readings (absent, stale, wrapped, coarse, gaps), or none"},
};
constexpr ProbeSpec kSpec{
    .name = "power_bmc",
    .companion = true,
    .measures = "Electric power of the whole node by its baseboard management controller, while something else runs.",
    .method =
        "Sends DCMI Get Power Reading to the BMC through the kernel's IPMI driver once an interval and keeps the "
        "current power. A reading belongs to the slot of UTC, a multiple of the interval, that holds the middle "
        "between question and answer; a stretch without a gap is one measurement, whose at has begin_s (s since 1970) "
        "and interval_s. The BMC's minimum, maximum and average are not kept: they run since its last reset. Makers "
        "state no accuracy; the relative standard uncertainty of 5 % is inferred from the class that MLPerf Training "
        "allows. DCMI does not state the BMC's averaging window either. Readings that are absent, stale, at "
        "the end of 16 bits or full of gaps are named in meter_doubts.",
    .source =
        "DCMI specification 1.5, 6.6.1; Linux Documentation/driver-api/ipmi.rst; MLCommons training policies, "
        "power_measurement.adoc.",
    .needs = "the kernel's IPMI device (root), and a BMC with DCMI power management",
    .deadline = {kLongestSoak_s},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

struct Watched {
  meters::SlotSeries series;
  std::deque<meters::MeterReading> latest;
  int readings = 0, faults = 0;
  double longest_answer_s = 0;
  bool measuring = false;
  std::string last_fault;
};

void ask(const meters::MeterSession& session, Watched& watched) {
  const double begin_s = meters::utc_now_s();
  try {
    const meters::MeterReading one = session().front();
    ++watched.readings;
    watched.measuring = !one.absent;
    if (!one.absent) watched.series.add(one.taken_s, one.value);
    watched.latest.push_back(one);
    if (watched.latest.size() > kLatest) watched.latest.pop_front();
  } catch (const meters::MeterFault& fault) {
    ++watched.faults;
    watched.last_fault = fault.what();
  }
  watched.longest_answer_s = std::max(watched.longest_answer_s, meters::utc_now_s() - begin_s);
}

void measure(const Parameters& given, Recorder& record) {
  const double interval_s = given.seconds("interval").count;
  if (interval_s < kShortestInterval_s || interval_s > kLongestInterval_s)
    throw std::runtime_error(fmt::format("interval: {} s is not between {} s and {} s", interval_s, kShortestInterval_s,
                                         kLongestInterval_s));
  const meters::MeterSession session = meters::open_bmc_device(given.text("device"), kTimeout_s);
  const double duration_s = given.seconds("duration").count;
  const double begin_s = meters::utc_now_s(), end_s = begin_s + (duration_s > 0 ? duration_s : kLongestSoak_s);
  Watched watched{.series = meters::SlotSeries(interval_s)};
  for (double now_s = begin_s; now_s < end_s && !stop_requested(); now_s = meters::utc_now_s()) {
    ask(session, watched);
    if (watched.readings == 0 && watched.faults >= kMostFaultsAtFirst) throw Skip(watched.last_fault);
    const double after_s = meters::utc_now_s();
    const double next_s = std::floor(after_s / interval_s - 0.5) * interval_s + 1.5 * interval_s;
    sleep_until_stopped(std::chrono::duration<double>(std::min(next_s, end_s) - after_s));
  }
  if (watched.readings == 0) throw Skip(watched.last_fault.empty() ? "no answer yet" : watched.last_fault);
  const std::vector<meters::MeterReading> latest(watched.latest.begin(), watched.latest.end());
  const auto doubts = meters::doubts_of(latest, {.interval_s = interval_s, .integers_are_16_bit = true});
  const auto stretches = watched.series.stretches();
  for (std::size_t i = 0; i < std::min(stretches.size(), kMostStretches); ++i)
    record.measurement("power", {.samples = stretches[i].samples, .warmup = {}, .stopped = "time_cap"}, {},
                       {{"begin_s", stretches[i].begin_s}, {"interval_s", stretches[i].interval_s}});
  if (stretches.size() > kMostStretches)
    record.note(fmt::format("{} of {} stretches are left out", stretches.size() - kMostStretches, stretches.size()));
  record.condition("instrument", latest.back().instrument);
  record.condition("interval_s", interval_s);
  record.condition("readings", std::int64_t{watched.readings});
  record.condition("faults", std::int64_t{watched.faults});
  record.condition("answer_max_s", watched.longest_answer_s);
  record.condition("statistics_active", watched.measuring);
  record.condition("clock_offset_s", latest.back().taken_s - latest.back().stated_s.value_or(0));
  record.condition("meter_doubts", doubts.empty() ? "none" : meters::text_of(doubts));
  if (!watched.last_fault.empty()) record.note(watched.last_fault);
}

}  // namespace
}  // namespace assay::power

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::power::kSpec, assay::power::measure); }
