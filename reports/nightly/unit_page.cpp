// unit_page: from trends to HTML.
#include "reports/nightly/unit_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/drift/report.h"
#include "probes/core/portable_math.h"
#include "probes/core/scale.h"
#include "probes/core/words.h"
#include "reports/figures/axis.h"
#include "reports/figures/html.h"
#include "reports/figures/svg.h"
#include "reports/nightly/shell.h"

namespace assay::nightly {
namespace {

using figures::escape;

using drift::Date;
using figures::kFigureWidth;

constexpr double kBeside = 84, kRight = 12, kAbove = 22, kPlot = 150, kBelow = 24;
constexpr double kBand = 3;  // deviations
constexpr double kDot = 2.2;
constexpr std::size_t kDates = 6;

/// The lowest and highest expected figure of a night: its reference's mean, moved with the cohort.
struct Expected {
  Date night = {};
  double low = 0, high = 0;
};

std::vector<Expected> expected_of(const SeriesTrend& series, const drift::Flag* flag) {
  std::vector<Expected> all;
  if (flag == nullptr || flag->type != drift::MetricClass::level || !(flag->arithmetic.s > 0)) return all;
  const double sign = series.metric.lower_is_better ? -1 : 1;  // logarithms in which smaller is worse
  for (const auto& one : series.nights) {
    if (one.retest || (one.cohort && !(*one.cohort > 0))) continue;
    const double centre = flag->arithmetic.m + (one.cohort ? sign * portable_log(*one.cohort) : 0);
    const double a = portable_exp(sign * (centre - kBand * flag->arithmetic.s));
    const double b = portable_exp(sign * (centre + kBand * flag->arithmetic.s));
    all.push_back({.night = one.night, .low = std::min(a, b), .high = std::max(a, b)});
  }
  return all;
}

/// Places of values and nights.
struct Frame {
  Date from, to;
  figures::Axis values;

