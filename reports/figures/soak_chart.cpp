// soak_chart: a dot for each window, a line for each interruption.
#include "reports/figures/record_charts.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>

#include <fmt/format.h>

#include "reports/figures/axis.h"
#include "reports/figures/html.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

constexpr double kSoakLeft = 70, kSoakRight = kFigureWidth - 20, kSoakTop = 34, kSoakBottom = 214;
constexpr double kDot = 4;
constexpr std::size_t kMostWindows = 1000;  // of a week of windows every so many are drawn, of interruptions the first

/// One interruption: when, since the soak began, in s, and its class.
struct Break {
  double at_s;
  std::string how;
};

struct Soaked {
  const std::vector<double>*at_s = nullptr, *step_s = nullptr;
  std::vector<Break> breaks;
  double settling_s = 0;
  std::string shows;
};

std::optional<Soaked> soaked(const Record& record) {
  Soaked found;
  for (const auto& one : record.measurements) {
    if (one.metric == "window_time") found.at_s = &one.samples;
    if (one.metric == "step_time") found.step_s = &one.samples;
    if (one.metric != "interruption_time") continue;
    const auto how = one.at.find("class");
    const auto* word = how == one.at.end() ? nullptr : std::get_if<std::string>(&how->second);
    for (const double at_s : one.samples) found.breaks.push_back({at_s, word == nullptr ? "" : *word});
  }
  if (found.at_s == nullptr || found.step_s == nullptr || found.at_s->empty() ||
      found.at_s->size() != found.step_s->size())
    return std::nullopt;
  const auto settling = record.start.parameters.find("settling");
  if (settling != record.start.parameters.end()) {
    if (const auto* value = std::get_if<double>(&settling->second)) found.settling_s = *value;
    if (const auto* whole = std::get_if<std::int64_t>(&settling->second))
      found.settling_s = static_cast<double>(*whole);
  }
  const auto shows = std::ranges::find(record.conditions, "shows", &Condition::name);
  if (shows != record.conditions.end()) {
    if (const auto* words = std::get_if<std::string>(&shows->value)) found.shows = *words;
  }
  return found;
}

std::string soak_svg(const Soaked& soak, const std::string& place) {
  double end_s = std::ranges::max(*soak.at_s), most_s = std::ranges::max(*soak.step_s);
  for (const auto& one : soak.breaks) end_s = std::max(end_s, one.at_s);
  if (!(end_s > 0) || !(most_s > 0)) return "";
  constexpr double kMargin = 1.05;  // so that the last and the longest are not on the edge
  const Axis across(0, kMargin * end_s), upright(0, kMargin * most_s);
  const auto x = [&](double value) { return kSoakLeft + (kSoakRight - kSoakLeft) * across.share(value); };
  const auto y = [&](double value) { return kSoakBottom - (kSoakBottom - kSoakTop) * upright.share(value); };
  std::string svg = svg_open("Step time over the soak of " + place,
                             fmt::format("{} windows and {} interruptions.", soak.at_s->size(), soak.breaks.size()),
                             kSoakBottom + 42);
  const auto times = across.marks(), steps = upright.marks();
  const Scale time = scale_for_marks(times, "s"), step = scale_for_marks(steps, "s");
  for (const double mark : times) {
    svg += svg_text(x(mark), kSoakBottom + 16, "middle", "mark", time.number(mark));
  }
  for (const double mark : steps) {
    svg += svg_line(kSoakLeft, y(mark), kSoakRight, y(mark), "grid") +
           svg_text(kSoakLeft - 6, y(mark) + 4, "end", "mark", step.number(mark));
  }
  const std::size_t each = (soak.at_s->size() + kMostWindows - 1) / kMostWindows;
  for (std::size_t i = 0; i < soak.at_s->size(); i += each)
    svg += svg_rect(x((*soak.at_s)[i]) - kDot / 2, y((*soak.step_s)[i]) - kDot / 2, kDot, kDot, "part-0");
  if (soak.settling_s > 0 && soak.settling_s < across.high())
    svg += svg_line(x(soak.settling_s), kSoakTop, x(soak.settling_s), kSoakBottom, "axis") +
           svg_text(x(soak.settling_s) + 4, kSoakTop + 10, "start", "mark", "settled");
  for (const auto& one : soak.breaks | std::views::take(kMostWindows))
    svg += svg_rect(x(one.at_s) - 0.75, kSoakTop, 1.5, kSoakBottom - kSoakTop, "part-2") +
           svg_text(x(one.at_s), kSoakTop - 6, "middle", "mark", end_of(one.how, 12));
  svg +=
      svg_line(kSoakLeft, kSoakTop, kSoakLeft, kSoakBottom, "axis") +
      svg_line(kSoakLeft, kSoakBottom, kSoakRight, kSoakBottom, "axis") +
      svg_text(0, 13, "start", "mark", step.unit + " a step, median of a window") +
      svg_text((kSoakLeft + kSoakRight) / 2, kSoakBottom + 34, "middle", "mark", time.unit + " since the soak began");
  return svg + "</svg>\n";
}

}  // namespace

std::vector<Chart> soak_charts(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                               const RecordsOf& records) {
  if (requirement.probe != "train_soak" || !is_first_of_measurement(plan, requirement)) return {};
  std::vector<Chart> charts;
  for (const auto& step : steps_of(results)) {
    const auto found = records.find(step);
    if (found == records.end()) continue;
    for (const auto& record : found->second) {
      const auto soak = soaked(record);
      if (!soak || charts.size() == kMostSoaks) continue;
      Chart chart{
          .svg = soak_svg(*soak, place_of(plan, step, record)),
          .caption = fmt::format("{}{} windows, a dot each; a line for each of {} interruptions, by class. {}{} ",
                                 kind_words(plan), soak->at_s->size(), soak->breaks.size(), escape(soak->shows),
                                 soak->shows.empty() ? "" : ".")};
      if (!chart.svg.empty()) charts.push_back(std::move(chart));
    }
  }
  return charts;
}

}  // namespace assay::figures
