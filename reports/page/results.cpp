// results: each requirement with its figure, and the recorded conditions.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "orchestrator/judge/overall/ranking.h"
#include "reports/figures/captions.h"
#include "reports/figures/html.h"
#include "reports/figures/pair_chart.h"
#include "reports/figures/plot.h"
#include "reports/figures/result_text.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

constexpr std::size_t kWorstListed = 10;          // of a distribution that is too large to be listed
constexpr std::size_t kMostConditionRows = 1000;  // of met conditions; unmet ones are always printed
constexpr std::size_t kConditionsOnPaper = 24;    // likewise
constexpr std::size_t kFiguresOnPaper = 2;        // of requirements that do not pass

std::string worst_table(const std::vector<const judge::Result*>& results) {
  std::vector<std::string> rows;
  const auto worst = figures::worst_of(results, kWorstListed);
  const Scale scale = figures::column_scale(worst);
  for (const judge::Result* one : worst) {
    rows.push_back(
        figures::row({figures::escape(figures::subject_words(*one)),
                      one->value ? figures::escape(figures::text_in(scale, *one, *one->value)) : "—",
                      one->margin ? figures::percent(*one->margin) : "—", figures::outcome_box(one->outcome)}));
  }
  return figures::table("worst", "Worst results", {"Worst results", "Value", "Margin", "Verdict"}, rows);
}

/// The values of a demand, the worst first.
std::string demand_table(const std::vector<const judge::Result*>& results) {
  std::vector<std::string> rows;
  for (const judge::Result* one : figures::worst_of(results, kWorstListed))
    rows.push_back(figures::row({figures::escape(figures::subject_words(*one)), figures::value_html(*one),
                                 figures::outcome_box(one->outcome)}));
  return "<div class=\"detail\">\n" +
         figures::table("worst", "Recorded values", {"Recorded values", "Value", "Verdict"}, rows) + "</div>\n";
}