  [[nodiscard]] double x(Date night) const {
    const auto days = std::max<double>(1, static_cast<double>((to - from).count()));
    return kBeside + (kFigureWidth - kBeside - kRight) * static_cast<double>((night - from).count()) / days;
  }
  [[nodiscard]] double y(double value) const { return kAbove + kPlot * (1 - values.share(value)); }
};

Frame frame_of(const SeriesTrend& series, const std::vector<Expected>& band, Date from, Date to) {
  std::vector<double> all;
  for (const auto& one : series.nights) {
    all.push_back(one.value);
    if (one.cohort) all.push_back(*one.cohort);
  }
  for (const auto& one : band) all.insert(all.end(), {one.low, one.high});
  if (series.accepted) all.push_back(*series.accepted);
  return {.from = from, .to = to, .values = figures::Axis::around(all, 0.06, 0.01)};
}

std::string axes(const Frame& frame, const std::string& unit) {
  std::string out;
  const auto marks = frame.values.marks();
  const Scale scale = figures::scale_for_marks(marks, unit);
  for (const double mark : marks) {
    out += figures::svg_line(kBeside, frame.y(mark), kFigureWidth - kRight, frame.y(mark), "grid");
    out += figures::svg_text(kBeside - 5, frame.y(mark) + 4, "end", "mark", scale.text(mark));
  }
  const auto days = (frame.to - frame.from).count();
  const auto step = std::max<std::int64_t>(1, days / static_cast<std::int64_t>(kDates));
  for (std::int64_t day = 0; day <= days; day += step) {
    const Date night = frame.from + std::chrono::days(day);
    if (frame.x(night) + 62 > kFigureWidth) break;
    out += figures::svg_text(frame.x(night), kAbove + kPlot + 16, "start", "mark", drift::date_text(night));
  }
  return out + figures::svg_line(kBeside, kAbove + kPlot, kFigureWidth - kRight, kAbove + kPlot, "axis");
}

std::string polygon(const Frame& frame, const std::vector<Expected>& band) {
  if (band.size() < 2) return "";
  std::string points;
  for (const auto& one : band) points += fmt::format("{:.1f},{:.1f} ", frame.x(one.night), frame.y(one.high));
  for (auto one = band.rbegin(); one != band.rend(); ++one)
    points += fmt::format("{:.1f},{:.1f} ", frame.x(one->night), frame.y(one->low));
  return fmt::format(R"(<polygon class="expected" points="{}"/>)", points);
}

std::string dots(const Frame& frame, const SeriesTrend& series) {
  std::string line;
  std::string out;
  for (const auto& one : series.nights) {
    const double x = frame.x(one.night);
    const double y = frame.y(one.value);
    if (one.cohort && !one.retest) line += fmt::format("{:.1f},{:.1f} ", x, frame.y(*one.cohort));
    if (one.retest) {
      out += figures::svg_line(x - 3, y - 3, x + 3, y + 3, "retest") +
             figures::svg_line(x - 3, y + 3, x + 3, y - 3, "retest");
    } else {
      out += fmt::format(R"(<circle class="night-value" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>)", x, y, kDot);
    }
  }
  if (!line.empty()) line = fmt::format(R"(<polyline class="cohort" points="{}"/>)", line);
  return line + out;
}

std::string upright(const Frame& frame, Date night, const char* css_class, const std::string& words) {
  if (night < frame.from || night > frame.to) return "";
  const double x = frame.x(night);
  const bool right = x > kFigureWidth * 0.8;
  return figures::svg_line(x, kAbove - 6, x, kAbove + kPlot, css_class) +
         figures::svg_text(right ? x - 3 : x + 3, kAbove - 8, right ? "end" : "start", "mark", words);
}

/// Dots are nightly figures, crosses re-tests, the thin line the median of comparable units (from four on), the dashed
/// line the signed acceptance. The band is the expectation of the flag's reference, three deviations each way, moved
/// with the median of the night; without a flag there is none. Upright lines are the onset of the flag and the events.
std::string night_chart(const SeriesTrend& series, const drift::Flag* flag, const std::vector<drift::Event>& events,
                        Date from, Date to) {
  const auto band = expected_of(series, flag);
  const Frame frame = frame_of(series, band, from, to);
  const Scale scale = scale_for(std::vector<double>{frame.values.low(), frame.values.high()}, series.metric.unit);
  std::string out = figures::svg_open(
      series.metric.name + " by night",
      fmt::format("{} figures from {} to {}, between {} and {}.", series.nights.size(), drift::date_text(from),
                  drift::date_text(to), scale.text(frame.values.low()), scale.text(frame.values.high())),
      kAbove + kPlot + kBelow);
  out += polygon(frame, band) + axes(frame, series.metric.unit);
  if (series.accepted) {
    const double y = frame.y(*series.accepted);
    out += figures::svg_line(kBeside, y, kFigureWidth - kRight, y, "accepted");
    out += figures::svg_text(kFigureWidth - kRight, y - 3, "end", "mark",
                             "accepted " + for_people(*series.accepted, series.metric.unit));
  }
  for (const auto& event : events) out += upright(frame, event.night, "event", std::string(word_of(event.kind)));
  if (flag != nullptr) out += upright(frame, flag->onset, "onset", "onset");
  return out + dots(frame, series) + "</svg>";
}

/// Four significant digits of a number without a unit.
std::string number(double value) { return for_people(value, "1"); }

std::string identity(const UnitTrend& one) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"State", fmt::format("<span class=\"state {0}\">{0}</span>", word_of(one.state))},
      {"Unit", fmt::format("{} <small>{}</small>", escape(one.unit.id),
                           one.unit.serial ? "by its serial number" : "no serial number is known")},
      {"Kind", escape(one.unit.kind)},
      {"Place", escape(one.unit.node) + (one.unit.slot.empty() ? "" : ", " + escape(one.unit.slot))}};
  if (!one.unit.leaf.empty()) rows.emplace_back("Leaf", escape(one.unit.leaf));
  if (!one.unit.rack.empty()) rows.emplace_back("Rack", escape(one.unit.rack));
  return figures::facts("Unit", rows);
}

