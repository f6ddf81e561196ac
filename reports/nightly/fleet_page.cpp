// fleet_page: from a report and the nights behind it to HTML.
#include "reports/nightly/fleet_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "probes/core/how_many.h"
#include "probes/core/words.h"
#include "reports/figures/html.h"
#include "reports/figures/svg.h"
#include "reports/nightly/shell.h"

namespace assay::nightly {
namespace {

using figures::escape;

constexpr std::size_t kMostNamed = 50;  // rows of a table; the file of the report has all

/// Drift's own summary, and the limits of these nights.
std::string lead(const Overview& overview, const drift::DriftReport& report) {
  std::string out = "<pre>";
  std::istringstream lines(drift::summary_text(report) + drift::sight_text(report, nullptr));
  for (std::string line; std::getline(lines, line);) out += escape(line) + "\n";
  out += "</pre>\n";
  std::vector<std::pair<std::string, std::string>> rows = {
      {"As of", drift::date_text(report.as_of)},
      {"Newest sweep", overview.last_started.empty() ? "none" : escape(overview.last_started)},
      {"History", fmt::format("{}, {} series", how_many(report.nights, "night"), report.series)},
      {"Policy, history",
       figures::digest_html(report.policy_sha256) + "<br>" + figures::digest_html(report.history_sha256)}};
  return out + figures::facts("Of what", rows);
}

std::string findings(const drift::DriftReport& report) {
  std::string items;
  for (const auto& one : report.fleet) items += fmt::format("<li>{}</li>", escape(one.words));
  for (const auto& group : report.groups) {
    if (group.flags.size() > 1)
      items += fmt::format("<li>{}: {}</li>", escape(drift::words_of_element(group.element)),
                           how_many(group.flags.size(), "flag"));
  }
  return items.empty() ? "" : "<h2>What many have in common</h2>\n<ul>" + items + "</ul>\n";
}

std::string coverage(const drift::DriftReport& report) {
  const auto& seen = report.coverage;
  std::string out = fmt::format(
      "<h2>Coverage</h2>\n<p>{}: {} measured in the last night, {} not due, {} busy, {} preempted, {} not "
      "measured, {} in "
      "no sweep. The longest wait is {}.</p>\n",
      how_many(seen.units, "unit"), seen.measured, seen.not_due, seen.busy, seen.preempted, seen.not_measured,
      seen.unseen, how_many(seen.max_age_nights, "night"));
  if (seen.overdue.empty()) return out;
  std::vector<std::string> rows;
  for (const auto& one : seen.overdue) {
    if (rows.size() == kMostNamed) break;
    rows.push_back(
        figures::row({escape(one.node), escape(one.unit), std::to_string(one.nights), escape(one.last_state)}));
  }
  out += figures::table("overdue", "Overdue units", {"Node", "Unit", "Nights", "Last"}, rows);
  if (seen.overdue.size() > kMostNamed) out += fmt::format("<p>and {} more.</p>", seen.overdue.size() - kMostNamed);
  return out;
}

/// The map of all, and if that shows groups the one of the nodes that need a look.
std::string maps(const Overview& overview, const drift::DriftReport& report) {
  std::string out = "<h2>Nights</h2>\n";
  if (overview.nodes.empty()) return out + "<p>No unit is known.</p>\n";
  if (overview.nodes.size() <= kMostRows)
    return out + "<figure>" + nights_map(overview.nights, overview.nodes, "Nodes by night") + "</figure>\n";
  std::set<std::string_view> named;
  for (const auto& flag : report.flags) named.insert(flag.node);
  for (const auto& one : report.coverage.overdue) named.insert(one.node);
  std::vector<NodeRow> rows;
  for (const auto& row : overview.nodes) {
    if (rows.size() < kMostRows && named.contains(row.name)) rows.push_back(row);
  }
  if (!rows.empty()) {
    out += fmt::format("<h3>Nodes with a flag, or overdue</h3>\n<figure>{}</figure>\n",
                       nights_map(overview.nights, rows, "Nodes with a flag by night"));
  }
  out += fmt::format(
      "<h3>All {} nodes</h3>\n<p>A row is several nodes; of a night it shows the worst.</p>\n<figure>{}</figure>\n",
      overview.nodes.size(), nights_map(overview.nights, grouped(overview.nodes, kNodesPerRow), "All nodes by night"));
  return out;
}

std::string events(const Overview& overview) {
  if (overview.events.empty()) return "";
  std::vector<std::string> rows;
  for (auto one = overview.events.rbegin(); one != overview.events.rend() && rows.size() < kMostNamed; ++one)
    rows.push_back(figures::row({drift::date_text(one->night), escape(word_of(one->kind)), escape(one->scope),
                                 escape(one->text), escape(one->who)}));
  return "<h2>Events</h2>\n" + figures::table("events", "Events", {"Night", "Kind", "Of", "Text", "By"}, rows);
}

std::string retests(const drift::DriftReport& report) {
  if (report.retests_wanted.empty()) return "";
  std::vector<std::string> rows;
  for (const auto& one : report.retests_wanted) {
    if (rows.size() == kMostNamed) break;
    rows.push_back(figures::row({escape(one.node), escape(one.unit), escape(one.metric), std::to_string(one.times),
                                 one.tonight ? "before the night is over" : "at another hour or night"}));
  }
  return "<h2>Tests that are asked for</h2>\n" +
         figures::table("retests", "Re-tests", {"Node", "Unit", "Metric", "Times", "When"}, rows);
}

using figures::kFigureWidth;

constexpr double kLabels = 130;  // units for the names of rows
constexpr double kTop = 34;      // for the dates
constexpr double kLegend = 44;
constexpr double kRoomyRow = 14;  // of up to kFewRows
constexpr double kTightRow = 9;   // text of this height can just be read
constexpr std::size_t kFewRows = 60;
constexpr std::size_t kMostLabel = 22;

const char* class_of(NodeNight state) {
  constexpr const char* kClasses[kNodeNights] = {"unseen",   "not_due", "busy",    "preempted", "not_measured",
                                                 "measured", "watch",   "flagged", "confirmed"};
  return kClasses[static_cast<std::size_t>(state)];
}

/// One row: a rectangle for each run of equal states.
std::string row_of(const NodeRow& row, double y, double height, double width) {
  std::string out;
  const std::string name = row.nodes > 1 ? fmt::format("{} ({})", row.name, row.nodes) : row.name;
  out += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end" style="font-size:{:.1f}px">)", kLabels - 4,
                     y + height * 0.8, std::min(11.0, height * 0.85));
  out += fmt::format("{}</text>", figures::escape(figures::end_of(name, kMostLabel)));
  for (std::size_t i = 0; i < row.nights.size();) {
    std::size_t end = i + 1;
    while (end < row.nights.size() && row.nights[end] == row.nights[i]) ++end;
    if (row.nights[i] != NodeNight::unseen)
      out += figures::svg_rect(kLabels + static_cast<double>(i) * width, y, static_cast<double>(end - i) * width,
                               height - 1, class_of(row.nights[i]));
    i = end;
  }
  return out;
}

/// The dates above the columns, as many as fit: the last one always, and whole.
std::string dates_of(const std::vector<drift::Date>& nights, double width, double height) {
  constexpr double kDateWidth = 80;
  std::string out;
  const auto step = static_cast<std::size_t>(std::max(1.0, std::ceil(kDateWidth / width)));
  for (std::size_t after = 0; after < nights.size(); after += step) {  // the last night, and those before it
    const std::size_t i = nights.size() - 1 - after;
    const double x = kLabels + static_cast<double>(i + 1) * width;
    out += figures::svg_line(x, kTop - 4, x, height, "grid");
    out += figures::svg_text(x, kTop - 8, "end", "mark", drift::date_text(nights[i]));
  }
  return out;
}

std::string legend_of(const std::vector<NodeRow>& rows, double y) {
  std::array<bool, kNodeNights> occurs{};
  for (const auto& row : rows) {
    for (const auto state : row.nights) occurs[static_cast<std::size_t>(state)] = true;
  }
  std::string out;
  double x = kLabels;
  for (std::size_t i = 0; i < kNodeNights; ++i) {
    if (!occurs[i]) continue;
    const auto state = static_cast<NodeNight>(i);
    const double needed = 18 + figures::text_width(words_for(state)) + 12;
    if (x + needed > kFigureWidth) {
      x = kLabels;
      y += 16;
    }
    out += figures::svg_rect(x, y, 12, 10, class_of(state));
    out += figures::svg_text(x + 16, y + 9, "start", "mark", words_for(state));
    x += needed;
  }
  return out;
}

}  // namespace

