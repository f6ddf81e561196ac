// feed_record: writes series with their begin in UTC as measurements, and the properties of each meter as conditions.
#include "probes/meters/feed_record.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace assay::meters {
namespace {

constexpr std::size_t kMostStretches = 200;  // of one quantity: a meter that fails every other time has no series

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
  // A cooling unit has no power, only its series.
  if (of_power || history.series.empty())
    doubts = doubts_of(latest, {.interval_s = interval_s, .integers_are_16_bit = meter.kind == MeterKind::ipmi});
  if (history.scale) doubts.push_back(*history.scale);
  return doubts.empty() ? "none" : text_of(doubts);
}

}  // namespace

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

namespace {

/// Whether a meter of the site gave this quantity.
bool is_read(const std::vector<MeteredHistory>& all, Quantity quantity) {
  return std::ranges::any_of(all, [&](const auto& one) { return one.history->series.contains({quantity, 0}); });
}

}  // namespace

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

}  // namespace assay::meters
