// prometheus: families, labels and samples; labels and annotations of alerts; panels of Grafana and their queries.
#include "reports/nightly/prometheus.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/how_many.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "probes/core/words.h"
#include "reports/nightly/shell.h"

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

using nlohmann::json;

/// Noon UTC of a night's date, the form that alert managers read.
std::string noon_of(drift::Date night) { return drift::date_text(night) + "T12:00:00Z"; }

const char* severity_of(const drift::Flag& flag) {
  switch (flag.state) {
    case drift::UnitState::confirmed:
    case drift::UnitState::draining:
    case drift::UnitState::lemon:
      return "critical";
    default:
      return "warning";
  }
}

json alert(const char* name, const char* severity, const drift::DriftReport& report) {
  json labels = {{"alertname", name}, {"severity", report.simulated ? "none" : severity}, {"job", "assay"}};
  if (report.simulated) labels["simulated"] = "true";
  return {{"labels", std::move(labels)}, {"annotations", json::object()}};
}

json of_flag(const drift::Flag& flag, const drift::DriftReport& report) {
  json one = alert("AssayDrift", severity_of(flag), report);
  one["labels"].update({{"unit", printable(flag.unit)},
                        {"node", printable(flag.node)},
                        {"metric", printable(flag.metric)},
                        {"class", word_of(flag.type)},
                        {"flag", printable(flag.id)}});
  std::string suspects;
  for (const auto& suspect : flag.suspects) suspects += (suspects.empty() ? "" : "; ") + harmless(suspect);
  one["annotations"] = {{"summary", harmless(fmt::format("{}, {}: {}", flag.node, flag.metric, flag.words))},
                        {"next", harmless(drift::advice_for(flag))},
                        {"change", change_words(flag)},
                        {"state", word_of(flag.state)},
                        {"onset", drift::date_text(flag.onset)},
                        {"suspects", suspects},
                        {"action", action_words(flag, report.as_of)}};
  one["startsAt"] = noon_of(flag.raised);
  return one;
}

/// Units that were not measured for too long, or a fleet; empty without any.
std::string not_measured(const drift::Coverage& coverage) {
  if (coverage.silent_nights > 0) return "no sweep for " + how_many(coverage.silent_nights, "night");
  if (coverage.overdue.empty()) return "";
  return fmt::format("not measured for up to {}: {}, first {}", how_many(coverage.max_age_nights, "night"),
                     how_many(coverage.overdue.size(), "unit"), harmless(coverage.overdue.front().unit));
}

/// Why no unit was judged: no figure of any, or none that is watched; else empty. Without flags such a report
/// looks like that of a fleet without fault.
std::string not_judged(const drift::DriftReport& report) {
  if (report.series == 0) return "nothing was judged: no sweep has a figure";
  if (report.coverage.units == 0) return "nothing was judged: every unit is retired";
  return "";
}

json alerts_of(const drift::DriftReport& report) {
  json all = json::array();
  for (const auto& flag : report.flags) {
    if (flag.state != drift::UnitState::watch) all.push_back(of_flag(flag, report));
  }
  for (const auto& finding : report.fleet) {
    json one = alert("AssayFleet", "critical", report);
    one["labels"].update({{"metric", printable(finding.metric)},
                          {"cohort", printable(finding.cohort)},
                          {"kind", word_of(finding.kind)}});
    one["annotations"] = {{"summary", harmless(finding.words)}};
    one["startsAt"] = noon_of(finding.since);
    all.push_back(std::move(one));
  }
  for (const auto& [name, words] : {std::pair("AssayCoverage", not_measured(report.coverage)),
                                    std::pair("AssayNothingJudged", not_judged(report))}) {
    if (words.empty()) continue;
    json one = alert(name, "warning", report);
    one["annotations"] = {{"summary", words}};
    one["startsAt"] = noon_of(report.as_of);
    all.push_back(std::move(one));
  }
  return all;
}

const json kSource = {{"type", "prometheus"}, {"uid", "${datasource}"}};

