// results: each requirement with its figure, and the recorded conditions.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reports/figures/captions.h"
#include "reports/figures/html.h"
#include "reports/figures/plot.h"
#include "reports/figures/result_text.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

constexpr std::size_t kWorstListed = 10;          // of a distribution that is too large to be listed
constexpr std::size_t kMostConditionRows = 1000;  // of met conditions; unmet ones are always printed

std::string worst_table(const std::vector<const judge::Result*>& results) {
  std::vector<std::string> rows;
  for (const judge::Result* one : figures::worst_of(results, kWorstListed)) {
    rows.push_back(
        figures::row({figures::escape(figures::subject_words(*one)),
                      one->value ? figures::escape(figures::result_scale(*one).text(*one->value)) : "—",
                      one->margin ? figures::percent(*one->margin) : "—", figures::outcome_box(one->outcome)}));
  }
  return figures::table("worst", "Worst results", {"Worst results", "Value", "Margin", "Verdict"}, rows);
}

std::string figure(const ReportContent& content, const plan::Requirement& requirement,
                   const std::vector<const judge::Result*>& results) {
  if (requirement.rise) return "";  // the samples are those of the counter
  figures::Plot plot{.title = fmt::format("{} ({})", requirement.metric, requirement.statistic),
                     .unit = requirement.limit.unit,
                     .rows = {}};
  for (const judge::Result* result : results) {
    if (result->value) plot.rows.push_back(figures::plot_row(*result, content.samples(*result)));
  }
  if (plot.rows.empty()) return "<p class=\"small\">No figure: nothing was measured.</p>\n";
  if (plot.rows.size() > figures::kMostStripRows) {
    return "<figure>\n" + figures::distribution_plot(plot) +
           "<figcaption>Empirical distribution of the judged value over all subjects. Dot: pass; cross: no pass; solid "
           "line: limit; shaded: guard band; dashed: acceptance limit.</figcaption>\n</figure>\n" +
           worst_table(results);
  }
  return "<figure>\n" + figures::strip_plot(plot) +
         "<figcaption>Dots: samples; bar: judged value; bracket: its interval; solid line: limit; shaded: guard "
         "band; dashed: acceptance limit."
         "</figcaption>\n</figure>\n";
}

std::string source_words(const plan::Source& source) {
  std::string words = source.document;
  if (!source.figure.empty()) words += ": " + source.figure;
  if (!source.date.empty()) words += " (" + source.date + ")";
  if (!source.method.empty()) words += ". " + source.method;
  return fmt::format("{} <span class=\"tag{}\">{}</span>", figures::escape(words),
                     source.status == "sourced" ? "" : " weak", figures::escape(source.status));
}

std::string at_words(const Values& at) {
  std::string words;
  for (const auto& [name, value] : at)
    words += fmt::format("{}{} = {}", words.empty() ? ", at " : ", ", name, to_json(value).dump());
  return words;
}

std::string value_words(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : to_json(value).dump();
}

/// Uncertainty budget of each result: instrument, total, guard band.
std::string uncertainty_table(const ReportContent& content, const plan::Requirement& requirement,
                              const std::vector<const judge::Result*>& results) {
  const auto probe = content.run.plan.probes.find(requirement.probe);
  if (probe == content.run.plan.probes.end()) return "";
  const auto* metric = probe->second.description.metric(requirement.metric);
  struct Line {
    const judge::Result* result;
    double instrument, guard;
  };
  std::vector<Line> lines;
  std::vector<double> numbers;
  for (const judge::Result* one : results) {
    if (!one->value || !one->uncertainty || lines.size() == figures::kMostStripRows) continue;
    const double instrument = metric == nullptr ? 0 : metric->instrument * std::abs(*one->value);
    const double guard = one->acceptance_low    ? *one->acceptance_low - *one->limit_low
                         : one->acceptance_high ? *one->limit_high - *one->acceptance_high
                                                : 0;
    lines.push_back({.result = one, .instrument = instrument, .guard = guard});
    numbers.insert(numbers.end(), {*one->uncertainty, guard});
  }
  if (lines.empty()) return "";
  Scale scale = scale_for(numbers, requirement.limit.unit);
  scale.decimals = std::min(scale.decimals, 4);  // further digits of an uncertainty are not significant
  std::vector<std::string> rows;
  for (const auto& [one, instrument, guard] : lines) {
    rows.push_back(figures::row({figures::escape(figures::subject_words(*one)), figures::escape(scale.text(instrument)),
                                 figures::escape(scale.text(*one->uncertainty)),
                                 *one->value == 0 ? "—" : figures::percent(*one->uncertainty / std::abs(*one->value)),
                                 figures::escape(scale.text(guard))}));
  }
  return figures::table("budget", "Uncertainty budget",
                        {"Uncertainty", "Instrument (type B)", "u, with repeatability", "u, relative", "Guard band w"},
                        rows);
}

