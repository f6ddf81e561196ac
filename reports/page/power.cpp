// power: readings of the site's meters during the run: power over time, and heat against power.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/judge/metering/site_agreement.h"
#include "orchestrator/plan/metered.h"
#include "probes/core/statistics.h"
#include "probes/core/utc_time.h"
#include "reports/figures/course_chart.h"
#include "reports/figures/html.h"
#include "reports/figures/power_chart.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

double seconds_of_utc(const std::string& utc) {
  const auto time = utc_time(utc);
  return time ? std::chrono::duration<double>(time->time_since_epoch()).count() : 0;
}

double number_at(const Measurement& measured, const char* name) {
  const auto found = measured.at.find(name);
  return found == measured.at.end() ? 0 : number_in(found->second).value_or(0);
}

void add_to_band(figures::PowerBand& band, const Measurement& measured) {
  const double begin_s = number_at(measured, "begin_s"), interval_s = number_at(measured, "interval_s");
  for (std::size_t i = 0; i < measured.samples.size(); ++i) {
    band.times_s.push_back(begin_s + static_cast<double>(i) * interval_s);
    band.watts.push_back(measured.samples[i]);
  }
}

figures::PowerChart power_chart_of(const ReportContent& content) {
  figures::PowerChart chart{.title = "Power of the racks by the site's meters"};
  std::map<std::string, figures::PowerBand> racks;
  for (const auto& [watch, record] : content.watches) {
    for (const auto& measured : record.measurements) {
      if (measured.metric != "total_power") continue;
      auto& band = racks[measured.subject.id];
      band.name = measured.subject.id;
      add_to_band(band, measured);
    }
  }
  for (auto& [name, band] : racks) chart.bands.push_back(std::move(band));
  if (const auto& load = content.run.plan.site.load_test) {
    chart.budget_w = load->limit_w;
    chart.budget_words = "limit of the load test";
  }
  for (const auto& attempt : content.run.journal.attempts) {
    const auto* step = content.run.plan.step(attempt.step);
    const bool metered = step != nullptr && std::ranges::any_of(step->requirements, [&](const std::string& id) {
                           return !content.requirement(id).during.empty();
                         });
    if (metered && !attempt.end.empty())
      chart.events.push_back({.begin_s = seconds_of_utc(attempt.begin),
                              .end_s = seconds_of_utc(attempt.end),
                              .words = fmt::format("{}, attempt {}", attempt.step, attempt.number)});
  }
  return chart;
}

/// Meters against each other at the levels of load, with the limits of the profile.
figures::AgreementChart agreement_chart_of(const ReportContent& content) {
  figures::AgreementChart chart{.title = "Agreement of meters"};
  for (const auto& one : content.run.plan.profile.requirements) {
    if (one.metric != judge::kAgreementRatio) continue;
    if (one.limit.at_least) chart.low = one.limit.at_least;
    if (one.limit.at_most) chart.high = one.limit.at_most;
  }
  for (const auto& [step, records] : content.metered) {
    for (const auto& record : records) {
      std::map<std::pair<Subject, double>, figures::AgreementPoint> points;
      for (const auto& measured : record.measurements) {
        if (measured.metric != judge::kAgreementPower || measured.samples.empty()) continue;
        auto& point = points[{measured.subject, number_at(measured, "load")}];
        const auto side = measured.at.find("side");
        const bool reference = side != measured.at.end() && side->second == Value{std::string("reference")};
        point.name = measured.subject.kind == "node" ? measured.subject.id : "rack " + measured.subject.id;
        (reference ? point.reference_w : point.meter_w) = measured.samples.front();
      }
      for (auto& [key, point] : points)
        if (point.reference_w > 0 && point.meter_w > 0) chart.points.push_back(std::move(point));
    }
  }
  return chart;
}