json place(int x, int y, int width, int height) { return {{"x", x}, {"y", y}, {"w", width}, {"h", height}}; }

json panel(int id, const char* type, const char* title, const char* query, const char* legend, json where) {
  const bool table = std::string(type) == "table";
  json target = {{"refId", "A"}, {"datasource", kSource}, {"expr", query}, {"legendFormat", legend}};
  if (table) target.update({{"format", "table"}, {"instant", true}});
  return {{"id", id},
          {"type", type},
          {"title", title},
          {"datasource", kSource},
          {"gridPos", std::move(where)},
          {"targets", json::array({std::move(target)})},
          {"fieldConfig", {{"defaults", json::object()}, {"overrides", json::array()}}},
          {"options", json::object()}};
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
  Family(out, "assay_nothing_judged", "1 without a unit that was judged: no sweep has a figure, or all are retired.",
         report.simulated)
      .add("", not_judged(report).empty() ? 0 : 1);
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

std::string alertmanager_alerts(const drift::DriftReport& report) { return alerts_of(report).dump(1) + "\n"; }

std::string webhook_message(const drift::DriftReport& report) {
  json alerts = alerts_of(report);
  for (auto& one : alerts) one["status"] = "firing";
  const json message = {{"version", "4"},
                        {"groupKey", "assay"},
                        {"status", alerts.empty() ? "resolved" : "firing"},
                        {"receiver", "assay"},
                        {"groupLabels", json::object()},
                        {"commonLabels", {{"job", "assay"}}},
                        {"commonAnnotations", {{"as_of", drift::date_text(report.as_of)}}},
                        {"externalURL", ""},
                        {"truncatedAlerts", 0},
                        {"alerts", std::move(alerts)}};
  return message.dump(1) + "\n";
}

std::string grafana_dashboard() {
  json age = panel(4, "stat", "Time since the newest sweep", "time() - max(assay_sweep_last_start_timestamp_seconds)",
                   "", place(12, 0, 6, 5));
  age["fieldConfig"]["defaults"]["unit"] = "s";
  json panels = json::array(
      {panel(1, "stat", "Confirmed flags", "sum(assay_flags{state=~\"confirmed|draining|lemon\"}) or vector(0)", "",
             place(0, 0, 6, 5)),
       panel(2, "stat", "Open flags", "sum(assay_flags{state!=\"watch\"}) or vector(0)", "", place(6, 0, 6, 5)),
       std::move(age), panel(5, "stat", "Overdue units", "max(assay_units_overdue)", "", place(18, 0, 6, 5)),
       panel(6, "table", "Flagged levels: figure over reference", "sort(assay_drift_ratio)", "{{unit}} {{metric}}",
             place(0, 5, 24, 9)),
       panel(7, "timeseries", "Units by outcome of the night", "assay_sweep_units", "{{state}}", place(0, 14, 12, 8)),
       panel(8, "timeseries", "Ratio of flagged levels", "assay_drift_ratio", "{{unit}} {{metric}}",
             place(12, 14, 12, 8))});
  const json dashboard = {
      {"uid", "assay-nightly"},
      {"title", "assay: nightly sweeps"},
      {"tags", {"assay"}},
      {"timezone", "browser"},
      {"schemaVersion", 36},
      {"version", 1},
      {"refresh", "5m"},
      {"time", {{"from", "now-30d"}, {"to", "now"}}},
      {"templating",
       {{"list",
         {{{"name", "datasource"}, {"type", "datasource"}, {"query", "prometheus"}, {"label", "Data source"}}}}}},
      {"annotations", {{"list", json::array()}}},
      {"panels", std::move(panels)}};
  return dashboard.dump(1) + "\n";
}

std::string grafana_provider(const std::string& folder) {
  return fmt::format(
      "apiVersion: 1\nproviders:\n  - name: assay\n    type: file\n    disableDeletion: false\n    allowUiUpdates: "
      "true\n    options:\n"
      "      path: {}\n",
      json(folder).dump());  // a JSON string is a YAML string
}

}  // namespace assay::nightly
