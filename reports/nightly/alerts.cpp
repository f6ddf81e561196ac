// alerts: labels and annotations.
#include "reports/nightly/alerts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/text.h"
#include "probes/core/words.h"
#include "reports/nightly/shell.h"

namespace assay::nightly {
namespace {

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
  one["annotations"] = {{"summary", harmless(flag.words)},
                        {"change", change_words(flag)},
                        {"state", word_of(flag.state)},
                        {"onset", drift::date_text(flag.onset)},
                        {"suspects", suspects},
                        {"action", action_words(flag, report.as_of)}};
  one["startsAt"] = noon_of(flag.raised);
  return one;
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
  if (!report.coverage.overdue.empty()) {
    json one = alert("AssayCoverage", "warning", report);
    one["annotations"] = {{"summary", fmt::format("{} units were not measured for up to {} nights, first {}",
                                                  report.coverage.overdue.size(), report.coverage.max_age_nights,
                                                  harmless(report.coverage.overdue.front().unit))}};
    one["startsAt"] = noon_of(report.as_of);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

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

}  // namespace assay::nightly
