// power: what the site's meters gave during the run: power over time, and heat against power.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "orchestrator/judge/site_evidence.h"
#include "probes/core/statistics.h"
#include "probes/core/utc_time.h"
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
  figures::PowerChart chart{.title = "Power of the racks by the site's meters",
                            .bands = {},
                            .events = {},
                            .budget_w = std::nullopt,
                            .budget_words = {}};
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

/// Medians of what cooling units carried, over the whole of each watch.
std::string heat_table(const ReportContent& content) {
  std::vector<std::string> rows;
  for (const auto& [watch, record] : content.watches) {
    std::map<Subject, std::map<std::string, std::vector<double>>> units;
    for (const auto& measured : record.measurements) {
      if (measured.subject.kind != "cdu") continue;
      auto& samples = units[measured.subject][measured.metric];
      samples.insert(samples.end(), measured.samples.begin(), measured.samples.end());
    }
    for (const auto& [unit, metrics] : units) {
      const auto words = [&](const char* metric, std::string_view unit_of) {
        const auto found = metrics.find(metric);
        return found == metrics.end() ? std::string("not read") : for_people(median(found->second), unit_of);
      };
      rows.push_back(figures::row({fmt::format("{}", watch), figures::escape(unit.id), words("flow", "m3/s"),
                                   words("supply_temperature", "degC"), words("return_temperature", "degC"),
                                   words("heat", "W"), words("heat_share", "1")}));
    }
  }
  if (rows.empty()) return "";
  return figures::table("heat", "Heat of cooling units, medians of each watch",
                        {"Watch", "Unit", "Flow", "Supply", "Return", "Heat (its own)", "Flow x rise over power"},
                        rows);
}

}  // namespace

std::string power_section(const ReportContent& content) {
  if (content.watches.empty()) return "";
  const figures::PowerChart chart = power_chart_of(content);
  std::string html = "<section id=\"power\">\n<h3>Power and cooling during the run</h3>\n";
  if (const std::string svg = figures::power_svg(chart); !svg.empty()) {
    std::string caption = "Racks one on another, by the meters that the head read. Shaded:";
    for (std::size_t i = 0; i < chart.events.size(); ++i)
      caption += fmt::format("{} {} {}", i == 0 ? "" : ",", i + 1, chart.events[i].words);
    html += fmt::format("<figure>\n{}<figcaption>{}.</figcaption>\n</figure>\n", svg, figures::escape(caption));
  }
  return html + heat_table(content) + "</section>\n";
}

}  // namespace assay::page
