// prometheus: families, labels, samples.
#include "reports/nightly/prometheus.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "probes/core/words.h"

namespace assay::nightly {
namespace {

/// One family of gauges in the classic format.
class Family {
 public:
  Family(std::string& out, const char* name, const char* help, bool simulated)
      : out_(out), name_(name), simulated_(simulated) {
    out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
  }
  void add(std::string labels, double value) {
    if (simulated_) labels += labels.empty() ? R"(simulated="true")" : R"(,simulated="true")";
    out_ += labels.empty() ? fmt::format("{} {}\n", name_, value) : fmt::format("{}{{{}}} {}\n", name_, labels, value);
  }

 private:
  std::string& out_;
  const char* name_;
  bool simulated_;
};

std::string label(const char* name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, label_value(value));
}

void add_flags(std::string& out, const drift::DriftReport& report) {
  Family flags(out, "assay_flags", "Flags by state and class of metric.", report.simulated);
  for (const auto& state : words_of(drift::UnitState{})) {
    for (const auto& type : words_of(drift::MetricClass{})) {
      const auto count = std::ranges::count_if(
          report.flags, [&](const drift::Flag& flag) { return flag.state == state.value && flag.type == type.value; });
      if (count > 0)
        flags.add(label("state", state.text) + "," + label("class", type.text), static_cast<double>(count));
    }
  }
  Family ratios(out, "assay_drift_ratio", "Figure over reference of flagged levels; below 1 is worse.",
                report.simulated);
  for (const auto& flag : report.flags) {
    if (flag.type != drift::MetricClass::level) continue;
    ratios.add(fmt::format("{},{},{},{}", label("unit", flag.unit), label("node", flag.node),
                           label("metric", flag.metric), label("state", word_of(flag.state))),
               flag.ratio);
  }
}

}  // namespace

std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string textfile(const drift::DriftReport& report, const std::string& last_started) {
  std::string out;
  const auto& seen = report.coverage;
  if (const auto started = utc_time(last_started)) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(started->time_since_epoch()).count();
    Family(out, "assay_sweep_last_start_timestamp_seconds", "Start of the newest sweep in the history.",
           report.simulated)
        .add("", static_cast<double>(seconds));
  }
  Family units(out, "assay_sweep_units", "Units by what the last night's sweeps did with them.", report.simulated);
  const std::pair<const char*, std::size_t> states[] = {
      {"measured", seen.measured},   {"not_due", seen.not_due},           {"busy", seen.busy},
      {"preempted", seen.preempted}, {"not_measured", seen.not_measured}, {"unseen", seen.unseen}};
  for (const auto& [word, count] : states) units.add(label("state", word), static_cast<double>(count));
  Family by_state(out, "assay_units", "Units by state.", report.simulated);
  for (const auto& [word, count] : report.units) by_state.add(label("state", word), static_cast<double>(count));
  Family(out, "assay_units_overdue", "Units that were not measured for longer than the policy allows.",
         report.simulated)
      .add("", static_cast<double>(seen.overdue.size()));
  constexpr double kNight = 86'400;
  Family(out, "assay_coverage_max_age_seconds", "Age of the oldest newest measurement of a unit.", report.simulated)
      .add("", kNight * seen.max_age_nights);
  Family(out, "assay_fleet_findings", "Findings that concern a whole cohort or the fleet.", report.simulated)
      .add("", static_cast<double>(report.fleet.size()));
  add_flags(out, report);
  return out;
}

history::Result<std::string> open_metrics(const history::History& history, drift::Date last, std::size_t most) {
  const auto fleet = history.fleet();
  if (!fleet) return std::unexpected(fleet.error());
  std::vector<std::string> samples(fleet->series.size());
  constexpr std::int64_t kMidnight = 86'400;  // the night of a date has its middle at the end of that day
  const auto read = history.nights(last - std::chrono::days(most - 1), last, [&](const drift::Night& night) {
    const auto time = static_cast<std::int64_t>(night.date.time_since_epoch().count()) * kMidnight + kMidnight;
    for (const auto& reading : night.readings) {
      if (night.visits[reading.visit].retest) continue;
      const auto& series = fleet->series[reading.series];
      const auto& unit = fleet->units[series.unit];
      const auto& metric = fleet->metrics[series.metric];
      samples[reading.series] +=
          fmt::format("assay_night_value{{{},{},{},{}{}}} {} {}\n", label("unit", unit.id), label("node", unit.node),
                      label("metric", metric.name), label("base_unit", metric.unit),
                      fleet->simulated ? R"(,simulated="true")" : "", reading.value, time);
    }
  });
  if (!read) return std::unexpected(read.error());
  std::string out =
      "# HELP assay_night_value Figure of a unit in a night, in base units.\n# TYPE assay_night_value gauge\n";
  for (const auto& one : samples) out += one;
  return out + "# EOF\n";
}

}  // namespace assay::nightly