std::string fleet_page(const Overview& overview, const drift::DriftReport& report) {
  std::string body = lead(overview, report);
  body += findings(report);
  body += "<h2>Flags</h2>\n";
  body += report.flags.empty() ? "<p>None.</p>\n" : flags_table(by_weight(report.flags));
  body += retests(report) + coverage(report) + maps(overview, report) + events(overview);
  if (!report.not_judged.empty())
    body += fmt::format("<p>{} series had readings that cannot be judged; drift.json names them.</p>\n",
                        report.not_judged.size());
  return page_of(fmt::format("Fleet, night of {}", drift::date_text(report.as_of)), report.simulated, body);
}

std::string nights_map(const std::vector<drift::Date>& nights, const std::vector<NodeRow>& rows,
                       const std::string& title) {
  const double height = rows.size() <= kFewRows ? kRoomyRow : kTightRow;
  const double width = (kFigureWidth - kLabels) / static_cast<double>(nights.size());
  const double bottom = kTop + height * static_cast<double>(rows.size());
  std::size_t flagged = 0;
  for (const auto& row : rows)
    flagged += std::ranges::any_of(row.nights, [](NodeNight one) { return one > NodeNight::watch; }) ? 1 : 0;
  const auto description = fmt::format("{} and {}, {} to {}; with a flag: {}.", how_many(rows.size(), "row"),
                                       how_many(nights.size(), "night"), drift::date_text(nights.front()),
                                       drift::date_text(nights.back()), flagged);
  std::string out = figures::svg_open(title, description, bottom + kLegend);
  out +=
      R"(<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse"><path d="M0 5L5 0"/></pattern></defs>)";
  out += dates_of(nights, width, bottom);
  double y = kTop;
  for (const auto& row : rows) {
    out += row_of(row, y, height, width);
    y += height;
  }
  return out + legend_of(rows, bottom + 10) + "</svg>";
}

}  // namespace assay::nightly