std::string events_of(const UnitTrend& one) {
  if (one.events.empty()) return "";
  std::vector<std::string> rows;
  for (const auto& event : one.events)
    rows.push_back(figures::row({drift::date_text(event.night), escape(word_of(event.kind)), escape(event.scope),
                                 escape(event.text), escape(event.who)}));
  return figures::table("events", "Events", {"Night", "Kind", "Of", "Text", "By"}, rows);
}

std::string series_of(const SeriesTrend& series, const UnitTrend& unit, const drift::DriftReport& report,
                      drift::Date from) {
  const drift::Flag* flag = series.flag ? &report.flags[*series.flag] : nullptr;
  std::string out = fmt::format("<h3>{}</h3>\n", escape(series.metric.name));
  if (series.nights.empty()) return out + "<p>No figure in these nights.</p>\n";
  out += fmt::format(
      "<figure>{}<figcaption>{}; {} is better. Dots: nights; crosses: re-tests; line: median of comparable units; "
      "band: what the flag's reference expects.</figcaption></figure>\n",
      night_chart(series, flag, unit.events, from, report.as_of), escape(series.metric.probe),
      series.metric.lower_is_better ? "lower" : "higher");
  return flag == nullptr ? out : out + flag_details(*flag, report.as_of);
}

}  // namespace

std::string flag_details(const drift::Flag& flag, drift::Date today) {
  const auto& terms = flag.arithmetic;
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"Flag", fmt::format("<code>{}</code>, {}, raised {}, rule {}", escape(flag.id), word_of(flag.state),
                           drift::date_text(flag.raised), word_of(flag.rule))},
      {"Meaning", escape(flag.words)},
      {"Next step", escape(drift::advice_for(flag))},
      {"Action for the figure", escape(action_words(flag, today))},
      {"Change", change_words(flag)},
      {"Tonight, cohort's shift", fmt::format("x = {}, shift = {} (logarithms)", number(terms.x), number(terms.shift))},
      {"Reference", fmt::format("m = {}, s = {}, of n = {:.0f} visits, serial correlation {} taken out",
                                number(terms.m), number(terms.s), terms.n, number(terms.rho))},
      {"Residual, score", fmt::format("T = {}, z = {} among {} peers", number(terms.T), number(terms.z), terms.peers)},
      {"Chart",
       terms.h > 0 ? fmt::format("C = {} beyond h = {}", number(terms.C), number(terms.h)) : "not used by this rule"},
      {"Relapses in 28 nights", std::to_string(flag.relapses)}};
  std::string out = figures::facts("The numbers behind the flag", rows);
  if (flag.retests.empty()) return out;
  std::vector<std::string> tests;
  for (const auto& one : flag.retests)
    tests.push_back(
        figures::row({drift::date_text(one.night), one.regular ? "nightly visit" : "re-test", number(one.ratio),
                      number(one.residual), escape(one.partner), figures::digest_html(one.run_sha256)}));
  return out + figures::table("retests", "Re-tests", {"Night", "Kind", "Ratio", "Residual", "Partner", "Run"}, tests);
}

std::string unit_page(const std::string& name, const std::vector<UnitTrend>& units, const drift::DriftReport& report,
                      std::size_t most) {
  // Empty nights before the first visit would push the curve out of a narrow window.
  drift::Date from = report.as_of;
  for (const auto& one : units) {
    for (const auto& series : one.series) {
      if (!series.nights.empty()) from = std::min(from, series.nights.front().night);
    }
  }
  from = std::max(from, report.as_of - std::chrono::days(most - 1));
  std::string body = fmt::format("<p class=\"subtitle\">Nights {} to {}</p>\n", drift::date_text(from),
                                 drift::date_text(report.as_of));
  for (const auto& one : units) {
    if (units.size() > 1) body += fmt::format("<h2>{}</h2>\n", escape(one.unit.id));
    body += identity(one) + events_of(one);
    for (const auto& series : one.series) body += series_of(series, one, report, from);
  }
  return page_of(name, report.simulated, body);
}

}  // namespace assay::nightly
