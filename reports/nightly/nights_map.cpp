// nights_map: rectangles, labels, legend.
#include "reports/nightly/nights_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "reports/figures/html.h"
#include "reports/figures/svg.h"

namespace assay::nightly {
namespace {

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

std::string nights_map(const std::vector<drift::Date>& nights, const std::vector<NodeRow>& rows,
                       const std::string& title) {
  const double height = rows.size() <= kFewRows ? kRoomyRow : kTightRow;
  const double width = (kFigureWidth - kLabels) / static_cast<double>(nights.size());
  const double bottom = kTop + height * static_cast<double>(rows.size());
  std::size_t flagged = 0;
  for (const auto& row : rows)
    flagged += std::ranges::any_of(row.nights, [](NodeNight one) { return one > NodeNight::watch; }) ? 1 : 0;
  const auto description =
      fmt::format("{} rows and {} nights, {} to {}; {} rows have a night with a flag.", rows.size(), nights.size(),
                  drift::date_text(nights.front()), drift::date_text(nights.back()), flagged);
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