std::string figure(const ReportContent& content, const plan::Requirement& requirement,
                   const std::vector<const judge::Result*>& results) {
  if (requirement.demand) return demand_table(results);
  if (requirement.rise) return "";  // the samples are those of the counter
  figures::Plot plot{.title = fmt::format("{} ({})", requirement.figure(), requirement.statistic),
                     .unit = requirement.limit.unit};
  for (const judge::Result* result : results) {
    if (result->value) plot.rows.push_back(figures::plot_row(*result, content.samples(*result)));
  }
  if (plot.rows.empty()) return "<p class=\"small\">No figure: nothing was measured.</p>\n";
  if (plot.rows.size() > figures::kMostStripRows) {
    return "<figure>\n" + figures::distribution_plot(plot) +
           "<figcaption>Empirical distribution of the judged value over all subjects. Dot: pass; cross: no pass; solid "
           "line: limit; shaded: guard band; dashed: acceptance limit.</figcaption>\n</figure>\n" +
           "<div class=\"detail\">\n" + worst_table(results) + "</div>\n";
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

/// A condition for people: a text as it is, a measured number with four significant digits; the record has all of them.
std::string value_words(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const auto* number = std::get_if<double>(&value);
  return number != nullptr ? for_people(*number, "1") : to_json(value).dump();
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
    if (!one->value || !one->uncertainty || *one->uncertainty == 0 || lines.size() == figures::kMostStripRows) continue;
    const double instrument = one->terms          ? one->terms->instrument
                              : metric == nullptr ? 0
                                                  : metric->instrument * std::abs(*one->value);
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

/// Results of which the same was demanded and seen.
struct SameCondition {
  std::string name, demanded, seen;
  bool met = false;
  std::set<std::size_t> requirements;  ///< their numbers
  std::set<std::string> subjects;
};

std::string subjects_words(const SameCondition& same) {
  constexpr std::size_t kNamed = 2, kUnmetNamed = 40;
  const std::size_t most = same.met ? kNamed : kUnmetNamed;
  if (same.met && same.subjects.size() > most) return fmt::format("{} subjects", same.subjects.size());
  std::string words;
  std::size_t shown = 0;
  for (const auto& one : same.subjects) {
    if (++shown > most) break;
    words += (words.empty() ? "" : ", ") + figures::escape(one);
  }
  return shown > most ? words + fmt::format(" and {} more", same.subjects.size() - most) : words;
}

std::string required_table(const ReportContent& content) {
  std::map<std::string_view, std::size_t> numbers;
  for (const auto& one : content.run.plan.profile.requirements) numbers.emplace(one.id, numbers.size() + 1);
  std::vector<SameCondition> all;
  std::map<std::tuple<bool, std::string, std::string, std::string>, std::size_t> places;
  for (const auto& result : content.verdict.results) {
    for (const auto& condition : result.conditions) {
      const std::string seen = condition.seen ? value_words(*condition.seen) : "not recorded";
      const auto [place, is_new] =
          places.try_emplace({condition.met, condition.name, condition.demanded, seen}, all.size());
      if (is_new)
        all.push_back({.name = condition.name, .demanded = condition.demanded, .seen = seen, .met = condition.met});
      all[place->second].requirements.insert(numbers[result.requirement]);
      all[place->second].subjects.insert(figures::subject_words(result));
    }
  }
  if (all.empty()) return "<p>No measured requirement has a condition.</p>\n";
  std::ranges::stable_partition(all, [](const SameCondition& one) { return !one.met; });
  std::vector<std::string> rows;
  std::size_t met = 0;
  for (const auto& one : all) {
    if (one.met && ++met > kMostConditionRows) continue;
    rows.push_back(figures::row({figures::escape(one.name), figures::escape(one.demanded), figures::escape(one.seen),
                                 number_ranges(one.requirements), subjects_words(one),
                                 one.met ? "met" : "<span class=\"unmet\">NOT MET</span>"},
                                one.met && met > kConditionsOnPaper ? "detail" : ""));
  }
  std::string html = figures::table("conditions", "Required conditions",
                                    {"Condition", "Required", "Recorded", "Requirements", "Subjects", ""}, rows);
  if (met > kConditionsOnPaper)
    html += fmt::format("<p class=\"on-paper\">{} further rows of met conditions: report.html.</p>\n",
                        met - kConditionsOnPaper);
  if (met > kMostConditionRows)
    html += fmt::format("<p>{} further rows of met conditions: evidence/verdict.json.</p>\n", met - kMostConditionRows);
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
  Subject last{"node", ""};
  for (const auto& condition : record.conditions) {
    constexpr std::size_t kWord = 32;  // longer are structures of TPMs and GPUs; section 9 has digests
    const auto* text = std::get_if<std::string>(&condition.value);
    if (plan::asks_hardware(record.start.probe) && text != nullptr && text->size() > kWord) continue;
    const bool finer = condition.subject.kind != "node" && condition.subject != last;  // named once for its conditions
    words += fmt::format("{}{}{} = {}", words.empty() ? "" : "; ",
                         finer ? fmt::format("[{} {}] ", condition.subject.kind, condition.subject.id) : "",
                         condition.name, value_words(condition.value));
    last = condition.subject;
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

/// What is required, per what, by which probe.
std::string requirement_words(const ReportContent& content, const plan::Requirement& requirement) {
  const std::string placed = figures::placement_words(requirement);
  const std::string statistic = requirement.demand ? "" : fmt::format("{} ", requirement.statistic);
  return fmt::format("{}{}{} per {} {} (probe <code>{}</code>{})", statistic, figures::escape(requirement.figure()),
                     figures::escape(at_words(requirement.at)), word_of(requirement.scope),
                     figures::escape(figures::target_words(content.run.plan.profile, requirement)),
                     figures::escape(requirement.probe), placed.empty() ? "" : "; " + figures::escape(placed));
}

std::string counter_row(const plan::Requirement& requirement, const std::vector<const judge::Result*>& results,
                        const std::string& number, const std::string& words) {
  const judge::Result& worst = *figures::worst_of(results, 1).front();
  const Scale scale = figures::column_scale(results);
  return figures::row(
      {number, figures::escape(requirement.title) + "<br><small class=\"detail\">" + words + "</small>",
       "<strong>" + figures::text_in(scale, worst, *worst.value) + "</strong>",
       figures::limit_text(scale, worst, "<br>"),
       results.size() == 1 ? figures::escape(figures::subject_words(worst)) : fmt::format("{}", results.size()),
       figures::outcome_box(worst.outcome), source_words(requirement.source)});
}

}  // namespace

bool is_counter(const ReportContent& content, const plan::Requirement& requirement,
                const std::vector<const judge::Result*>& results) {
  if (results.empty() || !results.front()->value) return false;
  const double value = *results.front()->value;
  if (value != std::floor(value) || (requirement.limit.unit != "1" && value != 0)) return false;
  const auto is_same = [&](double one) { return one == value; };
  return std::ranges::all_of(results, [&](const judge::Result* one) {
    if (!one->value || !is_same(*one->value)) return false;
    return requirement.rise || std::ranges::all_of(content.samples(*one), is_same);  // of a rise: those of the counter
  });
}

std::string results_section(const ReportContent& content) {
  const plan::Profile& profile = content.run.plan.profile;
  figures::ResultsOf results;
  for (const auto& result : content.verdict.results) results[result.requirement].push_back(&result);
  std::set<std::string_view> counters, on_paper;
  for (const auto& one : profile.requirements)
    if (is_counter(content, one, results[one.id])) counters.insert(one.id);
  for (const auto& one : profile.requirements) {  // both directions of a pair share a matrix
    const auto* other = figures::other_direction(profile, one);
    if (other != nullptr && !counters.contains(other->id)) counters.erase(one.id);
  }
  for (const auto& one : judge::summaries(content.verdict))
    if (!one.open.empty() && on_paper.size() < kFiguresOnPaper) on_paper.insert(one.worst->requirement);
  const figures::StepIndex steps = figures::index_of_steps(content.run.plan);
  std::string sections, charts;
  std::vector<std::string> listed, counted;
  for (const auto& requirement : profile.requirements) {
    const auto& own = results[requirement.id];
    const bool counter = counters.contains(requirement.id);
    const std::string drawn = requirement.demand ? "" : part_of_page("the charts of " + requirement.id, [&] {
      return requirement_charts(content, steps, requirement, results, counter);
    });
    const std::string number = figures::requirement_number(profile, requirement.id);
    const std::string words = fmt::format("{}{}", requirement_words(content, requirement),
                                          requirement.required ? "" : " <span class=\"tag weak\">advisory</span>");
    if (counter) {
      counted.push_back(counter_row(requirement, own, fmt::format("<span id=\"{0}\">{0}</span>", number), words));
      charts += drawn;
      continue;
    }
    listed.push_back(figures::row({number, figures::escape(requirement.title), source_words(requirement.source)}));
    sections += fmt::format(
        "<section id=\"{0}\"{1}>\n<h3>{0} {2} <code>{3}</code></h3>\n<p class=\"detail\">Requirement: {4}. Source: "
        "{5}</p>\n",
        number, on_paper.contains(requirement.id) ? "" : " class=\"detail\"", figures::escape(requirement.title),
        figures::escape(requirement.id), words, source_words(requirement.source));
    sections += part_of_page("the figures of " + requirement.id,
                             [&] {
                               return figure(content, requirement, own) + "<div class=\"detail\">\n" + drawn +
                                      uncertainty_table(content, requirement, own) + "</div>\n";
                             }) +
                "</section>\n";
  }
  std::string html = heading(4);
  if (!listed.empty())
    html += "<div class=\"on-paper\"><p>Figures of what passes are in report.html.</p>\n" +
            figures::table("requirements", "Requirements and their sources", {"No.", "Requirement", "Source"}, listed) +
            "</div>\n";
  html += sections;
  if (!counted.empty())
    html += "<h3 id=\"counters\">Counters</h3>\n" +
            figures::table("requirements", "Counters, one value in every sample",
                           {"No.", "Requirement", "Value", "Limit", "Subjects", "Verdict", "Source"}, counted) +
            charts;
  return html + "<div class=\"detail\">\n" +
         part_of_page("curves over sizes", [&] { return network_section(content, steps, results); }) + "</div>\n" +
         part_of_page("power", [&] { return power_section(content); }) +
         part_of_page("crossings", [&] { return crossing_section(content); });
}

std::string conditions_section(const ReportContent& content) {
  const bool judged = std::ranges::any_of(content.run.plan.profile.requirements,
                                          [](const plan::Requirement& one) { return one.demand.has_value(); });
  std::string html = heading(5) +
                     "<p>A required condition that is not met or not recorded makes the result inconclusive." +
                     (judged ? " One that is judged itself fails if it is not met." : "") + "</p>\n<h3>Required</h3>\n";
  html += required_table(content) +
          "<p class=\"on-paper\">Recorded conditions: section 5 of report.html.</p>\n<div class=\"detail\">\n"
          "<h3>Recorded</h3>\n";
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
  if (rows.empty()) return html + "<p>No record could be read.</p>\n</div>\n";
  html += figures::table("recorded", "Recorded conditions", {"Step, probe", "Conditions and notes"}, rows);
  if (content.run.plan.steps.size() > kMostRecordedSteps)
    html += "<p>Records of further steps: evidence/records.</p>\n";
  return html + "</div>\n";
}

}  // namespace assay::page
