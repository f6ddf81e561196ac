// heat: a matrix as SVG; one path per shade keeps thousands of cells within some tens of kilobytes.
#include "reports/figures/heat.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

// All lengths are in the units of a view box that is kFigureWidth wide.
constexpr double kHeatTop = 30;
constexpr double kWidest = 450;  // of a matrix
constexpr double kLargestCell = 44;
constexpr double kTallestCell = 26;  // of a matrix that is not square
constexpr double kLegendWidth = 160;
constexpr double kLegendRow = 19;
constexpr double kLabelPitch = 11;  // labels closer than that would touch
constexpr double kGap = 6;
constexpr double kLine = 14;  // of words below the legend
constexpr std::size_t kLongestLine = 32;

/// Layout of the cells of a matrix.
struct Place {
  double x = 0, y = 0, width = 0, height = 0;  ///< upper left corner of the first cell, and its size
};

/// The strokes that set cells without a figure apart.
const char* strokes_of(Shade shade) {
  switch (shade) {
    case Shade::not_measured:
      return "m0 1l1-1";
    case Shade::inconclusive:
    case Shade::error:
      return "l1 1m0-1l-1 1";
    default:
      return nullptr;
  }
}

bool is_dark(Shade shade) {
  return shade == Shade::open_fail || shade == Shade::fail_near || shade == Shade::fail_far || shade == Shade::error;
}

std::string draw_cells(const HeatMap& map, const Place& place) {
  std::map<Shade, std::string> fills, strokes;
  for (const auto& cell : map.cells) {
    fills[cell.shade] += fmt::format("M{} {}h1v1h-1z", cell.column, cell.row);
    if (const char* stroke = strokes_of(cell.shade))
      strokes[cell.shade] += fmt::format("M{} {}{}", cell.column, cell.row, stroke);
  }
  std::string svg = fmt::format("<g transform=\"translate({:.2f} {:.2f}) scale({:.3f} {:.3f})\">\n", place.x, place.y,
                                place.width, place.height);
  for (const auto& [shade, path] : fills) svg += fmt::format("<path class=\"cell s-{}\" d=\"{}\"/>\n", shade, path);
  for (const auto& [shade, path] : strokes) svg += fmt::format("<path class=\"stroke s-{}\" d=\"{}\"/>\n", shade, path);
  svg += "</g>\n";
  for (const auto& cell : map.cells) {
    if (cell.text.empty()) continue;
    svg += svg_text(place.x + (static_cast<double>(cell.column) + 0.5) * place.width,
                    place.y + (static_cast<double>(cell.row) + 0.5) * place.height + 3.5, "middle",
                    is_dark(cell.shade) ? "in-dark" : "in-light", cell.text);
  }
  return svg;
}

/// Frame of a matrix and the lines between its bands.
std::string draw_frame(const HeatMap& map, const Place& place) {
  const double right = place.x + place.width * static_cast<double>(map.columns.labels.size());
  const double bottom = place.y + place.height * static_cast<double>(map.rows.labels.size());
  std::string svg = svg_rect(place.x, place.y, right - place.x, bottom - place.y, "frame");
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < map.columns.bands.size(); ++i) {
    at += map.columns.bands[i].count;
    svg += svg_line(place.x + place.width * static_cast<double>(at), place.y,
                    place.x + place.width * static_cast<double>(at), bottom, "between");
  }
  at = 0;
  for (std::size_t i = 0; i + 1 < map.rows.bands.size(); ++i) {
    at += map.rows.bands[i].count;
    svg += svg_line(place.x, place.y + place.height * static_cast<double>(at), right,
                    place.y + place.height * static_cast<double>(at), "between");
  }
  return svg;
}

/// The words next to an axis, each with its middle counted in cells: every label if there is room, else the bands, else
/// some labels.
struct Words {
  std::string words;
  double middle = 0;
};

std::vector<Words> words_beside(const HeatAxis& axis, double pitch) {
  std::vector<Words> all;
  if (pitch < kLabelPitch && !axis.bands.empty()) {
    std::size_t at = 0;
    double last = -kLabelPitch;
    for (const auto& band : axis.bands) {
      const double middle = static_cast<double>(at) + static_cast<double>(band.count) / 2;
      at += band.count;
      if (middle * pitch - last < kLabelPitch) continue;
      last = middle * pitch;
      all.push_back({end_of(band.name, kLongestLabel), middle});
    }
    return all;
  }
  std::size_t step = 1;
  while (static_cast<double>(step) * pitch < kLabelPitch) ++step;
  for (std::size_t i = 0; i < axis.labels.size(); i += step)
    all.push_back({end_of(axis.labels[i], kLongestLabel), static_cast<double>(i) + 0.5});
  return all;
}

double widest(const std::vector<Words>& all) {
  double width = 0;
  for (const auto& one : all) width = std::max(width, text_width(one.words));
  return width;
}

/// Height of a legend of `rows` rows.
double legend_height(std::size_t rows) { return kLegendRow * (static_cast<double>(rows) + 2); }

