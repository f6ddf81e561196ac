// power_feed: the meters of a site, read from the head while something else runs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/meters/derived.h"
#include "probes/meters/guard.h"
#include "probes/meters/watched.h"

namespace assay {
namespace {

constexpr double kLongestSoak_s = 7 * 24 * 3600;
constexpr double kShortestInterval_s = 0.5, kLongestInterval_s = 60;
// A stop gives ten seconds: six of them for answers under way, the rest for the record.
constexpr double kGrace_s = 6;
constexpr double kPatience = 10;             // intervals without an answer, after which a guard is blind
constexpr std::size_t kMostStretches = 200;  // of one quantity: a meter that fails every other time has no series

constexpr Parameter kParameters[] = {
    {.name = "meters",
     .fallback = "",
     .meaning = "a site file, or a plan, with the list meters; nothing: there are none"},
    {.name = "interval", .unit = "s", .fallback = "1s", .meaning = "time between readings of a meter, 0.5s to 60s"},
    {.name = "guard",
     .fallback = "no",
     .meaning = "end when a meter is over its rating (rating_w), or has not answered for ten seconds or intervals",
     .choices = "no yes"},
    {.name = "limit",
     .unit = "1",
     .fallback = "0",
     .meaning = "with guard: end when all racks together are over so many W; 0: no limit"},
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
    reading("current_l2", "A", "current of the second phase, where the meter tells it"),
    reading("current_l3", "A", "current of the third phase, where the meter tells it"),
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
    reading("output_power", "W", "what the power supplies of a chassis give, where they tell it"),
    reading("voltage_thd", "1", "harmonic distortion of the voltage, where the meter tells it"),
    reading("voltage_deviation", "1",
            "voltage over the nominal one of the site less 1, where the site states one (nominal_v)"),
    reading("frequency_deviation", "1",
            "frequency over the nominal one of the site less 1, where the site states one (nominal_hz)"),
    reading("supply_efficiency", "1", "output over input of the power supplies of a chassis, where they tell both"),
    reading("total_power", "W", "power of a rack: of its own meter, else the sum of its feeds, else of its shelves"),
    reading("rating_share", "1", "power over the rating of the meter in the site (rating_w)"),
    reading("phase_imbalance", "1", "(max - mean) / mean of the currents of three phases"),
    reading("heat_share", "1",
            "flow x rise of a cooling unit, as water, over the power of the rack that it serves, of all racks where it "
            "names none"),
    reading("power_ratio", "1",
            "power of the site's intake over that of all racks, at this load and weather; not PUE, which is of energy "
            "over twelve months"),
    {.name = "energy_efficiency",
     .unit = "FLOP/J",
     .better = Better::higher,
     .meaning = "floating-point operations of the nodes of a rack over the energy that the rack drew in the same "
                "interval, where the judge joins the readings with the record of a load"},
    {.name = "rise_time",
     .unit = "s",
     .better = Better::neither,
     .meaning = "10 to 90 % of a step of a load as a meter shows it, where the judge joins the readings with the "
                "load's marks and the meter is fast enough",
     .instrument = 0.06},
    {.name = "power_ramp",
     .unit = "W/s",
     .better = Better::lower,
     .meaning = "0.8 of that step over its rise time, where the meter states its accuracy, too"},
    {.name = "overshoot",
     .unit = "1",
     .better = Better::lower,
     .meaning = "farthest reading beyond the new level over the step, where the judge joins a step"},
    {.name = "settling_time",
     .unit = "s",
     .better = Better::lower,
     .meaning = "from the load's mark until readings stay within 5 % of the step, where the judge joins a step",
     .instrument = 0.06},
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
    {.name = "over_limit", .meaning = "why a guard ended, where it did"},
    {.name = "weather_metered", .meaning = "whether dry and wet bulb outside were read, where any meter answers"},
    {.name = "energy_boundary", .meaning = "rack, meters and nodes of an energy_efficiency, where the judge joins one"},
    {.name = "method_level",
     .meaning = "what an energy_efficiency covers of the levels of EE HPC WG, where the judge joins one"},
    {.name = "accuracy_bound",
     .meaning = "worst relative accuracy that the meters of an energy_efficiency state, where the judge joins one"},
    {.name = "meters_unread", .meaning = "why meters were not read, where some were not"},
};
constexpr ProbeSpec kSpec{
    .name = "power_feed",
    .revision = 4,
    .companion = true,
    .measures =
        "Power, energy and coolant of racks, feeds, shelves and cooling units by their own meters, while "
        "something else runs.",
    .method =
        "Reads every meter of the site by a thread of its own, once an interval, with the meter's timeout as the "
        "longest wait: a meter that hangs delays itself alone. A reading belongs to the slot of UTC, a multiple of "
        "the interval, that holds the middle between question and answer; a stretch without a gap is one measurement,"
        " whose at has begin_s (s since 1970, by this machine's clock), interval_s and the meter. After 20,000 slots "
        "neighbours are joined in pairs. Scales are those of the model in the site; power is compared with voltage x "
        "current x power factor of the same strip (3 % on one phase; with three phases only a scale wrong by ten "
        "shows), heat with flow x rise of the coolant as water (10 %). What is stuck, absent, stale, mis-scaled, at "
        "the end of 16 bits, coarse, computed by the instrument, slower than a minute or full of gaps is named in "
        "meter_doubts. Power supplies that the site names for one chassis are added up, and the sum is absent where "
        "one of "
        "them is. What follows from several meters is computed slot by slot, and at.meters names them; a slot in"
        " which one of them gave nothing has no figure.",
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

/// Whether a meter of the site gave this quantity.
bool is_read(const std::vector<MeteredHistory>& all, Quantity quantity) {
  return std::ranges::any_of(all, [&](const auto& one) { return one.history->series.contains({quantity, 0}); });
}

/// What follows from several meters.
void record_derived(const std::vector<MeteredHistory>& all, Recorder& record) {
  for (const auto& one : derived_series(all)) {
    std::string meters;
    for (const auto& name : one.meters) meters += (meters.empty() ? "" : ",") + name;
    for (std::size_t i = 0; i < std::min(one.stretches.size(), kMostStretches); ++i) {
      const Stretch& stretch = one.stretches[i];
      record.measurement(one.metric, {.samples = stretch.samples, .warmup = {}, .stopped = "time_cap"}, one.subject,
                         {{"begin_s", stretch.begin_s},
                          {"interval_s", stretch.interval_s},
                          {"meters", meters.substr(0, kLongestValue)}});
    }
    if (one.stretches.size() > kMostStretches)
      record.note(fmt::format("{} of {}: {} of {} stretches are left out", one.metric, one.subject.id,
                              one.stretches.size() - kMostStretches, one.stretches.size()));
  }
  record.condition("weather_metered",
                   is_read(all, Quantity::outdoor_dry_bulb) && is_read(all, Quantity::outdoor_wet_bulb));
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

/// Waits for SIGTERM or the duration; with guard also for a limit, whose words it returns.
std::string wait_for_end(const Parameters& given, const Watched& watched, double interval_s) {
  const double asked_s = given.seconds("duration").count;
  const double duration_s = asked_s > 0 ? asked_s : kLongestSoak_s;
  if (given.text("guard") == "no") {
    sleep_until_stopped(std::chrono::duration<double>(duration_s));
    return "";
  }
  const auto limit_w = static_cast<double>(given.count("limit"));
  const double patience_s = kPatience * std::max(interval_s, 1.0);
  const double begin_s = utc_now_s();
  while (!stop_requested() && utc_now_s() - begin_s < duration_s) {
    sleep_until_stopped(std::chrono::milliseconds(100));
    const double now_s = utc_now_s();
    if (auto words = over_limit(watched, limit_w, now_s - patience_s); !words.empty()) {
      // A meter has this long for its first answer, too; what answered is judged from the first reading on.
      const bool blind = words.ends_with("unseen");
      if (!blind || now_s - begin_s > patience_s) return words;
    }
  }
  return "";
}

void measure(const Parameters& given, Recorder& record) {
  const double interval_s = given.seconds("interval").count;
  if (interval_s < kShortestInterval_s || interval_s > kLongestInterval_s)
    throw std::runtime_error(fmt::format("interval: {} s is not between {} s and {} s", interval_s, kShortestInterval_s,
                                         kLongestInterval_s));
  Watched watched;
  for (auto& meter : meters_of(given)) watched.push_back(std::make_shared<WatchedMeter>(std::move(meter)));
  static bool over = false;  // also when the duration has passed
  const auto stop = +[] { return stop_requested() || std::atomic_ref(over).load(); };
  // Detached: one that waits inside a library must not hold the record back. main leaves without destructors.
  for (const auto& one : watched) std::thread([one, interval_s, stop] { one->watch(interval_s, stop); }).detach();
  const std::string over_limit = wait_for_end(given, watched, interval_s);
  std::atomic_ref(over).store(true);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(kGrace_s);
  const auto all_ended = [&] { return std::ranges::all_of(watched, [](const auto& one) { return one->ended(); }); };
  while (!all_ended() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::vector<std::string> unread;
  std::deque<MeterHistory> histories;
  std::vector<MeteredHistory> answered;
  for (const auto& one : watched) {
    const MeterHistory& history = histories.emplace_back(one->history());
    if (history.answers > 0) {
      record_meter(one->meter(), history, interval_s, record);
      answered.push_back({.meter = &one->meter(), .history = &history});
    } else {
      unread.push_back(!history.not_there.empty()    ? history.not_there
                       : !history.last_fault.empty() ? history.last_fault
                                                     : fault_text(one->meter(), "no answer yet"));
    }
  }
  std::string reasons;
  for (const auto& reason : unread) reasons += (reasons.empty() ? "" : "; ") + reason;
  if (answered.empty()) throw Skip(reasons.substr(0, kLongestReason));
  record_derived(answered, record);
  record.condition("interval_s", interval_s);
  if (!over_limit.empty()) record.condition("over_limit", over_limit);
  if (!unread.empty()) record.condition("meters_unread", reasons.substr(0, kLongestValue));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const int code = assay::probe_main(argc, argv, assay::kSpec, assay::measure);
  (void)std::fflush(stdout);  // the record is out, line by line; what cannot be written failed before
  std::_Exit(code);           // a thread may still wait inside a library
}
