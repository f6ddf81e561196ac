// power_curves: records of soaks and steps as lines over time.
#include "reports/figures/record_charts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>

#include "orchestrator/judge/metering/site_step.h"
#include "probes/core/statistics.h"
#include "reports/figures/course_chart.h"
#include "reports/figures/html.h"

namespace assay::figures {
namespace {

/// "package-0", "package-0, sensor x": subject of one line.
std::string line_name(const Measurement& measured) {
  std::string name = measured.subject.id.empty() ? measured.subject.kind : measured.subject.id;
  for (const auto& [coordinate, value] : measured.at) {
    if (const auto* text = std::get_if<std::string>(&value)) name += " " + *text;
  }
  return name;
}

const std::vector<double>* samples_of(const Record& record, std::string_view metric, const Subject& subject) {
  for (const auto& one : record.measurements)
    if (one.metric == metric && one.subject == subject) return &one.samples;
  return nullptr;
}

/// The times of a soak, in s since its load began.
struct SoakTimes {
  std::optional<double> mark_s, held_s;
  double interval_s = 0;
};

std::optional<SoakTimes> soak_times(const Record& record) {
  SoakTimes times{.held_s = number_of(record, "held_s")};
  const auto interval_s = number_of(record, "interval_s");
  if (!interval_s || !(*interval_s > 0)) return std::nullopt;
  times.interval_s = *interval_s;
  const auto* mark = samples_of(record, "time_to_steady", {});
  if (mark != nullptr && !mark->empty()) times.mark_s = mark->front();
  return times;
}

void add_evenly(CourseLine& line, std::span<const double> values, double begin_s, double end_s) {
  const double step_s = (end_s - begin_s) / static_cast<double>(std::max<std::size_t>(values.size(), 1));
  for (std::size_t i = 0; i < values.size(); ++i) {
    line.times_s.push_back(begin_s + static_cast<double>(i + 1) * step_s);
    line.values.push_back(values[i]);
  }
}

CourseLine soak_line(const Measurement& measured, const SoakTimes& times) {
  CourseLine line{.name = line_name(measured)};
  const auto due_s = [&](std::size_t readings) { return static_cast<double>(readings) * times.interval_s; };
  const double before_s = times.mark_s.value_or(due_s(measured.warmup.size()));
  add_evenly(line, measured.warmup, 0, before_s);
  add_evenly(line, measured.samples, before_s, before_s + times.held_s.value_or(due_s(measured.samples.size())));
  return line;
}

struct SoakFigure {
  const char* metric;
  const char* words;  ///< of a title
};
constexpr SoakFigure kSoakFigures[] = {{"temperature", "Temperatures"}, {"clock", "Clocks"}, {"power", "Power"}};

std::string soak_caption(const plan::Plan& plan, const SoakTimes& times, const Record& record) {
  const auto moved = std::ranges::find(record.conditions, "unsteady_because", &Condition::name);
  const auto* why = moved == record.conditions.end() ? nullptr : std::get_if<std::string>(&moved->value);
  std::string words = kind_words(plan);
  if (times.mark_s)
    words += fmt::format("Steady after {}; what was read before the mark is warm-up and is not judged.",
                         for_people(*times.mark_s, "s"));
  else
    words += fmt::format("It did not become steady{}.", why == nullptr ? "" : ": " + escape(*why));
  return words + " Readings are drawn evenly over the time before the mark and over that after it.";
}

std::vector<Chart> charts_of_soak(const plan::Plan& plan, const std::string& place, const Record& record) {
  std::vector<Chart> charts;
  const auto times = soak_times(record);
  if (!times) return charts;
  for (const auto& figure : kSoakFigures) {
    CourseChart chart{.title = fmt::format("{} of {} under a long load", figure.words, place),
                      .zero_s = 0,
                      .axis = "s since the load began"};
    for (const auto& measured : record.measurements) {
      if (measured.metric != figure.metric) continue;
      chart.unit = measured.unit;
      chart.lines.push_back(soak_line(measured, *times));
    }
    if (times->mark_s) chart.marks.push_back({.time_s = *times->mark_s, .words = "steady"});
    charts.push_back({.svg = course_svg(chart), .caption = soak_caption(plan, *times, record)});
  }
  std::erase_if(charts, [](const Chart& one) { return one.svg.empty(); });
  return charts;
}

/// A reading a line of steps: time since the mark of its step.
CourseLine step_line(std::span<const TimedValue> readings, const StepSeen& step, std::size_t number) {
  CourseLine line{.name = fmt::format("step {}", number)};
  const double half_s = (step.at_s - step.before_s) / 2;  // before it the fall of the step before may still be there
  for (const auto& one : readings) {
    if (one.at_s < step.at_s - half_s || one.at_s > step.until_s) continue;
    line.times_s.push_back(one.at_s - step.at_s);
    line.values.push_back(one.value);
  }
  return line;
}

struct StepWords {
  std::string title, caption;
  std::optional<double> settled_s;  ///< the longest time from mark to level
};

Chart step_chart(std::span<const TimedValue> readings, const std::vector<StepSeen>& steps, const StepWords& words) {
  CourseChart chart{.title = words.title,
                    .unit = "W",
                    .marks = {{.time_s = 0, .words = "load rises"}},
                    .zero_s = 0,
                    .axis = "s since the load began to rise"};
  for (std::size_t i = 0; i < steps.size(); ++i) chart.lines.push_back(step_line(readings, steps[i], i + 1));
  if (words.settled_s && *words.settled_s > 0) chart.marks.push_back({.time_s = *words.settled_s, .words = "settled"});
  return {.svg = course_svg(chart), .caption = words.caption};
}

/// "rise 2.1 s, overshoot 0.012": medians of a record's or the judge's values of the steps.
std::string response_words(const Record& record, const Subject& subject) {
  std::string words;
  const auto add = [&](const char* name, const char* metric, const char* unit) {
    const auto* samples = samples_of(record, metric, subject);
    if (samples == nullptr || samples->empty()) return;
    words += fmt::format("{}{} {}", words.empty() ? "Medians: " : ", ", name, for_people(median(*samples), unit));
  };
  add("rise from 10 to 90 %", "rise_time", "s");
  add("overshoot", "overshoot", "1");
  add("settled within 5 % after", "settling_time", "s");
  return words.empty() ? words : words + ".";
}

std::optional<double> longest(const Record& record, const char* metric, const Subject& subject) {
  const auto* samples = samples_of(record, metric, subject);
  if (samples == nullptr || samples->empty()) return std::nullopt;
  return std::ranges::max(*samples);
}

/// Why a counter shows no step, as its record has it; empty if it does not say.
std::string unseen_words(const Record& record, const Subject& subject) {
  for (const auto& one : record.conditions) {
    const auto* text = std::get_if<std::string>(&one.value);
    if (one.name == "step_unseen" && one.subject == subject && text != nullptr)
      return fmt::format("No figure follows: {}.", escape(*text));
  }
  return "";
}

/// Each reading of a package at the end of its interval, as power_step takes it.
std::vector<TimedValue> readings_of(const Measurement& measured, double begin_s, double interval_s) {
  std::vector<TimedValue> readings;
  for (std::size_t i = 0; i < measured.samples.size(); ++i)
    readings.push_back({.at_s = begin_s + static_cast<double>(i + 1) * interval_s, .value = measured.samples[i]});
  return readings;
}

std::vector<Chart> charts_of_power_step(const plan::Plan& plan, const std::string& place, const Record& record) {
  std::vector<Chart> charts;
  const auto begin_s = number_of(record, "curve_begin_s"), interval_s = number_of(record, "interval_s");
  if (!begin_s || !interval_s || !(*interval_s > 0)) return charts;
  const auto shape = std::ranges::find(record.conditions, "shape", &Condition::name);
  const bool square = shape != record.conditions.end() && shape->value == Value{std::string("square")};
  for (const auto& measured : record.measurements) {
    if (measured.metric != "power") continue;
    const auto readings = readings_of(measured, *begin_s, *interval_s);
    const std::string of = fmt::format("Power of {} of {}", line_name(measured), place);
    if (square) {
      CourseChart chart{.title = of + " under a load that is switched on and off",
                        .unit = "W",
                        .lines = {{.name = line_name(measured), .values = measured.samples}}};
      for (const auto& one : readings) chart.lines.front().times_s.push_back(one.at_s);
      charts.push_back(
          {.svg = course_svg(chart), .caption = kind_words(plan) + "Each reading is the mean since the last."});
      continue;
    }
    auto steps = judge::steps_up(record);
    // The idle time before the first step is as long as the first hold.
    charts.push_back(
        step_chart(readings, steps,
                   {.title = of + " under steps of its load",
                    .caption = kind_words(plan) + response_words(record, measured.subject) +
                               unseen_words(record, measured.subject) + " Each reading is the mean since the last.",
                    .settled_s = longest(record, "settling_time", measured.subject)}));
  }
  std::erase_if(charts, [](const Chart& one) { return one.svg.empty(); });
  return charts;
}

/// The subjects of the results, each once.
std::set<Subject> subjects_of(const ResultList& results) {
  std::set<Subject> subjects;
  for (const auto* one : results) subjects.insert(one->subject);
  return subjects;
}

std::vector<Chart> charts_of_load(const plan::Plan& plan, const std::set<Subject>& subjects, const Record& load,
                                  const std::map<int, Record>& watches) {
  std::vector<Chart> charts;
  const auto steps = judge::steps_up(load);
  if (steps.empty()) return charts;
  const judge::StepFigures figures = judge::steps_of(load, watches);
  Record joined;
  joined.measurements = figures.measurements;
  for (const auto& [subject, series] : judge::powers_in(watches)) {
    if (!subjects.contains(subject)) continue;
    const auto missing = figures.missing.find(subject);
    const std::string why = missing == figures.missing.end() ? "" : " " + escape(missing->second);
    charts.push_back(
        step_chart(series.readings, steps,
                   {.title = fmt::format("Power of {} {} under steps of the load", subject.kind, subject.id),
                    .caption = fmt::format("{}{}{} By the site's meters, every {}.", kind_words(plan),
                                           response_words(joined, subject), why, for_people(series.interval_s, "s")),
                    .settled_s = longest(joined, "settling_time", subject)}));
  }
  std::erase_if(charts, [](const Chart& one) { return one.svg.empty(); });
  return charts;
}

bool is_of_steps(const plan::Requirement& requirement) {
  return !requirement.during.empty() && std::ranges::find(judge::kOfSteps, requirement.metric) != judge::kOfSteps.end();
}

/// Whether it is the first requirement on figures of steps of its load and scope.
bool is_first_of_steps(const plan::Plan& plan, const plan::Requirement& requirement) {
  const auto first = std::ranges::find_if(plan.profile.requirements, [&](const auto& one) {
    return is_of_steps(one) && one.during == requirement.during && one.scope == requirement.scope &&
           one.parameters == requirement.parameters;
  });
  return first != plan.profile.requirements.end() && first->id == requirement.id;
}

/// `make` for every record of the steps of `results`, up to kMostCurves figures.
template <class Make>
std::vector<Chart> of_each_record(const ResultList& results, const RecordsOf& records, const Make& make) {
  std::vector<Chart> charts;
  for (const auto& step : steps_of(results)) {
    const auto found = records.find(step);
    if (found == records.end()) continue;
    for (const auto& record : found->second)
      for (auto& chart : make(step, record))
        if (charts.size() < kMostCurves) charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace

std::vector<Chart> heat_curves(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                               const RecordsOf& records) {
  if (requirement.probe != "thermal_soak" || !is_first_of_measurement(plan, requirement)) return {};
  return of_each_record(results, records, [&](const std::string& step, const Record& record) {
    return charts_of_soak(plan, place_of(plan, step, record), record);
  });
}

std::vector<Chart> step_curves(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                               const RecordsOf& records, const std::map<int, Record>& watches) {
  if (requirement.probe == "power_step" && is_first_of_measurement(plan, requirement))
    return of_each_record(results, records, [&](const std::string& step, const Record& record) {
      return charts_of_power_step(plan, place_of(plan, step, record), record);
    });
  if (!is_of_steps(requirement) || !is_first_of_steps(plan, requirement) || plan.simulation) return {};
  const auto subjects = subjects_of(results);
  return of_each_record(results, records, [&](const std::string&, const Record& load) {
    return charts_of_load(plan, subjects, load, watches);
  });
}

}  // namespace assay::figures
