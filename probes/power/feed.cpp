// power_feed: the meters of a site, read from the head while something else runs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/meters/watched.h"

namespace assay {
namespace {

constexpr double kLongestSoak_s = 7 * 24 * 3600;
constexpr double kShortestInterval_s = 0.5, kLongestInterval_s = 60;
// A stop gives ten seconds: six of them for answers under way, the rest for the record.
constexpr double kGrace_s = 6;
constexpr std::size_t kMostStretches = 200;  // of one quantity: a meter that fails every other time has no series

constexpr Parameter kParameters[] = {
    {.name = "meters",
     .fallback = "",
     .meaning = "a site file, or a plan, with the list meters; nothing: there are none"},
    {.name = "interval", .unit = "s", .fallback = "1s", .meaning = "time between readings of a meter, 0.5s to 60s"},
    {.name = "duration", .unit = "s", .fallback = "0s", .meaning = "end after this time; 0 means on SIGTERM"},
};

constexpr Metric reading(std::string_view name, std::string_view unit, std::string_view meaning) {
  return {.name = name, .unit = unit, .better = Better::neither, .meaning = meaning};
}
constexpr Metric kMetrics[] = {
    reading("power", "W", "active power of what one meter covers, or of one outlet (at.outlet), at each reading"),
    reading("apparent_power", "VA", "apparent power, where the meter tells it"),
    reading("energy", "J", "the meter's own energy counter at each reading, where it has one"),
    reading("current", "A", "current of the first phase or of the inlet, where the meter tells it"),
    reading("voltage", "V", "voltage of the first phase or of the inlet, where the meter tells it"),
    reading("power_factor", "1", "active over apparent power, where the meter tells it"),
    reading("frequency", "Hz", "frequency of the mains, where the meter tells it"),
    reading("flow", "m3/s", "flow of the coolant, where the meter is of a cooling unit"),
    reading("supply_temperature", "degC",
            "temperature of the coolant to the racks, where the meter is of a cooling unit"),
    reading("return_temperature", "degC", "temperature of the coolant back, where the meter is of a cooling unit"),
    reading("supply_pressure", "Pa", "pressure of the coolant, where the meter is of a cooling unit"),
    reading("delta_pressure", "Pa", "difference of pressure of the coolant, where the meter is of a cooling unit"),
    reading("heat", "W", "heat that the cooling unit says that it removes, where it does"),
    reading("outdoor_dry_bulb", "degC", "temperature of the air outside, where a meter has it"),
    reading("outdoor_wet_bulb", "degC", "wet-bulb temperature of the air outside, where a meter has it"),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "interval_s", .meaning = "time between readings that was asked for, in s, where any meter answers"},
    {.name = "transport", .meaning = "how the meter is read: ipmi, redfish, snmp or modbus, where it is read"},
    {.name = "meter_doubts",
     .meaning = "what is doubtful about the power of the meter (absent, stuck, stale, mis_scaled, wrapped, coarse, "
                "synthesised, slow, gaps), or none, where it is read"},
    {.name = "scale_checked",
     .meaning = "whether the meter says its power or heat twice, so that its scale was checked, where it is read"},
    {.name = "answers", .meaning = "how often the meter answered, where it is read"},
    {.name = "faults", .meaning = "how often it did not, or answered nonsense, where it is read"},
    {.name = "answer_max_s", .meaning = "the longest that one answer took, in s, where it is read"},
    {.name = "averaging_s", .meaning = "window that one reading is the mean of, in s, where meter or site state it"},
    {.name = "accuracy_declared", .meaning = "relative accuracy, where meter or site state it"},
    {.name = "accuracy_source", .meaning = "the document that states accuracy and averaging, where the site names it"},
    {.name = "implementation", .meaning = "measured, synthesised or unknown, where it is read"},
    {.name = "clock_offset_s",
     .meaning = "this machine's time less the meter's own of the newest reading, in s, where the meter tells a time"},
    {.name = "meters_unread", .meaning = "why meters were not read, where some were not"},
};
constexpr ProbeSpec kSpec{
    .name = "power_feed",
    .companion = true,
    .measures =
        "Power, energy and coolant of racks, feeds, shelves and cooling units by their own meters, while "
        "something else runs.",
    .method =
        "Reads every meter of the site by a thread of its own, once an interval, with the meter's timeout as the "
        "longest "
        "wait: a meter that hangs delays itself alone. A reading belongs to the slot of UTC, a multiple of the "
        "interval, "
        "that holds the middle between question and answer; a stretch without a gap is one measurement, whose at has "
        "begin_s (s since 1970, by this machine's clock), interval_s and the meter. After 20,000 slots neighbours are "
        "joined in pairs. Scales are those of the model in the site; power is compared with voltage x current x power "
        "factor of the same strip (3 % on one phase; with three phases only a scale wrong by ten shows), heat with "
        "flow x "
        "rise of the coolant as water (10 %). What is stuck, absent, stale, mis-scaled, at the end of 16 bits, coarse, "
        "computed by the instrument, slower than a minute or full of gaps is named in meter_doubts.",
    .source =
        "DCMI specification 1.5; DMTF Redfish schemas (DSP8010); APC PowerNet-MIB and Raritan PDU2-MIB as public "
        "exporters and Network UPS Tools read them; Modbus application protocol 1.1b3; MLCommons training "
        "policies, power_measurement.adoc (one sample a second, evenly).",
    .needs = "a site file with the list meters, and Net-SNMP, libmodbus, libfreeipmi or libcurl for their kinds",
    .deadline = {kLongestSoak_s},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// The number in the last reading that has one.
template <class Member>
std::optional<double> last_stated(const std::deque<MeterReading>& latest, Member member) {
  for (auto one = latest.rbegin(); one != latest.rend(); ++one) {
    if ((*one).*member) return (*one).*member;
  }
  return std::nullopt;
}

std::string doubts_text(const Meter& meter, const MeterHistory& history, double interval_s) {
  const std::vector<MeterReading> latest(history.latest.begin(), history.latest.end());
  std::vector<NamedDoubt> doubts;
  const bool of_power = std::ranges::any_of(
      history.series, [](const auto& one) { return one.first.first == Quantity::power && one.first.second == 0; });
  // A cooling unit has no power; what it has is in its series.
  if (of_power || history.series.empty())
    doubts = doubts_of(latest, {.interval_s = interval_s, .integers_are_16_bit = meter.kind == MeterKind::ipmi});
  if (history.scale) doubts.push_back(*history.scale);
  return doubts.empty() ? "none" : text_of(doubts);
}

void record_meter(const Meter& meter, const MeterHistory& history, double interval_s, Recorder& record) {
  const Subject subject = meter.subject_of();
  for (const auto& [key, series] : history.series) {
    const auto& [quantity, outlet] = key;
    const auto stretches = series.stretches();
    for (std::size_t i = 0; i < std::min(stretches.size(), kMostStretches); ++i) {
      Values at = {{"begin_s", stretches[i].begin_s}, {"interval_s", stretches[i].interval_s}, {"meter", meter.name}};
      if (outlet != 0) at.emplace("outlet", std::int64_t{outlet});
      record.measurement(word_of(quantity), {.samples = stretches[i].samples, .warmup = {}, .stopped = "time_cap"},
                         subject, std::move(at));
    }
    if (stretches.size() > kMostStretches)
      record.note(fmt::format("{}: {} of {} stretches of {} are left out", meter.name,
                              stretches.size() - kMostStretches, stretches.size(), quantity));
    if (series.left_out() > 0)
      record.note(fmt::format("{}: {} readings of {} are left out: the clock was set back", meter.name,
                              series.left_out(), quantity));
  }
  // Two meters of one node or rack have conditions of their own: their subject is the meter.
  const Subject of{.kind = "meter", .id = meter.name};
  record.condition("transport", std::string(word_of(meter.kind)), of);
  record.condition("meter_doubts", doubts_text(meter, history, interval_s), of);
  record.condition("scale_checked", history.scale_checked, of);
  record.condition("answers", std::int64_t{history.answers}, of);
  record.condition("faults", std::int64_t{history.faults}, of);
  record.condition("answer_max_s", history.longest_answer_s, of);
  const auto averaging_s = last_stated(history.latest, &MeterReading::averaging_s);
  if (averaging_s) record.condition("averaging_s", *averaging_s, of);
  const auto accuracy = last_stated(history.latest, &MeterReading::accuracy);
  if (accuracy) record.condition("accuracy_declared", *accuracy, of);
  if (!meter.accuracy_source.empty()) record.condition("accuracy_source", meter.accuracy_source, of);
  const Origin origin = history.latest.empty() ? Origin::unknown : history.latest.back().origin;
  record.condition("implementation", std::string(word_of(origin)), of);
  if (const auto stated_s = last_stated(history.latest, &MeterReading::stated_s))
    record.condition("clock_offset_s", history.latest.back().taken_s - *stated_s, of);
  if (!history.last_fault.empty()) record.note(history.last_fault);
}

std::vector<Meter> meters_of(const Parameters& given) {
  const std::string path = given.text("meters");
  if (path.empty()) throw Skip("no meters: the site has no list meters, or the parameter meters names no file");
  const auto text = read_file(path);
  if (!text) throw Skip(text.error().text());
  auto meters = read_meters_of(*text, path);
  if (!meters) throw std::runtime_error(meters.error().text());
  return *meters;
}

void measure(const Parameters& given, Recorder& record) {
  const double interval_s = given.seconds("interval").count;
  if (interval_s < kShortestInterval_s || interval_s > kLongestInterval_s)
    throw std::runtime_error(fmt::format("interval: {} s is not between {} s and {} s", interval_s, kShortestInterval_s,
                                         kLongestInterval_s));
  std::vector<std::shared_ptr<WatchedMeter>> watched;
  for (auto& meter : meters_of(given)) watched.push_back(std::make_shared<WatchedMeter>(std::move(meter)));
  static bool over = false;  // also when the duration has passed
  const auto stop = +[] { return stop_requested() || std::atomic_ref(over).load(); };
  // Detached: one that waits inside a library must not hold the record back. main leaves without destructors.
  for (const auto& one : watched) std::thread([one, interval_s, stop] { one->watch(interval_s, stop); }).detach();
  const double duration_s = given.seconds("duration").count;
  sleep_until_stopped(std::chrono::duration<double>(duration_s > 0 ? duration_s : kLongestSoak_s));
  std::atomic_ref(over).store(true);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(kGrace_s);
  const auto all_ended = [&] { return std::ranges::all_of(watched, [](const auto& one) { return one->ended(); }); };
  while (!all_ended() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::vector<std::string> unread;
  bool any = false;
  for (const auto& one : watched) {
    const MeterHistory history = one->history();
    if (history.answers > 0) {
      record_meter(one->meter(), history, interval_s, record);
      any = true;
    } else {
      unread.push_back(!history.not_there.empty()    ? history.not_there
                       : !history.last_fault.empty() ? history.last_fault
                                                     : fault_text(one->meter(), "no answer yet"));
    }
  }
  std::string reasons;
  for (const auto& reason : unread) reasons += (reasons.empty() ? "" : "; ") + reason;
  if (!any) throw Skip(reasons.substr(0, kLongestReason));
  record.condition("interval_s", interval_s);
  if (!unread.empty()) record.condition("meters_unread", reasons.substr(0, kLongestValue));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const int code = assay::probe_main(argc, argv, assay::kSpec, assay::measure);
  (void)std::fflush(stdout);  // the record is out, line by line; what cannot be written failed before
  std::_Exit(code);           // a thread may still wait inside a library
}