/// Supply and return of every cooling unit over time.
figures::CourseChart coolant_chart_of(const ReportContent& content) {
  figures::CourseChart chart{.title = "Coolant of the cooling units", .unit = "degC"};
  std::map<std::string, figures::CourseLine> lines;
  for (const auto& [watch, record] : content.watches) {
    for (const auto& measured : record.measurements) {
      const bool supply = measured.metric == "supply_temperature";
      if (!supply && measured.metric != "return_temperature") continue;
      auto& line = lines[measured.subject.id + (supply ? " supply" : " return")];
      const double begin_s = number_at(measured, "begin_s"), interval_s = number_at(measured, "interval_s");
      for (std::size_t i = 0; i < measured.samples.size(); ++i) {
        line.times_s.push_back(begin_s + static_cast<double>(i) * interval_s);
        line.values.push_back(measured.samples[i]);
      }
    }
  }
  for (auto& [name, line] : lines) {
    line.name = name;
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

/// The medians of one metric by subject, in one record of an attempt.
std::map<Subject, double> medians_of(const Record& record, std::string_view metric) {
  std::map<Subject, double> all;
  for (const auto& measured : record.measurements)
    if (measured.metric == metric && !measured.samples.empty()) all[measured.subject] = median(measured.samples);
  return all;
}

/// The power of the rack that `unit` serves, or of all racks, if every one was read.
std::optional<double> power_served_w(const ReportContent& content, const Record& record, const Subject& unit) {
  std::string rack;
  for (const auto& meter : content.run.plan.site.meters)
    if (meter.subject_of() == unit) rack = meter.rack;
  double sum_w = 0;
  bool any = false;
  for (const auto& [subject, watts] : medians_of(record, "total_power")) {
    if (!rack.empty() && subject.id != rack) continue;
    sum_w += watts;
    any = true;
  }
  return any ? std::optional(sum_w) : std::nullopt;
}

/// Heat of cooling units against power of racks during a load, and the remainder for air and the rest.
std::string heat_table(const ReportContent& content) {
  std::vector<std::string> rows;
  for (const auto& [step, records] : content.metered) {
    for (std::size_t attempt = 0; attempt < records.size(); ++attempt) {
      const Record& record = records[attempt];
      const auto words = [&](const char* metric, const Subject& unit, std::string_view unit_of) {
        const auto all = medians_of(record, metric);
        const auto found = all.find(unit);
        return found == all.end() ? std::string("not read") : for_people(found->second, unit_of);
      };
      for (const auto& [unit, share] : medians_of(record, "heat_share")) {
        const auto power_w = power_served_w(content, record, unit);
        const auto watts = [&](double part) { return power_w ? for_people(part * *power_w, "W") : "not known"; };
        rows.push_back(
            figures::row({figures::escape(fmt::format("{}, {}", step, attempt + 1)), figures::escape(unit.id),
                          words("flow", unit, "m3/s"), words("supply_temperature", unit, "degC"),
                          words("return_temperature", unit, "degC"), power_w ? for_people(*power_w, "W") : "not known",
                          watts(share), words("heat", unit, "W"), watts(1 - share)}));
      }
    }
  }
  if (rows.empty()) return "";
  return figures::table("heat", "Heat balance while loads were held, medians",
                        {"Step, attempt", "Unit", "Flow", "Supply", "Return", "Power served", "Flow x rise, as water",
                         "Heat (its own)", "Left for air and others"},
                        rows);
}

std::string figure_of(const std::string& svg, const std::string& caption) {
  if (svg.empty()) return "";
  return fmt::format("<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n", svg, figures::escape(caption));
}

}  // namespace

std::string power_section(const ReportContent& content) {
  if (content.watches.empty() || plan::site_companion(content.run.plan.profile).empty()) return "";
  const figures::PowerChart chart = power_chart_of(content);
  std::string caption = "Racks one on another, by the meters that the head read. Shaded:";
  for (std::size_t i = 0; i < chart.events.size(); ++i)
    caption += fmt::format("{} {} {}", i == 0 ? "" : ",", i + 1, chart.events[i].words);
  std::string html = "<section id=\"power\">\n<h3>Power and cooling during the run</h3>\n";
  html += figure_of(figures::power_svg(chart), caption + ".");
  html += figure_of(figures::agreement_svg(agreement_chart_of(content)),
                    "Each node's own meter over its outlets, and all nodes' meters over those of their rack, at idle, "
                    "half and full load. Lines: the limits of the profile.");
  html += figure_of(figures::course_svg(coolant_chart_of(content)), "Supply and return of the coolant.");
  return html + heat_table(content) + "</section>\n";
}

}  // namespace assay::page