std::string required_table(const ReportContent& content) {
  std::vector<std::string> rows;
  std::size_t met = 0;
  for (const auto& result : content.verdict.results) {
    for (const auto& condition : result.conditions) {
      if (condition.met && ++met > kMostConditionRows) continue;
      rows.push_back(figures::row({figures::requirement_number(content.run.plan.profile, result.requirement),
                                   figures::escape(figures::subject_words(result)), figures::escape(condition.name),
                                   figures::escape(condition.demanded),
                                   condition.seen ? figures::escape(value_words(*condition.seen)) : "not recorded",
                                   condition.met ? "met" : "<span class=\"unmet\">NOT MET</span>"}));
    }
  }
  if (rows.empty()) return "<p>No measured requirement has a condition.</p>\n";
  std::string html = figures::table("conditions", "Required conditions",
                                    {"No.", "Subject", "Condition", "Required", "Recorded", ""}, rows);
  if (met > kMostConditionRows)
    html += fmt::format("<p>{} further conditions are met; evidence/verdict.json lists them.</p>\n",
                        met - kMostConditionRows);
  return html;
}

/// Records with the same words, of one step or of several.
struct RecordedRow {
  std::string probe, words, step;  ///< the first step
  std::size_t number = 0;          ///< of the record in that step, from 1
  std::size_t others = 0;          ///< further steps with the same
};

std::string recorded_words(const Record& record) {
  std::string words;
  for (const auto& condition : record.conditions) {
    words += fmt::format(
        "{}{}{} = {}", words.empty() ? "" : "; ", condition.name,
        condition.subject.kind == "node" ? "" : fmt::format(" [{} {}]", condition.subject.kind, condition.subject.id),
        value_words(condition.value));
  }
  for (const auto& note : record.notes) words += (words.empty() ? "note: " : "; note: ") + note;
  if (record.end.status != Status::complete)
    words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", to_string(record.end.status), record.end.reason);
  return words;
}

/// Adds the record; one without a measurement, such as a companion that skips, joins those that say the same.
void add_record(std::vector<RecordedRow>& rows, const std::string& step, const Record& record, std::size_t number) {
  RecordedRow row{.probe = record.start.probe, .words = recorded_words(record), .step = step, .number = number};
  if (record.measurements.empty()) {
    const auto same = std::ranges::find_if(
        rows, [&](const RecordedRow& one) { return one.probe == row.probe && one.words == row.words; });
    if (same != rows.end()) {
      ++same->others;
      return;
    }
  }
  rows.push_back(std::move(row));
}

std::string html_of(const RecordedRow& row) {
  return figures::row({fmt::format("<code>{}</code>{}<br><small>{}, record {}</small>", figures::escape(row.step),
                                   row.others == 0 ? "" : fmt::format(" and {} more steps", row.others),
                                   figures::escape(row.probe), row.number),
                       figures::escape(row.words)});
}

}  // namespace

std::string results_section(const ReportContent& content) {
  figures::ResultsOf results;
  for (const auto& result : content.verdict.results) results[result.requirement].push_back(&result);
  const figures::StepIndex steps = figures::index_of_steps(content.run.plan);
  std::string html = heading(4);
  for (const auto& requirement : content.run.plan.profile.requirements) {
    const auto& own = results[requirement.id];
    const std::string placed = figures::placement_words(requirement);
    html += fmt::format("<section id=\"{}\">\n<h3>{} {} <code>{}</code></h3>\n",
                        anchor_of(content.run.plan.profile, requirement.id),
                        figures::requirement_number(content.run.plan.profile, requirement.id),
                        figures::escape(requirement.title), figures::escape(requirement.id));
    html += fmt::format("<p>Requirement: {} {}{} per {} {} (probe <code>{}</code>{}). Source: {}</p>\n",
                        word_of(requirement.statistic), figures::escape(requirement.figure()),
                        figures::escape(at_words(requirement.at)), word_of(requirement.scope),
                        figures::escape(figures::target_words(content.run.plan.profile, requirement)),
                        figures::escape(requirement.probe), placed.empty() ? "" : "; " + figures::escape(placed),
                        source_words(requirement.source));
    html += part_of_page("the figures of " + requirement.id,
                         [&] {
                           return figure(content, requirement, own) +
                                  requirement_charts(content, steps, requirement, results) +
                                  uncertainty_table(content, requirement, own);
                         }) +
            "</section>\n";
  }
  return html + part_of_page("curves over sizes", [&] { return network_section(content, steps, results); }) +
         part_of_page("power", [&] { return power_section(content); });
}

std::string conditions_section(const ReportContent& content) {
  std::string html = heading(5) +
                     "<p>A required condition that is not met or not recorded makes the result "
                     "inconclusive.</p>\n<h3>Required</h3>\n";
  html += required_table(content) + "<h3>Recorded</h3>\n";
  std::vector<RecordedRow> recorded;
  for (const auto& step : content.run.plan.steps) {
    if (recorded.size() >= kMostRecordedSteps) break;
    for (const auto* records : {&content.records, &content.companions}) {
      const auto found = records->find(step.id);
      if (found == records->end()) continue;
      for (std::size_t i = 0; i < found->second.size(); ++i) add_record(recorded, step.id, found->second[i], i + 1);
    }
  }
  std::vector<std::string> rows;
  for (const auto& row : recorded) rows.push_back(html_of(row));
  if (rows.empty()) return html + "<p>No record could be read.</p>\n";
  html += figures::table("recorded", "Recorded conditions", {"Step, probe", "Conditions and notes"}, rows);
  if (content.run.plan.steps.size() > kMostRecordedSteps)
    html += "<p>Records of further steps: evidence/records.</p>\n";
  return html;
}

}  // namespace assay::page