std::string draw_legend(const std::set<Shade>& shades, bool margins, double x, double y) {
  std::string svg = svg_text(x, y + 9, "start", "mark", margins ? "distance to acceptance limit" : "outcome");
  double at = y + kLegendRow;
  for (const Shade shade : shades) {
    const HeatMap one{.cells = {{.shade = shade}}};
    svg += draw_cells(one, {.x = x, .y = at, .width = 13, .height = 13}) +
           svg_text(x + 19, at + 10, "start", "label", shade_words(shade, margins));
    at += kLegendRow;
  }
  return svg + svg_rect(x, at, 13, 13, "frame") + svg_text(x + 19, at + 10, "start", "label", "not planned");
}

std::set<Shade> shades_of(const HeatMap& map) {
  std::set<Shade> shades;
  for (const auto& cell : map.cells) shades.insert(cell.shade);
  return shades;
}

/// The size of the cells of `map`.
Place cells_of(const HeatMap& map) {
  const auto rows = static_cast<double>(map.rows.labels.size());
  const auto columns = static_cast<double>(map.columns.labels.size());
  const bool square = rows == columns;
  return {.x = 0,
          .y = 0,
          .width = std::min(kLargestCell, kWidest / columns),
          .height = std::min(square ? kLargestCell : kTallestCell, kWidest / rows)};
}

/// Names below the columns: straight if all of them have room, else slanted. `bottom` becomes their lower edge.
std::string draw_column_words(const std::vector<Words>& words, const Place& place, double& bottom) {
  double room = kWidest;
  for (std::size_t i = 1; i < words.size(); ++i)
    room = std::min(room, (words[i].middle - words[i - 1].middle) * place.width);
  const bool slanted = widest(words) > room - kGap;
  std::string svg;
  for (const auto& one : words) {
    const double x = place.x + one.middle * place.width;
    svg += slanted ? svg_slanted_text(x + 4, bottom + 10, "mark", one.words)
                   : svg_text(x, bottom + 13, "middle", "mark", one.words);
  }
  constexpr double kDiagonal = 0.71;  // sin 45°
  bottom += slanted ? 12 + kDiagonal * widest(words) : 18;
  return svg;
}

}  // namespace

std::string heat_map(const HeatMap& map) {
  Place place = cells_of(map);
  const auto row_words = words_beside(map.rows, place.height);
  const auto column_words = words_beside(map.columns, place.width);
  place.x = std::max(widest(row_words) + 3 * kGap, 60.0);
  place.y = kHeatTop + kLegendRow;
  const double right = place.x + place.width * static_cast<double>(map.columns.labels.size());
  double bottom = place.y + place.height * static_cast<double>(map.rows.labels.size());
  std::string svg = svg_text(0, 14, "start", "heading", map.title) +
                    svg_text(place.x - kGap, kHeatTop + kLegendRow - 7, "end", "mark", map.rows.name);
  for (const auto& one : row_words)
    svg += svg_text(place.x - kGap, place.y + one.middle * place.height + 3.5, "end", "mark", one.words);
  svg += draw_cells(map, place) + draw_frame(map, place) + draw_column_words(column_words, place, bottom);
  svg += svg_text((place.x + right) / 2, bottom + 12, "middle", "mark", map.columns.name);
  const auto shades = shades_of(map);
  const double legend = right + 5 * kGap;
  svg += draw_legend(shades, map.margins, legend, place.y);
  double beside = place.y + legend_height(shades.size()) + kLegendRow;
  for (const auto& line : map.beside) {
    svg += svg_text(legend, beside, "start", "mark", end_of(line, kLongestLine));
    beside += kLine;
  }
  return svg_open(map.title, map.description, std::max(bottom + 18, beside)) + svg + "</svg>\n";
}

std::string heat_maps(const std::string& title, const std::string& description, const std::vector<HeatMap>& maps) {
  constexpr std::size_t kColumns = 6;
  constexpr double kPitch = (kFigureWidth - kLegendWidth) / static_cast<double>(kColumns);
  constexpr double kSide = 80;
  constexpr double kTitleHeight = 16;
  std::string svg = svg_text(0, 14, "start", "heading", title);
  std::set<Shade> shades;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const HeatMap& map = maps[i];
    const double x = kPitch * static_cast<double>(i % kColumns);
    const std::size_t row = i / kColumns;
    const double y = kHeatTop + (kSide + 2 * kTitleHeight) * static_cast<double>(row);
    const Place place{.x = x,
                      .y = y + kTitleHeight,
                      .width = kSide / static_cast<double>(map.columns.labels.size()),
                      .height = kSide / static_cast<double>(map.rows.labels.size())};
    svg += svg_text(x, y + kTitleHeight - 5, "start", "mark", end_of(map.title, 14)) + draw_cells(map, place) +
           draw_frame(map, place);
    shades.merge(shades_of(map));
  }
  const bool margins = std::ranges::all_of(maps, &HeatMap::margins);
  const std::size_t full_rows = (maps.size() + kColumns - 1) / kColumns;
  const double rows = static_cast<double>(full_rows);
  svg += draw_legend(shades, margins, kFigureWidth - kLegendWidth, kHeatTop);
  return svg_open(title, description,
                  std::max(kHeatTop + rows * (kSide + 2 * kTitleHeight), kHeatTop + legend_height(shades.size()))) +
         svg + "</svg>\n";
}

}  // namespace assay::figures
